#!/usr/bin/env python3
"""User instructions and allocations a send costs, counted by callgrind: nearly the same on every run of one machine.

    instructions.py PROGRAM POLICIES [COUNT]

PROGRAM is a built `GateBenchmarks`. Each kind is run with COUNT sends (1,000 unless given) and with twice as many; the
difference leaves out the start, the people and the proof. Everything is counted that the process does for a send: engine,
sealers, claim and report of the relay; not sockets, publisher and kernel. Needs Debian's `valgrind` and `binutils`.
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


def counted(program: str, policies: str, kind: str, count: int) -> tuple[int, int]:
    """Instructions and allocations of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, policies, "sends", kind,
            str(count)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or found is None:
            sys.exit(f"{' '.join(command)} ended with {run.returncode}:\n{run.stderr[-2000:]}")
        return int(found.group(1)), allocations(f"{folder}/out")


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program, policies = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) == 4 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        # Valgrind 3.19 cannot read the compiler's debug information, and ends where it tries.
        stripped = f"{folder}/{os.path.basename(program)}"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        measure(stripped, policies, count)


def measure(program: str, policies: str, count: int) -> None:
    for kind in KINDS:
        once, twice = (counted(program, policies, kind, times * count) for times in (1, 2))
        instructions, blocks = ((more - less) // count for less, more in zip(once, twice))
        print(f"a send, {kind}\t{instructions} user instructions\t{blocks} allocations", flush=True)


if __name__ == "__main__":
    main()
