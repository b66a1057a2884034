#!/usr/bin/env python3
"""User instructions and allocations a send costs, counted by callgrind: nearly the same on every run of one machine.

    instructions.py PROGRAM POLICIES [COUNT [PEOPLE]]

PROGRAM is a built `GateBenchmarks`. Each kind is run with COUNT sends (1,000 unless given) and with five times as many, to PEOPLE
(1,000) in turn; the difference leaves out the start, the people and the proof. Batches fall differently in each run, which is some 2 %.
Everything is counted that the process does for a send: engine, sealers, claim and report of the relay; not sockets,
publisher and kernel. Shown are the thread of the engine, the one that answers, and the whole process. Callgrind counts SHA-256 without
its instructions of the processor, and each byte of a repeated string instruction: some 6,000 of a refused send.
Needs Debian's `valgrind` and `binutils`.
"""

import os
import re
import subprocess
import sys
import tempfile

KINDS = ["open", "refused", "sealed"]


ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"}


def allocations(profile: str) -> int:
    """Calls of the C allocator in a callgrind profile: a function's name stands where its number is first met."""
    names: dict[str, str] = {}
    called, count = "", 0
    for line in open(profile, encoding="utf-8", errors="replace"):
        if match := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
            number, name = match.groups()
            if name:
                names[number] = re.sub(r"'\d+$", "", name)
            called = names[number] if line.startswith("c") else ""
        elif line.startswith("calls=") and called in ALLOCATORS:
            count += int(line[6:].split()[0])
    return count


# What only the thread calls.
THREADS = {"engine": "6EngineC10commitNext", "answers": "15CommitAnsweringC5start"}


def counted(program: str, policies: str, kind: str, count: int, people: int) -> dict[str, int]:
    """Instructions of each thread and of a whole run, and the allocations of the engine's thread."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/out", program,
            policies, "sends", kind, str(count), str(people)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or found is None:
            sys.exit(f"{' '.join(command)} ended with {run.returncode}:\n{run.stderr[-2000:]}")
        counts = {"process": int(found.group(1))}
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
                profile = file.read()
            for thread, function in THREADS.items():
                total = re.search(r"^totals: (\d+)", profile, re.MULTILINE)
                if function in profile and total:
                    counts[thread] = int(total.group(1))
                    if thread == "engine":
                        counts["allocations"] = allocations(f"{folder}/{name}")
        return counts


def main() -> None:
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    program, policies = sys.argv[1:3]
    count, people = (int(sys.argv[place]) if place < len(sys.argv) else 1_000 for place in (3, 4))
    with tempfile.TemporaryDirectory() as folder:
        # Valgrind 3.19 cannot read the compiler's debug information, and ends where it tries.
        stripped = f"{folder}/{os.path.basename(program)}"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
        measure(stripped, policies, count, people)


def measure(program: str, policies: str, count: int, people: int) -> None:
    for kind in KINDS:
        less, more = (counted(program, policies, kind, times * count, people) for times in (1, 5))
        a_send = {name: (more[name] - less[name]) // (4 * count) for name in more}
        print(
            f"a send, {kind}\tengine {a_send['engine']}\tanswers {a_send['answers']}\tprocess {a_send['process']}"
            f"\tallocations of the engine {a_send['allocations']}", flush=True)


if __name__ == "__main__":
    main()
