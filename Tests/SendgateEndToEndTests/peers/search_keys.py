"""Searches the memory of a running gateway for its secret keys.

    search_keys.py PID DIRECTORY

DIRECTORY has the key files, the root key among them. For each key, where its 32 bytes and their hexadecimal digits stand
goes to standard output as one line of JSON: how often in mappings that are locked and in no core dump (`lo` and `dd` of
`VmFlags`, proc_pid_smaps(5)), in mappings that are in no core dump only, and in all others.
"""

import json
import pathlib
import re
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def secrets(directory):
    """The 32 bytes of every key, by its id."""
    files = [json.loads(path.read_text()) for path in sorted(pathlib.Path(directory).glob("*.key"))]
    found = {key["id"]: bytes.fromhex(key["secret"]) for key in files if "secret" in key}
    for key in files:
        if "wrapped" in key and key["root"] in found:
            sealed = bytes.fromhex(key["wrapped"])
            context = "\0".join(["sendgate/key-file/v1", key["purpose"], key["id"], str(key["created"])]).encode()
            found[key["id"]] = AESGCM(found[key["root"]]).decrypt(sealed[:12], sealed[12:], context)
    return found


def mappings(pid):
    """Begin, end and flags of everything that can be read."""
    found = []
    for line in open(f"/proc/{pid}/smaps"):
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r?)\S* \S+ \S+ \S+ *(\S*)", line)
        if head:
            # What the kernel maps of its own is no memory of the process's.
            is_read = head[3] == "r" and head[4] not in ("[vvar]", "[vvar_vclock]", "[vsyscall]")
            found.append([int(head[1], 16), int(head[2], 16), is_read, set()])
        elif line.startswith("VmFlags:"):
            found[-1][3] = set(line.split()[1:])
    return [(begin, end, flags) for begin, end, is_read, flags in found if is_read]


def contents(memory, begin, end):
    """A mapping may go while it is read; then what is left of it was read."""
    pieces = []
    memory.seek(begin)
    while begin < end:
        try:
            piece = memory.read(min(end - begin, 1 << 24))
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)


def main(pid, directory):
    needles = secrets(directory)
    places = {key: {"locked": 0, "undumped": 0, "elsewhere": 0} for key in needles}
    byte_count = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for begin, end, flags in mappings(pid):
            content = contents(memory, begin, end)
            byte_count += len(content)
            place = "elsewhere" if "dd" not in flags else "locked" if "lo" in flags else "undumped"
            for key, secret in needles.items():
                places[key][place] += content.count(secret)
                places[key]["elsewhere"] += content.count(secret.hex().encode())
    print(json.dumps({"byte_count": byte_count, "keys": [{"id": key} | places[key] for key in places]}))


main(*sys.argv[1:])
