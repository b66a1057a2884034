"""Runs the built test bundle side by side, and tells where the time went.

    python3 Tests/run_tests.py BUNDLE FOLDER check|modules|all [MODULE ...]
    python3 Tests/run_tests.py BUNDLE FOLDER soak [PART ...]

Every module is a process of its own, and so is every suite that takes long (see `LONG` and `SPLIT`); inside a process tests run
one after another, so that each test's time is its own. What needs the whole machine (the suite `Alone`) runs last, by itself.
FOLDER keeps each process's output (`NAME.log`), its event stream (`NAME.jsonl`, swift-testing's version 6.3) and the table
(`times.txt`). `FOLDER/steps.tsv` holds what came before, one step and its seconds per line.

`modules` leaves out what needs other processes, and `check` the suites of `LONG` too. They and `all` run the short form of each
long test, `soak` the whole one, part by part (see `SOAK`). A part that passed is noted in `FOLDER/passed.json` with what was
built, so that a run that was broken off goes on with the parts that are left.

Ends with 1 when a test failed, a process ended otherwise, or a listed test did not run.
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

PROCESSES = "SendgateEndToEndTests"
# Modules whose suites are processes of their own, because a suite may count what its process did, or be a history of its own.
SPLIT = {PROCESSES, "SendgateCommandTests", "SimulationTests"}
# Suites of ten seconds and more that need no other process. Each is a process of its own, or the longest module would be the
# length of the run; `make check` leaves them to `make test`.
LONG = {
    *(
        f"CompliancePolicyTests.{name}Tests"
        for name in (
            "BundleMutant", "CarelessEdit", "DatedDifference", "DemandedRow", "Differential", "GateMutant",
            "LinkAndText", "PolicyEdit", "Proof", "SentenceClaim", "SeparationOfDuties",
        )
    ),
    *(f"GatewayPipelineTests.{name}Tests" for name in ("FlippedPage", "SimulatedWeek")),
    *(
        f"SendgateCommandTests.{name}Tests"
        for name in (
            "AuditCommand", "BadBundle", "KeyChangeCommand", "PolicyDiff", "PolicySigning", "RestoreCommand",
            "SeparationAtLoad", "Serving", "UnlawfulBundle",
        )
    ),
    *(
        f"SimulationTests.{number}History"
        for number in ("Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth")
    ),
    "SQLiteStoreTests.DamageTests",
}
ALONE = f"{PROCESSES}.Alone"
# The parts of a soak: the suites, and a module, that have a whole form besides the short one, which is every suite that asks
# `Soak` (Tests/GateTestKit) how long to be; `SoakTests` compares. On two processors a part takes 90 minutes at most.
SOAK = {
    "histories": [
        f"SimulationTests.{number}History"
        for number in ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth")
    ],
    "policies": [
        "CompliancePolicyTests.BundleMutantTests", "CompliancePolicyTests.CarelessEditTests",
        "CompliancePolicyTests.DemandedRowTests",
        "CompliancePolicyTests.GateMutantTests", "CompliancePolicyTests.PolicyEditTests",
        "CompliancePolicyTests.ProofTests", "CompliancePolicyTests.SeparationOfDutiesTests",
        "SendgateCommandTests.PolicySigningTests", "SendgateCommandTests.SeparationAtLoadTests",
        "SendgateCommandTests.UnlawfulBundleTests",
    ],
    "texts": ["PayloadCompositionTests.WrittenTextTests", f"{PROCESSES}.EndToEnd/AddressFormTests"],
    # Whole, its gateways keep their state in files in place of memory.
    "stores": ["GatewayPipelineTests"],
    # Every page and every sealed value.
    "bytes": [
        "GatewayPipelineTests.FlippedPageTests", "SQLiteStoreTests.MigrationTests", "SQLiteStoreTests.ResealingTests",
        "SendgateCommandTests.KeptStateTests", f"{PROCESSES}.EndToEnd/MigrationKillTests",
    ],
    "kills": [
        f"{ALONE}/KillTests", f"{PROCESSES}.EndToEnd/KeyKillTests", f"{PROCESSES}.EndToEnd/RotationTests",
    ],
    "fuzz": [f"{PROCESSES}.ContractTests", f"{PROCESSES}.GrantFuzzTests"],
    "pages": [f"{PROCESSES}.EndToEnd/UnsubscribeTests"],
    "recipes": [f"{PROCESSES}.EndToEnd/RecipeRunTests"],
    # An hour of sends at half of what the machine takes.
    "hour": [f"{PROCESSES}.EndToEnd/BenchTests"],
    # Release packages on a fresh Debian.
    "packages": [f"{PROCESSES}.EndToEnd/PackageTests"],
}
# Two processors: two processes that compute, or three of which one waits for processes of its own.
ABREAST = {"modules": 2, "processes": 3}
ABREAST_MAX = 3
# A test that waits for ever is a failure with a name, not a run without an end.
SECONDS_MAX = {"modules": 450, "processes": 600}
SOAK_SECONDS_MAX = 5_400
SUITES_SHOWN = 40
# Of what is wrong with a process, at the end.
LINES_SHOWN, COLUMNS_SHOWN = 6, 400


# A step of a test's name: `quoted`, which may hold anything, or plain.
STEP = re.compile(r"(?:`[^`]*`|[^/`])+")


def suite_of(test):
    """`Module.Suite/Inner` of the function `Module.Suite/Inner/test()`."""
    return "/".join(STEP.findall(test)[:-1])


class Job:
    """One process of the bundle and what it is to run."""

    def __init__(self, name, tests, seconds_max=None):
        self.name, self.tests = name, tests
        # Suites below `name` that are processes of their own.
        self.others = sorted(
            {suite for suite in LONG if suite.startswith(f"{name}.")} - {suite_of(test) for test in tests})
        self.kind = "processes" if name.startswith(PROCESSES) else "modules"
        self.seconds_max = seconds_max or SECONDS_MAX[self.kind]
        self.seconds = 0.0
        self.problems = []
        self.suites = collections.Counter()

    def run(self, bundle, folder):
        file = self.name.replace("/", ".")
        log, events = folder / f"{file}.log", folder / f"{file}.jsonl"
        events.unlink(missing_ok=True)
        begin = time.monotonic()
        command = [bundle, "--testing-library", "swift-testing", "--no-parallel"]
        command += ["--filter", f"^{re.escape(self.name)}[./]"]
        for suite in self.others:
            command += ["--skip", f"^{re.escape(suite)}[./]"]
        command += ["--event-stream-output-path", str(events), "--event-stream-version", "6.3"]
        with log.open("wb") as output:
            try:
                status = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    timeout=self.seconds_max).returncode
            except subprocess.TimeoutExpired:
                status = f"nothing within {self.seconds_max} s"
        self.seconds = time.monotonic() - begin
        started, ended = self.read(events)
        for test, at in started.items():
            if test not in ended:
                self.problems.append(f"did not end: {test}")
            else:
                self.suites[suite_of(test)] += ended[test] - at
        missing = self.tests - set(started)
        self.problems += [f"did not run: {test}" for test in sorted(missing)]
        if status != 0:
            text = log.read_text(errors="replace")
            issues = re.findall(r"(?m)^.*(?:recorded an issue|[Ff]atal error|error:).*(?:\n(?!.*(?:◇|✔|✘)).*){0,12}", text)
            self.problems.append(f"ended with {status}")
            self.problems += issues or [text[-4000:]]
        return self

    @staticmethod
    def read(events):
        """When each test function began and ended, in seconds."""
        started, ended = {}, {}
        if not events.exists():
            return started, ended
        # Not `splitlines`, which also splits at U+2028, and the name of a test may hold it.
        for line in events.read_bytes().split(b"\n"):
            if b'"testStarted"' not in line and b'"testEnded"' not in line:
                continue
            try:
                payload = json.loads(line)["payload"]
            except (ValueError, KeyError):
                continue
            # A function's id ends with its place, a suite's has none.
            test, place, _ = re.match(r"(.*?)(/[^/`]+\.swift:\d+:\d+)?()$", payload.get("testID", ""), re.S).groups()
            if place:
                target = started if payload["kind"] == "testStarted" else ended
                target[test] = payload["instant"]["absolute"]
        return started, ended


def listed(bundle):
    """Every test function of the bundle."""
    listing = subprocess.run(
        [bundle, "--testing-library", "swift-testing", "--list-tests"], capture_output=True, text=True, check=True)
    tests = (line.strip() for line in listing.stdout.split("\n"))
    return [test for test in tests if len(STEP.findall(test)) > 1]


def jobs(tests, wanted, modules):
    suites = {suite_of(test) for test in tests}
    there = {suite.split(".")[0] for suite in suites}
    gone = sorted(suite for suite in LONG - suites if suite.split(".")[0] in there)
    if gone:
        sys.exit(f"no suite is called {', '.join(gone)}: mend `LONG` in {__file__}")
    groups = collections.defaultdict(set)
    for test in tests:
        module = test.split(".")[0]
        if modules and module not in modules:
            continue
        if module != PROCESSES or wanted == "all":
            suite = suite_of(test)
            if wanted == "check" and suite in LONG:
                continue
            name = suite if module in SPLIT or suite in LONG else module
            groups[ALONE if test.startswith(ALONE) else name].add(test)
    return [Job(name, some) for name, some in groups.items()]


def soak_jobs(tests, part):
    found = []
    for suite in SOAK[part]:
        own = {test for test in tests if suite in (suite_of(test), test.split(".")[0])}
        found.append(Job(suite, own, SOAK_SECONDS_MAX))
        if not own:
            found[-1].problems.append("there is no such suite")
    return found


def side_by_side(found, bundle, folder, earlier, abreast=ABREAST_MAX):
    """Runs jobs, those that took longest the last time first, and of each kind no more at once than `ABREAST` says."""
    left = sorted(found, key=lambda job: -earlier.get(job.name, 1e6))
    running = {}
    with concurrent.futures.ThreadPoolExecutor(abreast) as pool:
        while left or running:
            kinds = collections.Counter(job.kind for job in running.values())
            for job in list(left):
                if len(running) < abreast and kinds[job.kind] < ABREAST[job.kind]:
                    left.remove(job)
                    kinds[job.kind] += 1
                    running[pool.submit(job.run, bundle, folder)] = job
            ended, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                del running[future]
                job = future.result()
                mark = "✘" if job.problems else "✔"
                print(f"{mark} {job.name}: {len(job.tests)} tests in {job.seconds:.1f} s", flush=True)
                for problem in job.problems:
                    print(f"    {problem}", flush=True)


def soak(bundle, folder, parts, earlier, steps):
    """Runs parts whole: those named, else those that have not passed since the last build."""
    unknown = set(parts) - set(SOAK)
    if unknown:
        sys.exit(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(SOAK)}")
    os.environ["SENDGATE_SOAK"] = "1"
    # The seed of the whole run, whatever day it ends on.
    os.environ.setdefault("SENDGATE_SEED", str(int(time.time()) // 86_400))
    built = hashlib.sha256(pathlib.Path(bundle).read_bytes()).hexdigest()
    marks = folder / "passed.json"
    passed = json.loads(marks.read_text()) if marks.exists() else {}
    passed = {part: mark for part, mark in passed.items() if mark["built"] == built and part in SOAK}
    if not parts:
        parts = [part for part in SOAK if part not in passed] or list(SOAK)
    tests, found = listed(bundle), []
    for part in parts:
        print(f"part {part}, SENDGATE_SEED={os.environ['SENDGATE_SEED']}", flush=True)
        begin = time.monotonic()
        some = soak_jobs(tests, part)
        # What needs the whole machine has it.
        alone = any(job.name.startswith(ALONE) for job in some)
        side_by_side(some, bundle, folder, earlier, 1 if alone else ABREAST_MAX)
        steps.append((part, time.monotonic() - begin))
        found += some
        passed.pop(part, None)
        if not any(job.problems for job in some):
            passed[part] = {
                "built": built, "seed": os.environ["SENDGATE_SEED"], "seconds": round(steps[-1][1], 1)}
        marks.write_text(json.dumps(passed, indent=2))
    left = [part for part in SOAK if part not in passed]
    print(f"left: {', '.join(left) or 'nothing'}")
    return found


def table(steps, found):
    suites, tests = collections.Counter(), collections.Counter()
    for job in found:
        suites += job.suites
        tests.update(suite_of(test) for test in job.tests)
    lines = ["seconds  step"] + [f"{seconds:7.1f}  {name}" for name, seconds in steps]
    lines += [f"{sum(seconds for _, seconds in steps):7.1f}  in all", "", "seconds  tests  suite"]
    shown = suites.most_common(SUITES_SHOWN)
    lines += [f"{seconds:7.1f}  {tests[name]:5}  {name}" for name, seconds in shown]
    if len(suites) > len(shown):
        rest = sum(suites.values()) - sum(seconds for _, seconds in shown)
        lines.append(f"{rest:7.1f}         {len(suites) - len(shown)} more suites")
    return "\n".join(lines) + "\n"


def main():
    bundle, folder, wanted, *modules = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # A killed process must die, not print where it was.
    os.environ["SWIFT_BACKTRACE"] = "enable=no"
    record = folder / "jobs.json"
    earlier = json.loads(record.read_text()) if record.exists() else {}
    steps_file = folder / "steps.tsv"
    steps = [line.split("\t") for line in steps_file.read_text().splitlines()] if steps_file.exists() else []
    steps = [(name, float(seconds)) for name, seconds in steps]
    if wanted == "soak":
        found = soak(bundle, folder, modules, earlier, steps)
    else:
        if wanted == "check":
            # Without the long suites, which compute, every process waits for the disk half of its time.
            ABREAST["modules"] = ABREAST_MAX
        found = jobs(listed(bundle), wanted, modules)
        for name, some in [
            ("the suites", [job for job in found if job.name != ALONE]),
            ("what needs the machine alone", [job for job in found if job.name == ALONE]),
        ]:
            begin = time.monotonic()
            if some:
                side_by_side(some, bundle, folder, earlier)
                steps.append((name, time.monotonic() - begin))
    record.write_text(json.dumps(earlier | {job.name: round(job.seconds, 1) for job in found}))
    text = table(steps, found)
    (folder / "times.txt").write_text(text)
    print(f"\n{text}")
    bad = [job for job in found if job.problems]
    for job in bad:
        print(f"failed: {job.name}, see {folder / job.name.replace(chr(47), chr(46))}.log")
        # Once more in short, for who sees the end of the output only.
        for line in "\n".join(job.problems).splitlines()[:LINES_SHOWN]:
            print(f"    {line[:COLUMNS_SHOWN]}")
    passed = sum(len(job.tests) for job in found if not job.problems)
    failed = sum(len(job.tests) for job in bad)
    print(f"{passed} passed, {failed} failed")
    return 1 if bad or not found else 0


if __name__ == "__main__":
    sys.exit(main())
