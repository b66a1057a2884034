#!/usr/bin/env python3
"""Searches files for texts that must not be in them, whatever they are written as.

    find_canaries.py TEXT... -- PLACE...
    find_canaries.py --plant FOLDER TEXT

A place is a file or a folder with everything in it. Each text is looked for as it is, in the other case, reversed, in
hexadecimal, UTF-16, base64 and base64url at each of the three alignments, percent-encoded and escaped as JSON may
escape it, and in all of these ways inside whatever gzip streams a file holds. One line of JSON for each find:
{"file", "text", "form"}; the last line is {"files": N, "bytes": N}, so that a search of nothing cannot pass for one that
found nothing. A file that is there and cannot be read ends everything with 1.

With --plant, a file of each form is written into FOLDER, named after it: what the search must find.
"""

import base64
import gzip
import json
import os
import stat
import sys
import zlib

GZIP = b"\x1f\x8b\x08"


def forms(text):
    """The bytes to look for, by the name of the form."""
    data = text.encode()
    found = {
        "plain": data, "lower": text.lower().encode(), "upper": text.upper().encode(), "reversed": data[::-1],
        "hex": data.hex().encode(), "hex-upper": data.hex().upper().encode(),
        "utf-16-le": text.encode("utf-16-le"), "utf-16-be": text.encode("utf-16-be"),
        "percent": b"".join(b"%%%02x" % byte for byte in data),
        "percent-upper": b"".join(b"%%%02X" % byte for byte in data),
        "json": "".join(f"\\u{ord(character):04x}" for character in text).encode(),
        "json-upper": "".join(f"\\u{ord(character):04X}" for character in text).encode(),
    }
    for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
        for shift in range(3):
            whole = encode(bytes(shift) + data)
            # The characters that hold nothing of the neighbours.
            bits = 8 * (shift + len(data))
            found[f"{name}-{shift}"] = whole[-(-8 * shift // 6):bits // 6]
    return found


def search(data, needles):
    """Text and form of all that is in the bytes."""
    yield from (each for each, needle in needles if needle in data)
    place = data.find(GZIP)
    while place >= 0:
        try:
            inner = zlib.decompressobj(31).decompress(data[place:])
        except zlib.error:
            inner = b""
        yield from ((text, f"gzip {form}") for text, form in search(inner, needles))
        place = data.find(GZIP, place + 1)


def files(place):
    if not os.path.isdir(place):
        yield place
        return
    for folder, _, names in os.walk(place, onerror=fail):
        for name in names:
            yield os.path.join(folder, name)


def fail(error):
    # A gateway that runs removes the folder of a partial bundle once the whole one is there.
    if not isinstance(error, FileNotFoundError):
        sys.exit(f"find_canaries: error: {error}")


def main(texts, places):
    needles = [((text, form), needle) for text in texts for form, needle in forms(text).items()]
    file_count = byte_count = 0
    for place in places:
        for file in files(place):
            try:
                if not stat.S_ISREG(os.stat(file).st_mode):
                    continue
                with open(file, "rb") as opened:
                    data = opened.read()
            except FileNotFoundError:
                # Replaced while the gateway runs.
                continue
            except OSError as error:
                fail(error)
            file_count += 1
            byte_count += len(data)
            for text, form in search(data, needles):
                print(json.dumps({"file": file, "text": text, "form": form}))
    print(json.dumps({"files": file_count, "bytes": byte_count}))


def plant(folder, text):
    os.mkdir(folder)
    around = b"in front of it ", b" and behind it"
    for form, needle in forms(text).items():
        data = needle.join(around)
        if form.startswith("base64"):
            encode = base64.urlsafe_b64encode if "url" in form else base64.b64encode
            # As it comes out where something of another length stands in front of it.
            data = encode(b"x" * (3 + int(form[-1])) + text.encode() + b"yz")
        with open(os.path.join(folder, form), "wb") as file:
            file.write(data)
    with open(os.path.join(folder, "gzip plain"), "wb") as file:
        file.write(b"a header" + gzip.compress(text.encode().join(around)) + b"a trailer")


if __name__ == "__main__":
    if sys.argv[1] == "--plant":
        plant(*sys.argv[2:4])
    else:
        border = sys.argv.index("--")
        main(sys.argv[1:border], sys.argv[border + 1:])
