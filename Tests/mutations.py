"""The list of mutations: `Tests/Mutations/README.md` has its form. Finds each in the sources, and makes the change."""

import collections
import dataclasses
import difflib
import functools
import hashlib
import json
import os
import re

import swift_source
from swift_source import KINDS, Source, texts

THREATS = "Sources/sendgate/Sendgate.docc/ThreatModel.md"
PER_PROMISE_MIN, COUNT_MIN = 10, 150
KIND = "|".join(KINDS)
OPERATORS = {name: re.compile(form) for name, form in {
    "drop": rf"drop (?P<kind>{KIND})(?: (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))?",
    "negate": r"negate condition(?: (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))?",
    "set": rf"set (?P<kind>{KIND})(?: (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))? to (?P<new>\S.*)",
    "append": rf"append (?P<new>\S.*?) to (?P<kind>{KIND})(?: (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))?",
    "prepend": rf"prepend (?P<new>\S.*?) to (?P<kind>{KIND})(?: (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))?",
    "replace": r"replace (?P<old>\S.*?)(?: #(?P<number>\d+))? by (?P<new>\S.*)",
    "token": r"(?P<old>\S+) to (?P<new>\S+?)(?: at (?P<anchor>(?!#\d)\S.*?))?(?: #(?P<number>\d+))?",
}.items()}


class Stale(Exception):
    """The mutation does not fit the sources."""


def one(found, number, what):
    """The only one of what was found, or the one of that number."""
    if not found:
        raise Stale(f"there is no {what}")
    if number is None and len(found) > 1:
        raise Stale(f"there are {len(found)} of {what}: say more, or `#1` to `#{len(found)}`")
    if number is not None and not 1 <= int(number) <= len(found):
        raise Stale(f"there are {len(found)} of {what}, none is `#{number}`")
    return found[int(number or 1) - 1]


class Scope:
    """A declaration in a source, and what the operators find in it."""

    def __init__(self, source, declaration):
        self.source, self.first, self.end = source, declaration.first, declaration.end
        self.words = [token.text for token in source.tokens[self.first:self.end]]
        self.places = collections.defaultdict(list)
        for place, word in enumerate(self.words, self.first):
            self.places[word].append(place)

    def occurrences(self, wanted):
        """Where a sequence of tokens is."""
        return [
            place for place in self.places.get(wanted[0], []) if place + len(wanted) <= self.end
            and self.words[place - self.first:place - self.first + len(wanted)] == wanted]

    @functools.cached_property
    def kinds(self):
        return self.source.nodes(self.first, self.end)

    def nodes(self, kind, anchor):
        """The nodes of a kind that have the anchor, each the innermost around it."""
        nodes = self.kinds[kind]
        if not anchor:
            return nodes
        wanted, found = texts(anchor), set()
        for place in self.occurrences(wanted):
            around = [node for node in nodes if node[0] <= place and place + len(wanted) <= node[1]]
            if around:
                found.add(min(around, key=lambda node: (node[1] - node[0], -node[0])))
        return sorted(found, key=lambda node: node[:2])

    def beside(self, places, anchor):
        """Those of the places that share a condition with the anchor, or if none does, a statement."""
        for kind in ("condition", "statement"):
            near = self.nodes(kind, anchor)
            if found := [place for place in places if any(node[0] <= place < node[1] for node in near)]:
                return found
        return []

    def edit(self, operator):
        """What an operator changes: where it begins and ends in the source's text, and what comes there."""
        for verb, form in OPERATORS.items():
            if match := form.fullmatch(operator):
                break
        else:
            raise Stale(f"no operator: {operator}")
        given = collections.defaultdict(type(None), match.groupdict())
        kind, anchor, number, new = given["kind"], given["anchor"], given["number"], given["new"]
        tokens = self.source.tokens
        if verb in ("replace", "token"):
            wanted = texts(given["old"])
            found = self.occurrences(wanted)
            if verb == "token" and anchor:
                found = self.beside(found, anchor)
            place = one(found, number, f"`{given['old']}`" + (f" at `{anchor}`" if anchor else ""))
            return tokens[place].start, tokens[place + len(wanted) - 1].end, new
        kind = kind or "condition"
        begin, end, dropped_from, dropped_to = one(
            self.nodes(kind, anchor), number, kind + (f" with `{anchor}`" if anchor else ""))
        start, stop = tokens[begin].start, tokens[end - 1].end
        if verb == "drop":
            return self.dropped(kind, begin, end, dropped_from, dropped_to)
        if verb == "set":
            return start, stop, new
        if verb == "append":
            return stop, stop, ("\n" if kind == "statement" else "" if new[0] in ",." else " ") + new
        if verb == "prepend":
            return start, start, new + ("\n" if kind == "statement" else " ")
        return self.negated(begin, end)

    def negated(self, begin, end):
        tokens = self.source.tokens
        start, stop = tokens[begin].start, tokens[end - 1].end
        if tokens[begin].text == "!":
            return start, tokens[begin].end, ""
        opposites = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "===": "!==", "!==": "==="}
        place = begin
        while place < end:
            if tokens[place].text in opposites and tokens[place].is_spaced:
                return tokens[place].start, tokens[place].end, opposites[tokens[place].text]
            place = self.source.pairs.get(place, place) + 1
        if any(tokens[place].is_spaced and tokens[place].text in swift_source.LEVELS for place in range(begin, end)):
            return start, stop, f"!({self.source.text[start:stop]})"
        return start, start, "!"

    def dropped(self, kind, begin, end, dropped_from, dropped_to):
        source, tokens = self.source, self.source.tokens
        if kind == "call" and dropped_from is None:
            # `name(x)` becomes `x`.
            opening = begin + 1
            parts = source.parts(opening + 1, source.pairs[opening])
            if len(parts) != 1:
                raise Stale("a call without one argument is dropped only behind a `.`")
            first, last = parts[0]
            if source.word(first + 1) == ":":
                first += 2
            return tokens[begin].start, tokens[end - 1].end, source.text[tokens[first].start:tokens[last - 1].end]
        if dropped_from is None:
            raise Stale(f"the {kind} stands alone: set it")
        start, stop = tokens[dropped_from].start, tokens[dropped_to - 1].end
        if kind in ("statement", "case"):
            return start, stop, ""
        if dropped_from == begin:
            return start, (tokens[dropped_to].start if dropped_to > end else stop), ""
        if tokens[begin].begins_line and tokens[dropped_from].text == "," == source.word(end):
            return tokens[begin].start, tokens[end + 1].start, ""
        return start if tokens[dropped_from].begins_line else tokens[dropped_from - 1].end, stop, ""


@functools.cache
def source(path):
    return Source(path.read_text())


@functools.cache
def scope(path, name):
    """The declaration of a name: `Type.function(label:)`, with ` #2` for the second of that name."""
    plain, _, number = name.partition(" #")
    found = source(path).by_name.get(plain, [])
    if not found:
        near = difflib.get_close_matches(plain, source(path).by_name, 1, 0)
        raise Stale(f"`{plain}` is not declared there; the nearest name is `{''.join(near)}`")
    return Scope(source(path), one(found, number or None, f"`{plain}`"))


@dataclasses.dataclass
class Mutation:
    id: str
    where: str
    operator: str
    promise: str = ""
    file: str = ""
    name: str = ""
    suites: str = ""
    argued: str = ""
    # Where the hunk begins among the file's lines, and its pairs of a mark and a line: `=` stays, `-` goes, `+` comes.
    start: int = 0
    hunk: list = dataclasses.field(default_factory=list)

    @property
    def digest(self):
        return hashlib.sha256(json.dumps([self.file, self.hunk]).encode()).hexdigest()[:16]

    def find(self, tree):
        """Finds the lines to change in the sources of a tree."""
        path = tree / self.file
        if not self.file or not path.is_file():
            raise Stale(f"`{self.file}` is no file")
        edits = sorted(scope(path, self.name).edit(operator) for operator in self.operator.split(" ;; "))
        self.start, self.hunk = hunk(source(path).text, edits)


def hunk(text, edits):
    """Where the lines that edits change begin, and these lines, as they were and as they become.

    >>> hunk("a\\n  b(c)\\n  d\\n", [(6, 7, "e")])
    (1, [('-', '  b(c)'), ('+', '  b(e)')])
    >>> hunk("a\\n  b(c)\\n  d\\n", [(4, 8, ""), (11, 12, "e")])
    (1, [('-', '  b(c)'), ('-', '  d'), ('+', '  e')])
    """
    lines, groups = text.split("\n"), []
    for start, end, new in edits:
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        if groups and groups[-1][1] >= first:
            groups[-1] = (groups[-1][0], max(last, groups[-1][1]), groups[-1][2] + [(start, end, new)])
        else:
            groups.append((first, last, [(start, end, new)]))
    begin, result, place = groups[0][0], [], groups[0][0]
    for first, last, changes in groups:
        result += [("=", line) for line in lines[place:first]]
        offset = sum(len(line) + 1 for line in lines[:first])
        changed = "\n".join(lines[first:last + 1])
        for start, end, new in reversed(changes):
            changed = changed[:start - offset] + new + changed[end - offset:]
        old, new = lines[first:last + 1], [line.rstrip() for line in changed.split("\n") if line.strip()]
        kept = [len(os.path.commonprefix([list(map(str.strip, order)) for order in orders])) for orders in [
            (old, new), (old[::-1], new[::-1])]]
        kept[1] = min(kept[1], len(old) - kept[0], len(new) - kept[0])
        result += [("=", line) for line in old[:kept[0]]]
        result += [("-", line) for line in old[kept[0]:len(old) - kept[1]]]
        result += [("+", line) for line in new[kept[0]:len(new) - kept[1]]]
        result += [("=", line) for line in old[len(old) - kept[1]:]]
        place = last + 1
    while result and result[0][0] == "=":
        begin, result = begin + 1, result[1:]
    while result and result[-1][0] == "=":
        result.pop()
    return begin, result


def read_list(tree):
    """The mutations of a tree, and what is wrong with the list, as lines."""
    mutations, problems = [], []
    for file in sorted((tree / "Tests/Mutations").glob("*.txt")):
        known, argued = {}, ""
        for number, line in enumerate(file.read_text().splitlines(), 1):
            where = f"{file.name}:{number}"
            if not line.strip() or line.startswith("#"):
                continue
            if match := re.fullmatch(r"(promise|file|suites|in|argued): (\S.*)", line):
                if match[1] == "argued":
                    argued = match[2]
                else:
                    known["name" if match[1] == "in" else match[1]] = match[2]
            elif match := re.fullmatch(r"\[([a-z0-9-]+)\] (\S.*)", line):
                mutation = Mutation(match[1], where, match[2], **known, argued=argued)
                argued = ""
                mutations.append(mutation)
                try:
                    mutation.find(tree)
                except Stale as error:
                    problems.append(f"{where}: {mutation.id}: {mutation.file}: {mutation.name}: {error}")
            else:
                problems.append(f"{where}: not a line of the format: {line}")
    return mutations, problems


def check(tree):
    mutations, problems = read_list(tree)
    promises = re.findall(r"(?m)^\| `([a-z-]+)` \|", (tree / THREATS).read_text())
    ids = collections.Counter(mutation.id for mutation in mutations)
    problems += [f"{id}: {count} mutations have this id" for id, count in ids.items() if count > 1]
    for mutation in mutations:
        if mutation.promise not in promises:
            problems.append(f"{mutation.where}: {mutation.id}: `{mutation.promise}` is no promise of {THREATS}")
        if not mutation.suites:
            problems.append(f"{mutation.where}: {mutation.id}: no suites")
    counts = collections.Counter(mutation.promise for mutation in mutations)
    for promise in promises:
        if counts[promise] < PER_PROMISE_MIN:
            problems.append(f"`{promise}` has {counts[promise]} mutations, at least {PER_PROMISE_MIN} are wanted")
    if len(mutations) < COUNT_MIN:
        problems.append(f"{len(mutations)} mutations, at least {COUNT_MIN} are wanted")
    return mutations, problems
