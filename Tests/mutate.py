"""Breaks the product on purpose, one slip at a time, and tells which breaks no test notices.

    python3 Tests/mutate.py check                     # the list fits the sources; part of `make lint`
    python3 Tests/mutate.py run [options]             # `make mutants`
    python3 Tests/mutate.py table [--tree DIR]

`Tests/Mutations/*.txt` list the mutations; `Tests/Mutations/README.md` documents their format. `mutations.py` finds them in
the sources with `swift_source.py`, and gives the lines that each one changes.

One build serves many mutations: each is woven into the sources beside the original (`mutantIsOn(7) ? new : old`), and
`SENDGATE_MUTANT` in the environment names the one that is on. What cannot be woven because it does not compile beside
its original is built alone (`--alone`). Sources are changed during a build only, and put back from copies under
`.build/mutants/backup`: at the end, on ^C, and after a kill by the next start.

Each mutation meets the quick tests that reach it first, and the other tests of its filter only when all mutations have met
those. The promises take turns, so a run that is cut short has looked at each.

Results are lines of JSON in `.build/mutants/results.jsonl`; a run goes on where the one before ended. Options of `run`:

    --tree DIR       the checkout to work in, without uncommitted changes (default: this one)
    --only REGEX     mutations whose id matches
    --shard 1/2      the first half of the selection
    --limit N        at most N mutations
    --seconds S      begin no mutation and no build after S seconds
    --jobs N         so many at a time (default: 2)
    --again          also what has a result already
    --survivors      only what survived before
    --alone          build each mutation by itself: for those that cannot be woven
    --all-modules    give survivors a second chance: every module's tests (killed only by what no one named)
    --build CMD      the build's command (default: as the Makefile does)
"""

import argparse
import bisect
import collections
import concurrent.futures
import doctest
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import mutations as mutations_list
import swift_source
from mutations import check, read_list

HERE = pathlib.Path(__file__).resolve().parent
# As `make test` builds, or all would be built again.
BUILD = "swift build --explicit-target-dependency-import-check error -debug-info-format none --disable-index-store --build-tests"
PRODUCTS = ["sendgatePackageTests.xctest", "sendgate"]
# A run that takes this many times as long as without a mutation hangs; a slow test, beside other work, has longer.
PATIENCE, PATIENCE_SECONDS_MIN, SLOW_SECONDS_MIN = 6, 30, 120
# The tests of these modules are traced: which mutations each reaches. What a test computes once for all tests is not seen.
TRACED = r"^(GatewayPipelineTests|SQLiteStoreTests|StoreConformanceTests|SendPlanningTests|UnixSocketEndpointTests)[./]"
# Tests that take longer than this without a mutation run only where the quicker ones pass.
QUICK_SECONDS = 0.5
# More tests than these are not named one by one.
REACHING_MAX = 200
PASSED_QUICK = "passed the quick tests"


# Weaving.


class NotWoven(Exception):
    """A mutation has no form in which it stands beside its original."""


def woven_text(mutation, lines, number, others=()):
    """Where lines that change begin, how many, and what replaces them: this mutation, or one of `others` (each a number
    and a mutation of just that one line), or the original."""
    start, hunk = mutation.start, mutation.hunk
    count = sum(mark in "=-" for mark, _ in hunk)
    if "\n".join(lines[:start]).count('"""') % 2:
        raise NotWoven
    indent = re.match(r"\s*", lines[start])[0]
    if not others:
        return start, count, replaced(lines, mutation, number)
    news = []
    for other_number, other in [(number, mutation), *others]:
        if other.start != start or [mark for mark, _ in other.hunk] not in (["-"], ["-", "+"]):
            raise NotWoven
        news.append((other_number, [text.strip() for mark, text in other.hunk if mark == "+"]))
    body = woven_choice([hunk[0][1].strip()], news)
    if body is None:
        raise NotWoven
    return start, count, [indent + text for text in body]


def replaced(lines, mutation, number=None):
    """The lines that replace the original ones, beside them under a number, or without."""
    indent = re.match(r"\s*", lines[mutation.start])[0]
    result = []
    for is_kept, group in itertools.groupby(mutation.hunk, lambda line: line[0] == "="):
        pairs = [(mark, text.strip()) for mark, text in group]
        old, new = ([text for mark, text in pairs if mark == wanted] for wanted in "-+")
        body = [text for _, text in pairs] if is_kept else new if number is None else woven(old, new, number)
        if body is None:
            raise NotWoven
        result += [indent + text for text in body]
    return result



# What an expression may begin behind and end before, within a line.
BEGINS = re.compile(r"(^|[(\[{]|[,:?] |[^+] \+ |(?<![=!<>])= |&& |\|\| |\{ |\b(guard|if|return|where|while|throw|in) )$")
ENDS = re.compile(r",|: return\b| \+ | &&| \|\|| else \{|\)|\]| \}| where |:?$| [?:] ")
BLOCK = re.compile(r"(\} else )?(if|while|for|switch|where)\b")
NO_EXPRESSION = re.compile(
    r"(let|var|case|throw|return|break|continue|guard|if|for|package|private|fileprivate|static|func)\b|\w+: |$")
NO_STATEMENT = re.compile(r"(let|var|case|where)\b|\w+: |[^\w(_]|(guard|if|for|while|switch)\b.*[^}]$|.*,$")


def is_expression(text):
    """Whether a part of a line can stand in parentheses, as far as one sees without a parser."""
    if NO_EXPRESSION.match(text.strip()) or text.count('"') % 2:
        return False
    text = re.sub(r'"[^"]*"', lambda match: "x" * len(match[0]), text)
    depth, choices = 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0 or depth == 0 and (character == "," or re.match(r"\w: | = | else ", text[position:])):
            return False
        if depth == 0 and text[position - 1:position + 2] in (" ? ", " : "):
            choices += 1 if character == "?" else -1
    return depth == 0 and choices == 0


def at_top(text):
    """A part of a line without what stands in brackets or quotes."""
    text = re.sub(r'"[^"]*"', "x", text)
    kept, depth = "", 0
    for character in text:
        depth += character in "([{"
        kept += character if depth == 0 else ""
        depth -= character in ")]}"
    return kept


def stays_together(before, text, after):
    """Whether parentheses around a part of a line change nothing: what stands beside it binds less than what is in it."""
    text = at_top(text)
    has_choice, has_or = " ? " in text, " || " in text
    beside_and = before.endswith("&& ") or after.startswith(" &&")
    beside_or = before.endswith("|| ") or after.startswith(" ||")
    is_condition = after.startswith(" ? ")
    beside_plus = before.endswith(" + ") or after.startswith(" + ")
    return not (beside_plus and " " in text or has_choice and (beside_and or beside_or or is_condition) or has_or and beside_and)


def woven(old, new, number):
    """Lines that do the one or the other; None when no rule here makes them.

    >>> woven(["guard a == b, c else { return nil }"], ["guard a == b || d, c else { return nil }"], 7)
    ['guard (mutantIsOn(7) ? (a == b || d) : (a == b)), c else { return nil }']
    >>> woven(["let x = try f(1)"], ["let x = f(2, 1)"], 7)
    ['let x = try (mutantIsOn(7) ? (f(2, 1)) : (f(1)))']
    >>> woven(["func f() -> Int { a ? b : c - d }"], ["func f() -> Int { b }"], 7)
    ['func f() -> Int { (mutantIsOn(7) ? (b) : (a ? b : c - d)) }']
    >>> woven(['f(a, "x\\\\(b)y")'], ['f(a, "x\\\\(c)y")'], 7)
    ['f(a, (mutantIsOn(7) ? ("x\\\\(c)y") : ("x\\\\(b)y")))']
    >>> woven(["case .a: .oneOf([.b])"], ["case .a: .oneOf([.b, .c])"], 7)
    ['case .a: .oneOf((mutantIsOn(7) ? ([.b, .c]) : ([.b])))']
    >>> woven(["case .a: throw x"], ["case .a: break"], 7)
    ['case .a: if mutantIsOn(7) { break } else { throw x }']
    >>> woven(["let x = a ? b >= 1 && c : d || e"], ["let x = a ? b > 1 && c : d || f"], 7)
    ['let x = (mutantIsOn(7) ? (a ? b > 1 && c : d || f) : (a ? b >= 1 && c : d || e))']
    >>> woven(["return a && b || c == d"], ["return a && b2 || c != d"], 7)
    ['return (mutantIsOn(7) ? (a && b2 || c != d) : (a && b || c == d))']
    >>> woven(["try sync()"], [], 7)
    ['if !mutantIsOn(7) {', 'try sync()', '}']
    >>> woven(["case 1...2: a"], ["case 1...3: a"], 7)
    """
    return woven_choice(old, [(number, new)])


def woven_choice(old, news):
    """As `woven`, for several mutations (numbers and lines) of the same lines.

    >>> woven_choice(["a(b)"], [(7, ["a(c)"]), (8, ["a(d)"])])
    ['a((mutantIsOn(7) ? (c) : (mutantIsOn(8) ? (d) : (b))))']
    >>> woven_choice(["f()"], [(7, []), (8, ["g(", ")"])])
    ['if mutantIsOn(7) {', '} else if mutantIsOn(8) {', 'g(', ')', '} else {', 'f()', '}']
    """
    choices = [(f"mutantIsOn({number})", new) for number, new in news]
    if len(old) == 1:
        same_length = [(on, same_conditions(old[0], new[0] if new else "")) for on, new in choices if len(new) < 2]
        if len(same_length) == len(choices):
            olds = {pair[0] for _, pair in same_length}
            if len(olds) == 1 and all(pair[1] for _, pair in same_length):
                line = woven_line(olds.pop(), [(on, pair[1]) for on, pair in same_length])
                if line:
                    return [line]
        label = re.match(r"case [^:]*: ", old[0])
        if label and len(choices) == 1 and choices[0][1] and choices[0][1][0].startswith(label[0]):
            on, new = choices[0]
            old, new = old[0][label.end():], new[0][label.end():]
            return [f"{label[0]}if {on} {{ {new} }} else {{ {old} }}"]
    for lines in [old] + [new for _, new in choices]:
        text = "\n".join(lines)
        if NO_STATEMENT.match(text) or any(text.count(pair[0]) != text.count(pair[1]) for pair in ("()", "[]", "{}")):
            return None
    if len(choices) == 1:
        on, new = choices[0]
        if not old:
            return [f"if {on} {{", *new, "}"]
        if not new:
            return [f"if !{on} {{", *old, "}"]
    branches = [line for on, new in choices for line in (f"}} else if {on} {{", *new)]
    return [branches[0].removeprefix("} else "), *branches[1:], "} else {", *old, "}"]


# The head, the conditions and the end of a line of conditions.
CONDITIONS = re.compile(r"(guard |if |while |\} else if |)(.*?)( else \{.*| \{.*|,|)$")
IS_TRUE_OR_FALSE = re.compile(r"[^\"]*( [=!<>]=? |\.isEmpty\b)|!?[\w.]+(\(.*\))?$")


def at_commas(text):
    """The parts of a line between the commas outside of brackets.

    >>> at_commas("a(b, c), let d, e")
    ['a(b, c)', 'let d', 'e']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def same_conditions(old, new):
    """Both lines with `true` for the condition that only one of them has.

    >>> same_conditions("guard a == b, let c else {", "guard let c else {")
    ('guard a == b, let c else {', 'guard true, let c else {')
    >>> same_conditions("if case .a = b {", "if case .a = b, c == d {")
    ('if case .a = b, true {', 'if case .a = b, c == d {')
    >>> same_conditions("&& a", "")
    ('&& a', '&& true')
    >>> same_conditions("f(a, b)", "f(a)")
    ('f(a, b)', 'f(a)')
    """
    if not new:
        return (old, old[:3] + ("true" if old[0] == "&" else "false")) if re.match(r"(&&|\|\|) ", old) else (old, "")
    first, second = CONDITIONS.match(old), CONDITIONS.match(new)
    if not first or not second or first[1] != second[1] or first[3] != second[3]:
        return old, new
    ones, others = at_commas(first[2]), at_commas(second[2])
    for more, less, is_old in ((ones, others, True), (others, ones, False)):
        for place, part in enumerate(more if len(more) == len(less) + 1 else []):
            if more[:place] + more[place + 1:] == less and IS_TRUE_OR_FALSE.match(part):
                line = f"{first[1]}{', '.join(less[:place] + ['true'] + less[place:])}{first[3]}"
                return (old, line) if is_old else (line, new)
    return old, new


def woven_line(old, choices):
    """The line with a choice for each mutation of its own part, or one for all.

    >>> woven_line("f(.a, .b)", [("x", "f(.c, .b)"), ("y", "f(.a, .d)")])
    'f((x ? (.c) : (.a)), (y ? (.d) : (.b)))'
    """
    single = [woven_expression(old, [choice]) for choice in choices]
    if all(single):
        parts = sorted(single)
        if all(one[1] <= other[0] for one, other in zip(parts, parts[1:])):
            for begin, end, text in reversed(parts):
                old = old[:begin] + text + old[end:]
            return old
    # The compiler takes long for many choices in one expression.
    if re.match(r"return |[\w.]+ = ", old):
        return None
    if found := woven_expression(old, choices):
        return old[:found[0]] + found[2] + old[found[1]:]
    return None


def woven_expression(old, choices):
    """Where the smallest expression that differs begins and ends, and the choice in its place; None if there is none."""
    lines = [old] + [new for _, new in choices]
    prefix = os.path.commonprefix(lines)
    start = len(prefix.rstrip())
    end = len(os.path.commonprefix([line[start:][::-1] for line in lines]))
    ends = BLOCK.match(old)
    for begin in range(len(prefix), -1, -1):
        if not BEGINS.search(old[:begin]) or old[:begin].count('"') % 2:
            continue
        for tail in range(end, -1, -1):
            rest = old[len(old) - tail:]
            if not (ENDS.match(rest) or ends and rest.startswith(" {")):
                continue
            parts = [line[begin:len(line) - tail] for line in lines]
            if all(is_expression(part) and stays_together(old[:begin], part, rest) for part in parts):
                throws = "try " if any(part.startswith("try ") for part in parts) else ""
                parts = [part.removeprefix("try ") for part in parts]
                choice = f"({parts[0]})"
                for (on, _), part in reversed(list(zip(choices, parts[1:]))):
                    choice = f"({on} ? ({part}) : {choice})"
                return begin, len(old) - tail, throws + choice
    return None


SWITCH = """import Glibc

/// The mutation that is on in this process; see Tests/mutate.py.
private let mutantNumber = getenv("SENDGATE_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

/// Where it is written down which mutations are reached, and when.
private let trace = getenv("SENDGATE_MUTANT_TRACE").map { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) } ?? -1
private nonisolated(unsafe) let reachedAt = calloc(10_000, MemoryLayout<Int>.size)!.assumingMemoryBound(to: Int.self)

@inline(never) private func reach(_ number: Int) {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let milliseconds = time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    guard milliseconds - reachedAt[number] > 1 || reachedAt[number] > milliseconds else { return }
    reachedAt[number] = milliseconds
    let line = Array("\\(milliseconds) \\(number)\\n".utf8)
    _ = write(trace, line, line.count)
}

@inline(__always) func mutantIsOn(_ number: Int) -> Bool {
    if trace >= 0 { reach(number) }
    return mutantNumber == number
}
"""


# The tree.


class Tree:
    def __init__(self, path, build):
        self.path = path
        self.work = path / ".build/mutants"
        self.backup = self.work / "backup"
        self.results_file = self.work / "results.jsonl"
        self.build_command = build
        self.work.mkdir(parents=True, exist_ok=True)
        self.restore()
        changes = subprocess.run(
            ["git", "-C", str(path), "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
        if changes.strip():
            sys.exit(f"{path} has uncommitted changes:\n{changes}commit or put them away, or give another --tree")

    def change(self, texts):
        """Writes files, with copies kept of what was there. Times are kept too, so that a build knows its sources again."""
        for name, text in texts.items():
            path, kept = self.path / name, self.backup / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                shutil.copy2(path, kept)
            else:
                kept.with_name(kept.name + ".absent").touch()
            path.write_text(text)
            stamp = 1_000_000_000 + int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)
            os.utime(path, (stamp, stamp))

    def restore(self):
        for kept in sorted(self.backup.rglob("*")) if self.backup.exists() else []:
            name = kept.relative_to(self.backup)
            if kept.name.endswith(".absent"):
                (self.path / name).with_name(kept.name.removesuffix(".absent")).unlink(missing_ok=True)
            elif kept.is_file():
                (self.path / name).write_bytes(kept.read_bytes())
                os.utime(self.path / name, ns=(kept.stat().st_atime_ns, kept.stat().st_mtime_ns))
        shutil.rmtree(self.backup, ignore_errors=True)

    def build(self, texts):
        """Builds with these files' texts. Returns None, or the compiler's errors as (file, line, message)."""
        try:
            self.change(texts)
            done = subprocess.run(
                self.build_command, shell=True, cwd=self.path, capture_output=True, text=True,
                env=os.environ | {"SENDGATE_OPTIMIZED": "1"})
        finally:
            self.restore()
        if done.returncode == 0:
            return None
        output = done.stdout + done.stderr
        (self.work / "build.log").write_text(output)
        prefix = re.escape(f"{self.path}/")
        errors = re.findall(rf"(?m)^{prefix}([^:\n]+):(\d+):\d+: error: (.*)", output)
        if not errors:
            sys.exit(f"the build failed otherwise, see {self.work / 'build.log'}:\n{output[-2000:]}")
        return [(file, int(line), message) for file, line, message in errors]

    def keep_products(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for product in PRODUCTS:
            # In one step: a run may be using the one before.
            shutil.copy2(self.path / ".build/debug" / product, folder / f"{product}.new")
            os.replace(folder / f"{product}.new", folder / product)

    def results(self):
        if not self.results_file.exists():
            return {}
        lines = [json.loads(line) for line in self.results_file.read_text().splitlines()]
        return {line["id"]: line for line in lines}

    def record(self, mutation, result, **more):
        line = {"id": mutation.id, "digest": mutation.digest, "result": result} | more
        with self.results_file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        mark = {"killed": "✔", "survived": "✘"}.get(result, "!")
        by = f" by {more['by'][0]}" + (f" and {len(more['by']) - 1} more" if len(more["by"]) > 1 else "") if more.get("by") else ""
        print(f"{mark} {mutation.id}: {result}{by} {more.get('why', '')}", flush=True)

    def read(self, name):
        return (self.path / name).read_text().split("\n")


def weaves(tree, mutations):
    """Splits mutations into as few groups as possible without two that change one line and cannot share it."""
    groups = []
    for number, mutation in enumerate(mutations, 1):
        lines = tree.read(mutation.file)
        try:
            first, count, _ = woven_text(mutation, lines, number)
        except NotWoven:
            continue
        changed = {(mutation.file, first + offset) for offset in range(count)}
        for group in groups:
            beside = {id(item): item for line in changed for item in group["lines"].get(line, [])}.values()
            try:
                woven_text(mutation, lines, number, beside)
                break
            except NotWoven:
                pass
        else:
            group = {"lines": collections.defaultdict(list), "members": []}
            groups.append(group)
        for line in changed:
            group["lines"][line].append((number, mutation))
        group["members"].append((number, mutation))
    return [group["members"] for group in groups]


def woven_ids(tree, index, members):
    """The mutations of a weave that no build of it has dropped."""
    state_file = tree.work / f"weave-{index}.json"
    dropped = json.loads(state_file.read_text())["dropped"] if state_file.exists() else {}
    return [
        mutation.id for _, mutation in members
        if dropped.get(mutation.id, {}).get("digest") != mutation.digest]


def in_turn(mutations):
    """The mutations with the promises taking turns, so that a run that is cut short has looked at each of them."""
    by_promise = collections.defaultdict(list)
    for mutation in mutations:
        by_promise[mutation.promise].append(mutation)
    rows = itertools.zip_longest(*by_promise.values())
    return [mutation for row in rows for mutation in row if mutation]


def weave(tree, members):
    """The woven texts of every file, and for each file the lines of each mutation."""
    files = collections.defaultdict(lambda: collections.defaultdict(list))
    for number, mutation in members:
        files[mutation.file][mutation.start, not any(mark == "-" for mark, _ in mutation.hunk)].append((number, mutation))
    texts, places = {}, {}
    for name, found in files.items():
        lines, result, spots, position = tree.read(name), [], [], 0
        for _, ((number, mutation), *others) in sorted(found.items(), key=lambda item: (item[0][0], not item[0][1])):
            start, count, text = woven_text(mutation, lines, number, others)
            result += lines[position:start]
            spots.append((len(result) + 1, len(result) + len(text), others[-1][1] if others else mutation))
            result += text
            position = start + count
        texts[name] = "\n".join(result + lines[position:])
        places[name] = spots
        module = "/".join(name.split("/")[:2])
        texts[f"{module}/MutantSwitch.swift"] = SWITCH
    return texts, places


def build_woven(tree, index, members, deadline):
    """The folder with the products of one weave and the mutations in it; built unless it is there already."""
    folder = tree.work / f"weave-{index}"
    state_file = tree.work / f"weave-{index}.json"
    listed = subprocess.run(
        ["git", "-C", str(tree.path), "ls-tree", "HEAD", "Package.swift", "Sources", "Tests/"], capture_output=True,
        text=True, check=True).stdout.splitlines()
    sources = [line for line in listed if not re.search(r"\tTests/(mutate|mutations|mutations_tests|swift_source)\.py$|\tTests/Mutations$", line)]
    key = hashlib.sha256("\n".join(
        sources + [f"{number} {mutation.digest}" for number, mutation in members]).encode()).hexdigest()
    state = json.loads(state_file.read_text()) if state_file.exists() else {"dropped": {}}
    if state.get("key") != key:
        digests = {mutation.id: mutation.digest for _, mutation in members}
        kept = {id: known for id, known in state["dropped"].items() if digests.get(id) == known["digest"]}
        state = {"key": key, "dropped": kept, "built": False}
        state_file.write_text(json.dumps(state))
    while not state["built"]:
        if time.monotonic() > deadline:
            return folder, [], False
        kept = [(number, mutation) for number, mutation in members if mutation.id not in state["dropped"]]
        print(f"building weave {index} of {len(kept)} mutations", flush=True)
        texts, places = weave(tree, kept)
        errors = tree.build(texts)
        if errors is None:
            tree.keep_products(folder)
            # Its tests and the mutations' numbers are others.
            (folder / "baseline.json").unlink(missing_ok=True)
            state["built"] = True
        else:
            for file, line, message in errors:
                # An error behind a mutation is of that mutation: what it declared is missing below.
                blamed = [mutation for first, _, mutation in places.get(file, []) if first <= line]
                if not blamed:
                    sys.exit(f"{file}:{line}: {message}: no mutation is near; does the tree build without any?")
                if blamed[-1].id not in state["dropped"]:
                    state["dropped"][blamed[-1].id] = {"digest": blamed[-1].digest, "why": message}
                    print(f"! {blamed[-1].id} cannot be woven: {message}", flush=True)
        state_file.write_text(json.dumps(state))
    return folder, [(number, mutation) for number, mutation in members if mutation.id not in state["dropped"]], True


# Running.

# A line of swift-testing's output about a test.
NAMED = r"(?m)^.{0,8}Test (`[^`\n]*`|\"[^\"\n]*\"|\w+\(.*?\))(?: with .*?)? "
FAILED = NAMED + "(?:failed|recorded an issue)"


def tests(tree, folder, command, seconds, name="alone", number=0):
    """Runs a command on products in a folder, to the first test that fails.

    Returns whether all passed, which test failed or did not end, and how long it took.
    """
    begin = time.monotonic()
    environment = os.environ | {
        "SENDGATE_BINARY": str(folder / "sendgate"), "SENDGATE_MUTANT": str(number), "SWIFT_BACKTRACE": "enable=no"}
    log = tree.work / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=tree.path, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
            start_new_session=True)
        status = None
        try:
            while status is None and not re.search(FAILED, log.read_text(errors="replace")):
                if time.monotonic() - begin > seconds:
                    status = f"nothing within {seconds:.0f} s"
                else:
                    time.sleep(0.1)
                    status = process.poll()
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    text = log.read_text(errors="replace")
    failed = list(dict.fromkeys(re.findall(FAILED, text)))
    if status == -signal.SIGTERM:
        print(f"! {name}: somebody ended its tests; once more", flush=True)
        return tests(tree, folder, command, seconds, name, number)
    if status == 0:
        count = re.search(r"Test run with (\d+) test", text)
        return bool(count and int(count[1])), failed or ["no test has such a name"], time.monotonic() - begin
    if not failed:
        failed = re.findall(r"(?m)^failed: ([^,\n]+)", text)
    if not failed:
        begun, ended = re.findall(NAMED + "started", text), re.findall(NAMED + "(?:passed|failed|skipped)", text)
        last = [name for name in begun if name not in ended][-1:]
        failed = [f"{name} (ended with {status})" for name in last or ["the process"]]
    return False, failed, time.monotonic() - begin


class Baseline:
    """What the tests do without a mutation: each must pass, and their times bound a mutant's and order its tests."""

    def __init__(self, tree, folder):
        self.tree, self.folder, self.lock = tree, folder, threading.Lock()
        self.file = folder / "baseline.json"
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.filters, self.failing = set(known.get("filters", [])), known.get("failing", [])
        self.seconds, self.ids = known.get("seconds", {}), known.get("ids", {})
        self.reached = known.get("reached")
        # Tests that killed a mutation here, by filter: the next mutation meets them first.
        self.killers = collections.defaultdict(dict)

    def measure(self, filters):
        """Runs all tests of these filters once, unless their times are known."""
        missing = sorted(set(filters) - self.filters)
        if missing:
            print(f"measuring the tests of {len(missing)} filters without a mutation", flush=True)
            self.run(filtered(self.folder, "|".join(missing)))
            self.filters |= set(missing)
        if self.reached is None:
            slow = [id for id in self.seconds if re.search(TRACED, id) and self.seconds[id] >= QUICK_SECONDS]
            print("looking which quick tests reach which mutation", flush=True)
            trace = self.tree.work / "trace"
            trace.unlink(missing_ok=True)
            times = self.run(
                filtered(self.folder, TRACED) + (["--skip", named(slow)] if slow else []), {"SENDGATE_MUTANT_TRACE": str(trace)})
            moments = collections.defaultdict(set)
            for line in trace.read_text().splitlines():
                milliseconds, number = line.split()
                moments[number].add(int(milliseconds))
            moments = {number: sorted(found) for number, found in moments.items()}
            self.reached = {number: [] for number in moments}
            for id, (begun, ended) in times.items():
                for number, found in moments.items():
                    # A test may begin while the one before is still written down.
                    position = bisect.bisect_left(found, 1000 * begun - 3)
                    if position < len(found) and found[position] <= 1000 * ended + 1:
                        self.reached[number].append(id)
        self.file.write_text(json.dumps({
            "filters": sorted(self.filters), "failing": self.failing, "seconds": self.seconds, "ids": self.ids,
            "reached": self.reached}))

    def run(self, command, more={}):
        """Runs tests without a mutation, and returns when each began and ended."""
        events = self.tree.work / "baseline.jsonl"
        events.unlink(missing_ok=True)
        environment = os.environ | {
            "SENDGATE_BINARY": str(self.folder / "sendgate"), "SENDGATE_MUTANT": "0", "SWIFT_BACKTRACE": "enable=no"} | more
        command += ["--event-stream-output-path", str(events), "--event-stream-version", "6.3"]
        with (self.tree.work / "baseline.log").open("wb") as output:
            subprocess.run(
                command, cwd=self.tree.path, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=environment)
        begun, times, failing = {}, {}, set()
        for line in events.read_bytes().split(b"\n"):
            payload = json.loads(line)["payload"] if line else {}
            # A function's id ends with its place, a suite's has none.
            id, place = re.match(r"(.*?)(/[^/`]+\.swift:\d+:\d+)?$", payload.get("testID", payload.get("id", "")), re.S).groups()
            if not place:
                continue
            match payload["kind"]:
                case "function":
                    self.ids[payload["name"]] = self.ids[f'"{payload.get("displayName")}"'] = id
                case "testStarted":
                    begun[id] = payload["instant"]["absolute"]
                case "testEnded":
                    times[id] = begun[id], payload["instant"]["absolute"]
                    if not more:
                        self.seconds[id] = times[id][1] - times[id][0]
                case "issueRecorded":
                    failing.add(id)
        failing |= begun.keys() - times.keys()
        for id in failing:
            print(f"! without a mutation this test does not pass, so it can kill none: {id}", flush=True)
        self.failing = sorted(failing | set(self.failing))
        return times

    def stages(self, number, suites, are_last):
        """The commands that run a filter's tests, each with the seconds after which it hangs: the quick ones first."""
        found = {id: self.seconds[id] for id in self.seconds if re.search(suites, id) and id not in self.failing}
        slow = [id for id in found if found[id] >= QUICK_SECONDS]
        quick = [id for id in found if found[id] < QUICK_SECONDS]
        with self.lock:
            first = [id for id in self.killers[suites] if id in quick]
        reaching = [
            id for id in self.reached.get(str(number), []) if re.search(suites, id) and id not in slow + self.failing]
        if len(reaching) > REACHING_MAX:
            reaching = []
        elif reaching:
            reaching += [id for id in quick if not re.search(TRACED, id)]
        first = [id for id in first if id in reaching or not reaching]
        rest = (quick, suites, slow + self.failing)
        groups = [(first, named(first), [])]
        if reaching:
            groups.append((reaching, named(reaching), []))
        else:
            modules = collections.defaultdict(list)
            for id in quick:
                modules[id.split(".")[0]].append(id)
            small = [ids for ids in modules.values() if len(ids) <= REACHING_MAX and len(modules) > 1]
            groups += [(ids, named(ids), []) for ids in sorted(small, key=lambda ids: sum(found[id] for id in ids))]
            if len(small) < len(modules):
                groups.append(rest)
        # Each slow test by itself, so that what kills comes soon: those that killed another first, then the quicker ones.
        with self.lock:
            slow.sort(key=lambda id: (id not in self.killers[suites], found[id]))
        last = ([rest] if reaching else []) + [([id], named([id]), []) for id in slow]
        for tests, filter, skipped in last if are_last else groups:
            if tests:
                yield filtered(self.folder, filter) + (["--skip", named(skipped)] if skipped else []), max(
                    SLOW_SECONDS_MIN if are_last else PATIENCE_SECONDS_MIN, PATIENCE * sum(found.get(id, QUICK_SECONDS) for id in tests))

    def killed(self, suites, names):
        with self.lock:
            self.killers[suites].update((self.ids[name], True) for name in names if name in self.ids)


def named(ids):
    """A filter for exactly these tests."""
    return "|".join("^" + re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", id) for id in ids)


def filtered(folder, suites):
    bundle = str(folder / PRODUCTS[0])
    return [bundle, "--testing-library", "swift-testing", "--no-parallel", "--filter", suites]


def try_out(tree, folder, number, mutation, baseline, all_modules, are_last):
    if all_modules:
        times = tree.work / f"times-{mutation.id}"
        stages = [([sys.executable, "Tests/run_tests.py", str(folder / PRODUCTS[0]), str(times), "modules"], 600)]
    else:
        stages = baseline.stages(number, mutation.suites, are_last)
    more = {"all_modules": True} if all_modules else {}
    took = 0
    for command, bound in stages:
        passed, failed, seconds = tests(tree, folder, command, bound, name=mutation.id, number=number)
        took += seconds
        if not passed:
            tree.record(mutation, "killed", by=failed, seconds=round(took, 1), **more)
            (tree.work / f"{mutation.id}.log").unlink()
            if not all_modules:
                baseline.killed(mutation.suites, failed)
            return
    tree.record(mutation, "survived" if are_last else PASSED_QUICK, seconds=round(took, 1), **more)


def run(options):
    tree = Tree(options.tree, options.build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    mutations, problems = read_list(tree.path)
    if problems:
        sys.exit("\n".join(problems))
    deadline = time.monotonic() + options.seconds
    results = tree.results()

    def is_wanted(mutation):
        known = results.get(mutation.id)
        if known and known["digest"] != mutation.digest:
            known = None
        survived = bool(known) and known["result"] == "survived"
        if not re.search(options.only, mutation.id):
            return False
        if options.all_modules:
            return survived and not known.get("all_modules")
        if options.survivors:
            return survived
        return options.again or not known or known["result"] == PASSED_QUICK

    # Every mutation is woven, whatever is run, so that one build serves all later runs.
    groups = weaves(tree, mutations)
    in_weaves = {id for index, members in enumerate(groups, 1) for id in woven_ids(tree, index, members)}
    part, parts = options.shard
    wanted = [
        mutation for mutation in in_turn(mutations)
        if is_wanted(mutation) and not (options.alone and mutation.id in in_weaves)][part - 1::parts]
    wanted_ids = {mutation.id: rank for rank, mutation in enumerate(wanted[:options.limit])}
    print(f"{len(wanted_ids)} mutations to run", flush=True)
    if options.alone:
        return run_alone(tree, [mutation for mutation in mutations if mutation.id in wanted_ids], options, deadline)
    for index, members in enumerate(groups, 1):
        if not any(mutation.id in wanted_ids for _, mutation in members):
            continue
        folder, inside, is_built = build_woven(tree, index, members, deadline)
        if not is_built:
            continue
        items = sorted(
            (item for item in inside if item[1].id in wanted_ids), key=lambda item: wanted_ids[item[1].id])
        baseline = Baseline(tree, folder)
        if not options.all_modules:
            baseline.measure(mutation.suites for _, mutation in items)

        def one(number, mutation, are_last):
            known = tree.results().get(mutation.id, {"digest": None})
            passed_quick = known["digest"] == mutation.digest and known["result"] == PASSED_QUICK
            if time.monotonic() < deadline and are_last == (options.all_modules or passed_quick):
                try_out(tree, folder, number, mutation, baseline, options.all_modules, are_last)

        with concurrent.futures.ThreadPoolExecutor(1 if options.all_modules else options.jobs) as pool:
            try:
                # Most are killed by a quick test, so all meet those first; then those that no argument speaks for.
                for are_last in [False, True]:
                    order = sorted(items, key=lambda item: are_last and bool(item[1].argued))
                    for task in [pool.submit(one, *item, are_last) for item in order]:
                        task.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return 0


def run_alone(tree, mutations, options, deadline):
    """Builds each mutation by itself, modules of lower layers together, as the files' order in the list has it."""
    folder = tree.path / ".build/debug"
    seconds = {}
    for mutation in mutations:
        if time.monotonic() > deadline:
            break
        lines = tree.read(mutation.file)
        if mutation.suites not in seconds:
            if errors := tree.build({}):
                sys.exit(f"without a mutation the tree does not build: {errors[0]}")
            passed, failed, seconds[mutation.suites] = tests(tree, folder, filtered(folder, mutation.suites), 900)
            if not passed:
                sys.exit(f"without a mutation, `{mutation.suites}` does not pass: {', '.join(failed)}")
        count = sum(mark in "=-" for mark, _ in mutation.hunk)
        lines[mutation.start:mutation.start + count] = replaced(lines, mutation)
        if errors := tree.build({mutation.file: "\n".join(lines)}):
            tree.record(mutation, "does not build", why=errors[0][2])
            continue
        bound = max(PATIENCE_SECONDS_MIN, PATIENCE * seconds[mutation.suites])
        passed, failed, took = tests(tree, folder, filtered(folder, mutation.suites), bound)
        more = {"seconds": round(took, 1), "alone": True}
        tree.record(mutation, "survived" if passed else "killed", **(more if passed else more | {"by": failed}))
    return 0


def table(tree):
    mutations, problems = check(tree)
    results_file = tree / ".build/mutants/results.jsonl"
    lines = [json.loads(line) for line in results_file.read_text().splitlines()] if results_file.exists() else []
    results = {line["id"]: line for line in lines}
    groups = collections.defaultdict(list)
    counts = collections.defaultdict(collections.Counter)
    for mutation in mutations:
        known = results.get(mutation.id)
        result = known["result"] if known and known["digest"] == mutation.digest else "not run"
        result = "not run" if result == PASSED_QUICK else result
        if result == "survived" and mutation.argued:
            result = "argued"
        elif result == "killed" and known.get("all_modules"):
            result = "killed elsewhere"
        groups[result].append((mutation, known))
        counts[mutation.promise][result] += 1
    kinds = ["killed", "killed elsewhere", "survived", "argued", "does not build", "not run"]
    print("  ".join(["promise     "] + kinds))
    for promise, count in counts.items():
        print(f"{promise:12}  " + "  ".join(f"{count[kind]:{len(kind)}}" for kind in kinds))
    print(f"{'in all':12}  " + "  ".join(f"{len(groups[kind]):{len(kind)}}" for kind in kinds))
    for kind in kinds[1:-1]:
        for mutation, known in groups[kind]:
            why = mutation.argued or ", ".join(known.get("by", [])[:3]) or known.get("why", "")
            print(f"{kind}: {mutation.id} ({mutation.promise}, {mutation.file}) {why}")
    for problem in problems:
        print(problem)
    return 1 if problems or groups["survived"] or groups["does not build"] else 0


def shard(text):
    part, parts = (int(number) for number in text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError
    return part, parts


def failures_of_own_tests():
    examples = [doctest.DocTestSuite(module) for module in (sys.modules[__name__], swift_source, mutations_list)]
    suite = unittest.TestSuite([unittest.defaultTestLoader.loadTestsFromName("mutations_tests"), *examples])
    result = unittest.TestResult()
    suite.run(result)
    return result.failures + result.errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "run", "table"])
    parser.add_argument("--tree", type=lambda text: pathlib.Path(os.path.abspath(text)), default=HERE.parent)
    parser.add_argument("--only", default="")
    parser.add_argument("--shard", type=shard, default=(1, 1))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=2)
    for flag in ["--again", "--survivors", "--alone", "--all-modules"]:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--build", default=BUILD)
    options = parser.parse_args()
    if options.what == "run":
        return run(options)
    if options.what == "table":
        return table(options.tree)
    mutations, problems = check(options.tree)
    problems += [f"{test}: {trace.splitlines()[-1]}" for test, trace in failures_of_own_tests()]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(mutations)} mutations, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
