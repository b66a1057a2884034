"""Reads Swift just far enough to say where a declaration is, and what its statements, conditions and arguments are.

A source becomes tokens (comments and `#if` lines are none; the words of a string are some), brackets are paired, and each
function, initialiser, property, case and type gets its name as documentation spells it: `Type.function(label:_:)`. A function
in a function has the outer one's name before its own. The layout does not matter, beyond the line ends that separate
statements.
"""

import bisect
import collections
import functools
import re

TOKEN = (
    r"`[\w ,']+`|[@$#]?[^\W\d]\w*|\$\d+|0x[\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?|\\#*\(|\\[nrt0\"'\\u]|<<=|>>=|\.\.\.|\.\.<"
    r"|[=!]==|[=!<>]=|&&|\|\||\?\?|->|&[-+*]=?|[-+*/%|&^]=|<<|>>|\S")
CODE = re.compile(r"\s+|//[^\n]*|/\*|#(?:if|elseif|else|endif)\b[^\n]*|#*\"\"\"|#*\"|" + TOKEN)
STRING = re.compile(r"\s+|\"\"\"|" + TOKEN)
PLAIN = re.compile(TOKEN)
CLOSING = {"(": ")", "[": "]", "{": "}"}
Token = collections.namedtuple("Token", "text start end is_code begins_line is_spaced")
# `kind` is the keyword of the declaration; `first` and `end` are places of tokens.
Declaration = collections.namedtuple("Declaration", "name kind first end")


def texts(fragment):
    """The tokens' texts of a part of a line, inside of a string or not.

    >>> texts('f(a<=b, "x\\\\(c)")')
    ['f', '(', 'a', '<=', 'b', ',', '"', 'x', '\\\\(', 'c', ')', '"', ')']
    """
    return PLAIN.findall(fragment)


def tokens(text):
    """All tokens of a source.

    >>> [token.text for token in tokens('a /* b /* c */ */ "//d" // e\\n#if f\\n#"g"h"#')]
    ['a', '"', '/', '/', 'd', '"', '#', '"', 'g', '"', 'h', '"', '#']
    >>> [token.text for token in tokens('\"\"\"\\n i "j" \\\\(k("l"))\\n\"\"\" m') if token.is_code]
    ['k', '(', ')', 'm']
    """
    found, position, line_from = [], 0, -1
    # Of each string around the place: its end, the start of an interpolation, and the brackets open in that.
    strings, depths = [], []

    def add(start, end, is_code):
        nonlocal line_from
        begins = len(strings) == len(depths) and (not found or text.find("\n", found[-1].end, start) >= 0)
        spaced = start > 0 and text[start - 1].isspace() and text[end:end + 1].isspace()
        found.append(Token(text[start:end], start, end, is_code, begins, spaced))

    while position < len(text):
        if len(strings) > len(depths):
            quote, interpolation = strings[-1]
            if text.startswith(quote, position):
                for match in PLAIN.finditer(text, position, position + len(quote)):
                    add(match.start(), match.end(), False)
                position += len(quote)
                strings.pop()
                continue
            match = STRING.match(text, position)
            if match[0] == interpolation:
                depths.append(0)
            # An end of the string is no part of a longer token.
            end = text.find(quote, match.start(), match.end()) if match[0] not in ('\\"', "\\\\") else -1
            end = match.end() if end <= match.start() else end
            if not match[0].isspace():
                add(match.start(), end, False)
            position = end
            continue
        match = CODE.match(text, position)
        start, position, word = match.start(), match.end(), match[0]
        if word.isspace() or word.startswith("//") or re.match(r"#(if|elseif|else|endif)\b", word):
            continue
        if word == "/*":
            depth = 1
            while depth and (edge := re.compile(r"/\*|\*/").search(text, position)):
                depth += 1 if edge[0] == "/*" else -1
                position = edge.end()
        elif word.endswith('"') and not word.startswith("\\"):
            hashes = word.count("#")
            for part in PLAIN.finditer(text, start, position):
                add(part.start(), part.end(), False)
            strings.append((word.strip("#") + "#" * hashes, "\\" + "#" * hashes + "("))
        elif word == "/" and re.search(r"(\(|[(,=:] )$", text[start - 2:start]) and (
                end := re.compile(r"(?:\\.|[^/\s\\])(?:\\.|[^/\n\\])*/(?=[\s),.])").match(text, position)):
            position = end.end()
            add(start, position, False)
        else:
            is_interpolation_end = False
            if depths:
                depths[-1] += (word == "(") - (word == ")")
                is_interpolation_end = depths[-1] < 0
                if is_interpolation_end:
                    depths.pop()
            add(start, position, not is_interpolation_end)
    return found


TYPES = {"struct", "class", "enum", "actor", "protocol", "extension"}
CONTROL = {"if", "guard", "while", "for", "switch", "catch", "do", "repeat", "else", "defer"}
DECLARING = {"func", "init", "subscript", "deinit", "var"}
# How tightly an operator binds, with what separates values before all.
LEVELS = {word: level for level, words in enumerate([
    "= += -= *= /= |= &= ^= %= &+= &-=", "? :", "||", "&&", "== != < > <= >= === !== ~=", "??", "... ..<", "+ - &+ &- | ^",
    "* / % & &* << >>"], 1) for word in words.split()}
RANGES = {"...", "..<"}
BEFORE_VALUE = {"return", "throw", "if", "guard", "while", "where", "in", "else", "for", "switch", "case", "let", "var", "catch"}
UNFINISHED = {",", "(", "[", "->", ":", "return", "throw", "guard", "if", "while", "case", "let", "var", "try", "await", "where"}
KINDS = ["statement", "case", "argument", "value", "condition", "operand", "call"]


class Source:
    """The declarations of a source, and what they consist of."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens(text)
        self.pairs, opened = {}, []
        for place, token in enumerate(self.tokens):
            if token.is_code and token.text in CLOSING or re.fullmatch(r"\\#*\(", token.text):
                opened.append(place)
            elif opened and token.text in (")", "]", "}") and (
                    token.is_code or self.tokens[opened[-1]].text.startswith("\\")):
                self.pairs[opened.pop()] = place
        self.declarations = []
        self.members(0, len(self.tokens), "", "")
        self.by_name = collections.defaultdict(list)
        for declaration in self.declarations:
            self.by_name[declaration.name].append(declaration)

    def word(self, place):
        return self.tokens[place].text if place < len(self.tokens) and self.tokens[place].is_code else ""

    def continues(self, place):
        """Whether the token at the beginning of a line belongs to the expression of the line before."""
        before, token = self.tokens[place - 1], self.tokens[place]
        return (
            before.is_code and (before.text in UNFINISHED or before.text in LEVELS and before.is_spaced)
            or token.is_code and token.text in (".", "else", "where", "{", "catch", "->", "throws", "async")
            or token.is_code and token.text in LEVELS and token.is_spaced)

    def end_of_statement(self, place, end):
        first = place
        while place < end:
            if place > first and self.tokens[place].begins_line and not self.continues(place) or self.word(place) == ";":
                break
            place = self.pairs.get(place, place) + 1
        return place

    def parts(self, first, end):
        """Where the values between the commas of a bracket's inside begin and end."""
        found, begin, place, angles = [], first, first, 0
        while place < end:
            word = self.word(place)
            if word == "<" and not self.tokens[place].is_spaced:
                angles += 1
            elif word in (">", ">>") and angles and not self.tokens[place].is_spaced:
                angles = max(0, angles - len(word))
            elif word == "," and not angles:
                found.append((begin, place))
                begin = place + 1
            place = self.pairs.get(place, place) + 1
        return found + ([(begin, end)] if begin < end else [])

    def members(self, first, end, path, kind):
        """Finds the declarations in the body of a type, or of a function."""
        place = begin = first
        prefix = path + "." if path else ""
        is_type = kind in TYPES or not kind
        while place < end:
            word, before = self.word(place), self.word(place - 1) if place else ""
            if before == ".":
                word = ""
            name, body, stop = None, None, None
            if word in TYPES and re.match(r"[^\W\d]|`", self.word(place + 1)) and (
                    self.word(place + 1) not in ("func", "var", "let", "subscript") and self.word(place + 2) in ("{", ":", "<", ".", "where")):
                name = self.word(place + 1)
                after = place + 2
                while self.word(after) == ".":
                    name += "." + self.word(after + 1)
                    after += 2
                body = after
            elif word == "func" or is_type and word in ("init", "subscript") and self.word(place + 1) in ("(", "<", "?", "!"):
                after = place + 1
                name = word
                if word == "func":
                    name = ""
                    while self.word(after) != "(" and not (name and self.word(after) == "<" and name[0] not in "<=>"):
                        name += self.word(after)
                        after += 1
                while self.word(after) != "(":
                    after += 1
                close = self.pairs[after]
                labels = [self.word(part) for part, _ in self.parts(after + 1, close)]
                name += f"({''.join(label + ':' for label in labels)})"
                body = close + 1
            elif is_type and word == "deinit":
                name, body = word, place + 1
            elif is_type and (word in ("var", "let") or word == "case" and kind == "enum"):
                name = self.word(place + 1)
                stop = self.end_of_statement(place, end)
            if name is None:
                if is_type and place > begin and self.tokens[place].begins_line and not self.continues(place) and (
                        self.word(place - 1) == "}"):
                    begin = place
                place = place + 1 if kind and not is_type else self.pairs.get(place, place) + 1
                continue
            inside = None
            if stop is None:
                if kind == "protocol":
                    stop = self.end_of_statement(place, end)
                else:
                    while body < end and self.word(body) != "{":
                        body = self.pairs.get(body, body) + 1
                    inside = body
                    stop = self.pairs.get(body, end - 1) + 1
            else:
                inside = next((at for at in range(place, stop) if self.word(at) == "{"), None)
            if not is_type:
                begin = place
            self.declarations.append(Declaration(prefix + name.replace("`", ""), word, begin, stop))
            if inside is not None and inside in self.pairs:
                self.members(inside + 1, self.pairs[inside], prefix + name.replace("`", ""), word)
            place = begin = stop

    # What a declaration consists of.

    @functools.cache
    def nodes(self, first, end):
        """For each kind the nodes in a declaration: where each begins and ends, and what goes along when it is dropped."""
        found = {kind: {} for kind in KINDS}
        self.runs(first, end, found, is_block=False)
        for place in range(first, end):
            word = self.word(place)
            close = self.pairs.get(place)
            if close is None or close > end:
                continue
            if word == "{":
                self.block(place + 1, close, found)
            else:
                parts = self.parts(place + 1, close)
                for number, (begin, stop) in enumerate(parts):
                    if number:
                        dropped = begin - 1, stop
                    else:
                        dropped = begin, (parts[1][0] if len(parts) > 1 else close)
                    found["argument"][begin, stop] = dropped
                    self.runs(begin, stop, found, is_block=False)
            if word in ("(", "{"):
                self.call(place, close, found)
        return {kind: sorted((*node, *dropped) for node, dropped in nodes.items()) for kind, nodes in found.items()}

    def call(self, place, close, found):
        """`.name(…) { … }` and `name(…)`: dropped, only what it is called on, or its one argument, is left."""
        name = place - 1
        if name >= 0 and self.word(name) == ")" and self.tokens[place].text == "{":
            return
        if name < 1 or not re.match(r"[^\W\d]", self.word(name)) or self.word(name) in BEFORE_VALUE:
            return
        end = close + 1
        if self.word(end) == "{" and self.word(place) == "(" and not self.tokens[end].begins_line and end in self.pairs:
            end = self.pairs[end] + 1
        if self.word(name - 1) == ".":
            begin = name - 1 - (self.word(name - 2) == "?")
            found["call"][begin, close + 1] = begin, close + 1
            if end != close + 1:
                found["call"][begin, end] = begin, end
        else:
            found["call"][name, close + 1] = None, None

    def block(self, first, end, found):
        place = first
        head = first
        while head < end and not self.tokens[head].begins_line or head == first:
            if head >= end or self.word(head) in ("{", "if", "for", "guard", "case", "let"):
                break
            if self.word(head) == "in":
                place = head + 1
                break
            head = self.pairs.get(head, head) + 1
        label = None
        while place < end:
            if self.word(place) == ";":
                place += 1
                continue
            if self.word(place) in ("case", "default"):
                colon = place
                while colon < end and self.word(colon) != ":":
                    colon = self.pairs.get(colon, colon) + 1
                if colon < end:
                    if label is not None:
                        found["case"][label, place] = label, place
                    label = place
                    self.runs(place, colon, found, is_block=True)
                    place = colon + 1
                    continue
            stop = max(self.end_of_statement(place, end), place + 1)
            # A line of a case ends before the next one.
            found["statement"][place, stop] = place, stop
            self.runs(place, stop, found, is_block=True)
            place = stop
        if label is not None:
            found["case"][label, end] = label, end

    def runs(self, first, end, found, is_block):
        """Splits what stands outside of inner brackets at its operators, of each level of binding."""
        separators, place, is_control, is_condition, is_declaration = [(first - 1, 0, "")], first, False, False, False
        while place < end:
            word, token = self.word(place), self.tokens[place]
            if word in CONTROL:
                is_control = True
            if word in DECLARING or word in TYPES:
                is_declaration = True
            level = None
            if word == "{" and (is_control or is_declaration):
                level = 0
                separators.append((place, level, word))
                place = self.pairs.get(place, place)
                separators.append((place, 0, "}"))
                place += 1
                continue
            if word in BEFORE_VALUE or word == ",":
                level = 0
            elif word == ":" and not token.is_spaced:
                level = 0
            elif word in LEVELS and (token.is_spaced or word in RANGES):
                level = LEVELS[word]
            if level is not None:
                separators.append((place, level, word))
            place = self.pairs.get(place, place) + 1
        separators.append((end, 0, ""))
        for level in range(10):
            at_level = [separator for separator in separators if separator[1] <= level]
            for before, after in zip(at_level, at_level[1:]):
                begin, stop = before[0] + 1, after[0]
                if begin >= stop or before[2] == "{":
                    continue
                if before[1] > 0 and before[1] >= after[1] or before[2] == ",":
                    dropped = before[0], stop
                elif after[1] > 0 or after[2] == ",":
                    dropped = begin, after[0] + 1
                else:
                    dropped = None, None
                if level == 1:
                    found["value"].setdefault((begin, stop), dropped)
                if level in (0, 3, 4) and ({before[2], after[2]} & {"&&", "||"} or is_block and before[2] in (
                        "if", "guard", "while", "where", ",") or before[2] == "where"):
                    found["condition"][begin, stop] = dropped
                if level >= 2 and (before[1] or after[1]):
                    found["operand"].setdefault((begin, stop), dropped)
