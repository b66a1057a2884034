#!/usr/bin/env python3
"""Compares every answer producers were given with the trail, and with what the delivery layer was given.

    check_evidence.py TRAIL --journal FILE... [--record FILE] [--foreign N]

TRAIL is a copy of a trail directory in the C2SP tlog-tiles layout, JOURNAL what flood.py wrote, RECORD what
delivery_layer.py wrote; N sends are in the trail that no journal knows. Hashes are Python's own; the checkpoint's signature is checked elsewhere. Every
difference is a line on standard error and makes the exit status 3; standard output is one JSON object of counts,
so that a check that compared nothing cannot pass for one that did.
"""

import argparse
import base64
import collections
import hashlib
import json
import pathlib
import struct
import sys


def tile_name(index):
    name = f"{index % 1000:03}"
    while index := index // 1000:
        name = f"x{index % 1000:03}/{name}"
    return name


def entries(trail, size):
    """The bytes of every entry under the checkpoint."""
    for first in range(0, size, 256):
        width = min(256, size - first)
        name = tile_name(first // 256) + ("" if width == 256 else f".p/{width}")
        data = (trail / "tile" / "entries" / name).read_bytes()
        offset = 0
        for _ in range(width):
            (length,) = struct.unpack_from(">H", data, offset)
            yield data[offset + 2:offset + 2 + length]
            offset += 2 + length
        if offset != len(data):
            raise SystemExit(f"check_evidence: error: tile/entries/{name} has {len(data) - offset} bytes too many")


def merkle_root(leaves):
    """RFC 6962 section 2.1, from the left: complete subtrees, then their join."""
    stack = []
    for position, leaf in enumerate(leaves, 1):
        stack.append(leaf)
        while position % 2 == 0:
            right = stack.pop()
            stack.append(hashlib.sha256(b"\x01" + stack.pop() + right).digest())
            position //= 2
    if not stack:
        return hashlib.sha256(b"").digest()
    root = stack.pop()
    while stack:
        root = hashlib.sha256(b"\x01" + stack.pop() + root).digest()
    return root


class Differences:
    def __init__(self):
        self.count = 0

    def expect(self, condition, what):
        if not condition:
            self.count += 1
            if self.count <= 50:
                print(f"check_evidence: difference: {what}", file=sys.stderr)
        return condition


def lines(path):
    with open(path, "rb") as file:
        return [json.loads(line) for line in file]


def without_replayed(answer):
    return {name: value for name, value in answer.items() if name not in ("replayed", "status")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trail", type=pathlib.Path)
    parser.add_argument("--journal", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--foreign", type=int, default=0)
    options = parser.parse_args()
    differences = Differences()
    expect = differences.expect
    counts = collections.Counter()

    origin, size, root = (options.trail / "checkpoint").read_text().splitlines()[:3]
    raw = list(entries(options.trail, int(size)))
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in raw]
    expect(base64.b64encode(merkle_root(leaves)).decode() == root, "the entries do not have the checkpoint's root")
    parsed = [json.loads(entry) for entry in raw]
    time = 0
    for index, entry in enumerate(parsed):
        expect(entry["index"] == index, f"entry {index} says it is {entry['index']}")
        expect(entry["time"] >= time, f"entry {index} is earlier than the one before")
        time = entry["time"]
        counts["entries"] += 1
        counts[f"entries of {entry['kind']}"] += 1
    sends = {entry["send_id"]: entry for entry in parsed if entry["kind"] == "send"}
    expect(len(sends) == counts["entries of send"], "a send has two entries")

    answers = {}
    for record in (record for path in options.journal for record in lines(path)):
        status, answer, caller = record["status"], record["answer"], record["caller"]
        counts[f"answers of {status}"] += 1
        if not expect("trail" in answer, f"an answer without evidence: {record}"):
            continue
        place = answer["trail"]
        index = place["index"]
        expect(place["origin"] == origin, f"entry {index} is in the trail `{place['origin']}`")
        if not expect(index < len(raw), f"entry {index} was acknowledged and is not in the trail of {len(raw)}"):
            continue
        expect(leaves[index].hex() == place["leaf"], f"entry {index} is not what was acknowledged")
        entry = parsed[index]
        if "send_id" not in answer:
            counts["edits acknowledged"] += 1
            continue
        if not expect(entry.get("send_id") == answer["send_id"], f"entry {index} is another send"):
            continue
        for name in ("outcome", "reason", "policy"):
            expect(entry.get(name) == answer[name], f"entry {index}: {name} was answered as `{answer[name]}`")
        expect(entry.get("caller") == caller, f"entry {index} is `{entry.get('caller')}`'s, `{caller}` was answered")
        expect((status == 202) == (entry["outcome"] in ("forward", "defer", "digest")), f"entry {index}: {status}")
        promised = {each["message_id"] for each in answer["deliveries"] if "message_id" in each}
        recorded = {each["message_id"] for each in entry["deliveries"] if "message_id" in each}
        expect(promised == recorded, f"entry {index}: messages {recorded}, answered {promised}")
        key = (caller, record["ask"]["id"])
        first = answers.setdefault(key, without_replayed(answer))
        if first != without_replayed(answer):
            expect(False, f"{key} was answered {first} and later {answer}")
        counts["replays"] += bool(answer.get("replayed"))
        counts["sends acknowledged"] += 1
    counts["ids acknowledged"] = len(answers)
    if options.journal:
        # Every id was asked until it was answered, so one entry more is a send somebody decided twice.
        named = collections.Counter(answer["send_id"] for answer in answers.values())
        unnamed = [send for send in sends if not named[send]]
        expect(len(unnamed) == options.foreign, f"{len(unnamed)} sends have an entry and no answer: {unnamed[:5]}")
        for send, count in named.items():
            expect(count == 1, f"the send {send} is the answer to {count} ids")

    if options.record:
        taken_out = {entry["message_id"] for entry in parsed
                     if entry["kind"] == "unsent"
                     or entry["kind"] == "redecision" and entry["decision"]["outcome"] != "forward"}
        promised = {}
        for entry in sends.values():
            for each in entry["deliveries"]:
                if "message_id" in each:
                    expect(each["decision"]["outcome"] in ("forward", "defer", "digest"),
                           f"the refused send {entry['send_id']} has a message")
                    promised[each["message_id"]] = (entry["send_id"], each["decision"]["outcome"])
        seen = {}
        for record in lines(options.record):
            delivery = record["delivery"]
            message = delivery["message_id"]
            counts["deliveries"] += 1
            if not expect(message in promised, f"the message {message} was handed over and never decided"):
                continue
            expect(delivery["send_id"] == promised[message][0], f"the message {message} is of another send")
            counts["repeats"] += message in seen
            if seen.setdefault(message, delivery) != delivery:
                expect(False, f"the message {message} came again with another content")
        accepted = {record["delivery"]["message_id"] for record in lines(options.record)
                    if record["answered"] in (202, "withheld")}
        counts["messages accepted"] = len(accepted)
        for message, (send, outcome) in promised.items():
            if outcome == "forward" and message not in taken_out:
                expect(message in accepted, f"the message {message} of {send} was promised and never arrived")

    counts["differences"] = differences.count
    json.dump(counts, sys.stdout)
    print()
    sys.exit(3 if differences.count else 0)


if __name__ == "__main__":
    main()
