"""Which system calls of a program its unit would refuse.

    python3 unit_calls.py UNIT TRACE

UNIT is a service with SystemCallFilter lines, TRACE what `strace -f -o` wrote. The groups are systemd's own, as systemd-analyze names
them. Prints one line of JSON: how many different calls there were, and those that are refused.
"""

import json
import re
import subprocess
import sys


def group(name):
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", name], check=True, text=True, stdout=subprocess.PIPE).stdout
    calls = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            calls |= group(word)
        elif word and not word.startswith("#"):
            calls.add(word)
    return calls


def allowed(unit):
    calls = set()
    for line in open(unit):
        match = re.match(r"SystemCallFilter=(~?)(.*)", line.strip())
        for word in match[2].split() if match else []:
            some = group(word) if word.startswith("@") else {word}
            calls = calls - some if match[1] else calls | some
    return calls


trace = open(sys.argv[2], errors="replace").read()
used = set(re.findall(r"(?m)^(?:\d+\s+)?([a-z_0-9]+)\(", trace))
# Of SQLite, for root alone, whom neither unit starts a service as.
refused = used - allowed(sys.argv[1]) - {"fchown"}
print(json.dumps({"used": len(used), "refused": sorted(refused)}))
