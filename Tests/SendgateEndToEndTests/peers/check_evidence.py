#!/usr/bin/env python3
"""Compares every answer producers were given with the trail, the trail with itself, and both with what was handed over.

    check_evidence.py TRAIL --journal FILE... [--record FILE] [--foreign N] [--require NAME=COUNT...]

TRAIL is a copy of a trail directory in the C2SP tlog-tiles layout, JOURNAL what flood.py wrote, RECORD what
delivery_layer.py wrote; N sends are in the trail that no journal knows. Hashes are Python's own; the checkpoint's
signature is checked elsewhere. What people chose and what waits is worked out a second time here, from the entries
alone and from the pages that flood.py leans on, which `KINDS` repeats by hand.

Every difference is a line on standard error with the name of the rule it breaks, and makes the exit status 3.
Standard output is one JSON object: counts, and `differences` by rule. `--require` is the rule `required`: what did not
occur was not checked.
"""

import argparse
import base64
import collections
import hashlib
import json
import pathlib
import struct
import sys

# Of each type flood.py sends: its category, and the caps of the type and of the category as (count, hours).
KINDS = {
    "transaction.remittance_sent": ("transactional", (60, 1), None),
    "savings.transfer": ("transactional", (2, 1), None),
    "security.new_login": ("security", None, None),
    "promo.offer": ("marketing", (2, 168), (1, 24)),
}
# Over everything but security.
EVERYTHING = (120, 1)
# An erased person's message that was with the delivery layer already cannot be called back. Milliseconds.
UNDER_WAY = 5_000


def counts_in_everything(kind):
    return KINDS.get(kind, (None,))[0] != "security"


def tile_name(index):
    name = f"{index % 1000:03}"
    while index := index // 1000:
        name = f"x{index % 1000:03}/{name}"
    return name


def read_entries(trail, size):
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


def leaf_hash(entry):
    return hashlib.sha256(b"\x00" + entry).digest()


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


class Evidence:
    """What there is to compare, read once: the trail, what was answered, what was surveyed, what was handed over."""

    def __init__(self, trail, journals, record):
        self.origin, size, root = (trail / "checkpoint").read_text().splitlines()[:3]
        self.root = base64.b64decode(root)
        self.entries = list(read_entries(trail, int(size)))
        lines = [line for path in journals for line in read_lines(path)]
        self.answers = [line for line in lines if "survey" not in line]
        self.survey = {line["survey"]: line["waiting"] for line in lines if "survey" in line}
        self.record = read_lines(record) if record else None


def read_lines(path):
    with open(path, "rb") as file:
        return [json.loads(line) for line in file]


class Check:
    """One run over one piece of evidence."""

    def __init__(self, evidence, foreign=0):
        self.evidence, self.foreign = evidence, foreign
        self.counts = collections.Counter()
        self.differences = collections.Counter()
        self.told = []
        self.leaves = [leaf_hash(entry) for entry in evidence.entries]
        self.trail = [json.loads(entry) for entry in evidence.entries]
        self.people = {}
        self.messages = {}
        self.sends = {}

    def expect(self, condition, rule, what):
        if not condition:
            self.differences[rule] += 1
            self.told.append(f"[{rule}] {what}")
        return condition

    def run(self):
        self.check_tree()
        self.fold()
        self.check_answers()
        if self.evidence.survey:
            self.check_survey()
        if self.evidence.record is not None:
            self.check_deliveries()
        return self

    # The trail.

    def check_tree(self):
        self.expect(merkle_root(self.leaves) == self.evidence.root, "root",
                    "the entries do not have the checkpoint's root")
        time = 0
        for index, entry in enumerate(self.trail):
            self.expect(entry["index"] == index, "index", f"entry {index} says it is {entry['index']}")
            self.expect(entry["time"] >= time, "time", f"entry {index} is earlier than the one before")
            time = entry["time"]
            self.counts["entries"] += 1
            self.counts[f"entries of {entry['kind']}"] += 1

    def fold(self):
        """Goes through the entries once and keeps what people chose, how often they were sent to, and what waits."""
        # Messages that must be taken out by the entries right behind an act, and the act.
        must_end, act = set(), None
        for entry in self.trail:
            kind, index, subject = entry["kind"], entry["index"], entry.get("subject")
            person = self.people.get(subject)
            if must_end and (kind not in ("redecision", "unsent", "consent", "preference") or subject != act["subject"]):
                self.check_ended(must_end, act)
                must_end = set()
            if subject and kind != "erasure" and person and person.erased is not None:
                self.expect(False, "erased", f"entry {index} ({kind}) is about somebody erased at {person.erased}")
                continue
            if kind == "recipient":
                if entry["action"] == "registered":
                    person = self.people[subject] = Person(index)
                person.facts.update(push_enabled=entry["push_enabled"], privacy=entry["privacy"], age=entry.get("age"))
            elif kind == "device" and "os_permission" in entry:
                person.facts.update(os_permission=entry["os_permission"])
            elif kind == "consent":
                person.consents.append(entry)
            elif kind == "preference":
                person.preferences[entry["scope"], entry["channel"], entry.get("destination")] = entry["state"]
                if entry["state"] == "user_off" and entry["channel"] == "push" and "destination" not in entry:
                    must_end = {message.id for message in self.open_messages(subject)
                                if message.state in ("deferred", "digested") and message.category == entry["scope"]}
                    act = entry
                    self.counts["waiting when switched off"] += len(must_end)
            elif kind == "erasure":
                self.check_ended({message.id for message in self.open_messages(subject)}, entry)
                person.erased, person.erased_at = index, entry["time"]
            elif kind == "send":
                self.fold_send(entry, person)
            elif kind == "redecision":
                self.fold_redecision(entry, person)
            elif kind in ("unsent", "delivery"):
                message = self.expect_open(entry)
                if message:
                    message.end(entry, entry["cause"] if kind == "unsent" else entry["result"])
                    self.counts[f"messages {message.ending}"] += 1
        self.check_ended(must_end, act)

    def check_ended(self, messages, act):
        for message in messages:
            self.expect(self.messages[message].ending, "act",
                        f"the message {message} waits on after entry {act['index']} ({act['kind']})")

    def open_messages(self, subject):
        return [message for message in self.messages.values() if message.subject == subject and not message.ending]

    def expect_open(self, entry):
        message = self.messages.get(entry["message_id"])
        if not self.expect(message, "undecided", f"entry {entry['index']} is about a message nobody decided"):
            return None
        is_open = self.expect(
            not message.ending, "ended", f"entry {entry['index']} ({entry['kind']}) is about the message "
            f"{message.id}, which came to its end ({message.ending}) at entry {message.ended_at}")
        return message if is_open else None

    def fold_send(self, entry, person):
        send = entry["send_id"]
        self.expect(send not in self.sends, "send", f"the send {send} has two entries")
        self.sends[send] = entry
        self.counts[f"decided {entry['outcome']} {entry['reason']}"] += 1
        kind = entry["request"].get("type")
        for each in entry["deliveries"]:
            self.check_decision(entry, kind, each["decision"], {**entry["facts"], **each["facts"]}, person, send)
            if "message_id" in each:
                outcome = each["decision"]["outcome"]
                self.expect(outcome in ("forward", "defer", "digest"), "refused",
                            f"the refused send {send} has a message")
                self.messages[each["message_id"]] = Message(each["message_id"], entry, each["decision"])
                self.counts[f"messages of {outcome}"] += 1
        if entry["outcome"] == "forward" and person:
            self.count_forward(entry, kind, person, send)

    def fold_redecision(self, entry, person):
        message, decision = self.expect_open(entry), entry["decision"]
        kind = entry["request"]["type"]
        self.check_decision(entry, kind, decision, entry["facts"], person, entry["send_id"])
        if not message:
            return
        if entry["cause"] == "due" and decision["outcome"] == "forward":
            self.expect(entry["time"] >= message.not_before, "early",
                        f"the message {message.id} waits until {message.not_before}, entry {entry['index']} lets it go")
            self.count_forward(entry, kind, person, entry["send_id"])
            self.counts[f"{message.state} and due"] += 1
            message.state = "ready"
        elif entry["cause"] == "summarised":
            message.end(entry, "summarised")
        elif decision["outcome"] == "defer":
            message.not_before = decision["not_before"]
        elif decision["outcome"] not in ("forward", "digest"):
            message.end(entry, "refused")
            self.counts["messages refused later"] += 1

    def count_forward(self, entry, kind, person, send):
        person.forwards.append((entry["time"], kind, send))
        category, of_type, of_category = KINDS.get(kind, (None, None, None))
        for cap, wanted in ((of_type, lambda other: other == kind),
                            (of_category, lambda other: KINDS[other][0] == category),
                            (category != "security" and EVERYTHING, counts_in_everything)):
            if cap:
                found = person.count(entry["time"], cap[1], wanted)
                self.expect(found <= cap[0], "cap", f"entry {entry['index']} is number {found} of {kind}, "
                            f"{cap[0]} are allowed in {cap[1]} h")

    def check_decision(self, entry, kind, decision, facts, person, send):
        """What a decision claims to have looked at is what the entries before it say, and it is not against it."""
        place = f"entry {entry['index']}"
        if person is None or kind not in KINDS or facts.get("destination") != "active":
            return
        category, of_type, of_category = KINDS[kind]
        consent = person.consent_state()
        account = person.preferences.get((category, "push", None), "default")
        expected = dict(person.facts, recipient="registered", account_preference=account)
        claimed = dict(facts, consent=facts["consent"]["state"])
        if category == "marketing":
            expected["consent"] = consent
        for name, cap, wanted in (
                ("type_count", of_type, lambda other: other == kind),
                ("category_count", of_category, lambda other: KINDS[other][0] == category),
                ("everything_count", category != "security" and EVERYTHING, counts_in_everything)):
            if cap:
                expected[name] = person.count(facts["now"], cap[1], wanted, besides=send)
        for name, value in expected.items():
            self.expect(claimed.get(name) == value, f"fact {name}",
                        f"{place} claims {name} `{claimed.get(name)}`, the entries before it say `{value}`")
        if decision["outcome"] in ("forward", "defer", "digest"):
            self.expect(category == "security" or account != "user_off", "law",
                        f"{place} lets go what the person has switched off")
            self.expect(category != "marketing" or consent == "given", "law", f"{place} sells without a consent")

    # What producers were told.

    def check_answers(self):
        answers, latest = {}, {}
        subjects = collections.defaultdict(set)
        for line in self.evidence.answers:
            if line["ask"].get("edit") == "recipient":
                index = line["answer"]["trail"]["index"]
                if index < len(self.trail):
                    subjects[line["ask"]["user"]].add(self.trail[index].get("subject"))
        for line in self.evidence.answers:
            answer, ask = line["answer"], line["ask"]
            self.counts[f"answers of {line['status']}"] += 1
            self.counts["answers lost"] += line["lost"]
            if line["status"] == 404:
                self.check_forgotten(line)
                continue
            entry = self.acknowledged(line)
            if entry is None:
                continue
            is_replayed = bool(answer.get("replayed"))
            self.counts["replays"] += is_replayed
            # It counted, and the producer was not told so.
            self.counts["lost and found"] += is_replayed and line["lost"] > 0
            if not is_replayed and line["producer"] >= 0:
                before = latest.get(line["producer"], -1)
                self.expect(before < entry["index"], "order",
                            f"producer {line['producer']} was answered with {before} and then with {entry['index']}")
                latest[line["producer"]] = entry["index"]
            user = ask["user"] if "user" in ask else ask.get("recipient", {}).get("user")
            if user is not None:
                self.check_person(entry, user, subjects[user])
            if "edit" in ask:
                self.counts["edits acknowledged"] += 1
                self.check_edit(entry, line)
            else:
                self.check_answer(entry, line, answers)
        self.counts["ids acknowledged"] = len(answers)
        if self.evidence.answers:
            # Every id was asked until it was answered, so one entry more is a send that was decided twice.
            named = collections.Counter(answer["send_id"] for answer in answers.values())
            unnamed = [send for send in self.sends if not named[send] and not self.is_forgotten(send)]
            self.expect(len(unnamed) == self.foreign, "unanswered",
                        f"{len(unnamed)} sends have an entry and no answer: {unnamed[:5]}")
            for send, count in named.items():
                self.expect(count == 1, "twice", f"the send {send} is the answer to {count} ids")

    def acknowledged(self, line):
        """The entry an answer names, when the answer names it rightly."""
        answer = line["answer"]
        if not self.expect("trail" in answer, "evidence", f"an answer without evidence: {line}"):
            return None
        index = answer["trail"]["index"]
        self.expect(answer["trail"]["origin"] == self.evidence.origin, "origin",
                    f"entry {index} is in the trail `{answer['trail']['origin']}`")
        if not self.expect(index < len(self.trail), "lost",
                           f"entry {index} was acknowledged and is not in the trail of {len(self.trail)}"):
            return None
        self.expect(self.leaves[index].hex() == answer["trail"]["leaf"], "leaf",
                    f"entry {index} is not what was acknowledged")
        entry = self.trail[index]
        self.expect(entry.get("caller") == line["caller"], "caller",
                    f"entry {index} is `{entry.get('caller')}`'s, `{line['caller']}` was answered")
        return entry

    def check_forgotten(self, line):
        """A 404: an erasure whose first answer was lost, or a send that was forgotten with its person."""
        if line["ask"]["edit"] == "erasure":
            self.expect(line["lost"] > 0, "forgotten", f"`{line['ask']['user']}` was registered and is not known")
        else:
            self.expect(self.is_forgotten(line["ask"]["send_id"]), "forgotten",
                        f"the send {line['ask']['send_id']} is not known any more")

    def is_forgotten(self, send):
        subject = self.sends[send]["subject"] if send in self.sends else None
        return subject in self.people and self.people[subject].erased is not None

    def check_person(self, entry, user, subjects):
        """Who is registered under a name has one pseudonym from the registration to the erasure."""
        index = entry["index"]
        there = [subject for subject in subjects if subject in self.people and self.people[subject].is_there(index)]
        expected = there[0] if there else None
        self.expect(entry["subject"] == expected, "person",
                    f"entry {index} is about {entry['subject']}, `{user}` is {expected}")

    def check_edit(self, entry, line):
        ask, body = line["ask"], line["ask"]["body"]
        expected = {
            "recipient": lambda: {"kind": "recipient"},
            "device": lambda: {"kind": "device", "os_permission": body["os_permission"]},
            "preference": lambda: {"kind": "preference", "scope": ask["scope"], "state": body["state"],
                                   "channel": body["channel"]},
            "consent": lambda: {"kind": "consent", "state": "given", "purpose": body["purpose"]},
            "withdrawal": lambda: {"kind": "consent", "state": "withdrawn"},
            "erasure": lambda: {"kind": "erasure"},
            "cancel": lambda: {"kind": "cancel", "send_id": ask["send_id"],
                               "withdrawn": len(line["answer"]["withdrawn"])},
        }[ask["edit"]]()
        found = {name: entry.get(name) for name in expected}
        self.expect(found == expected, "edit", f"entry {entry['index']} is {found}, {expected} was asked for")
        if ask["edit"] == "cancel" and self.sends.get(ask["send_id"]):
            for message in self.messages.values():
                if message.send == ask["send_id"] and message.state in ("deferred", "digested"):
                    self.expect(message.ending, "act",
                                f"the message {message.id} waits on after entry {entry['index']} (cancel)")

    def check_answer(self, entry, line, answers):
        answer, index = line["answer"], entry["index"]
        if not self.expect(entry.get("send_id") == answer["send_id"], "send", f"entry {index} is another send"):
            return
        for name in ("outcome", "reason", "policy"):
            self.expect(entry.get(name) == answer[name], name, f"entry {index}: {name} was answered as `{answer[name]}`")
        self.expect((line["status"] == 202) == (entry["outcome"] in ("forward", "defer", "digest")), "status",
                    f"entry {index}: {line['status']}")
        promised = {each["message_id"] for each in answer["deliveries"] if "message_id" in each}
        recorded = {each["message_id"] for each in entry["deliveries"] if "message_id" in each}
        self.expect(promised == recorded, "promise", f"entry {index}: messages {recorded}, answered {promised}")
        key = (line["caller"], line["ask"]["id"])
        bound = {name: value for name, value in answer.items() if name not in ("replayed", "status")}
        first = answers.setdefault(key, bound)
        if first != bound and self.is_forgotten(first["send_id"]):
            # Their sends are forgotten with a person, ids included, so that this one is a new send.
            first = answers[key] = bound
        self.expect(first == bound, "repeat", f"{key} was answered {first} and later {answer}")
        self.counts["sends acknowledged"] += 1

    # What waits and what arrived.

    def check_survey(self):
        """What the trail says still waits does wait, and nothing else."""
        waiting = collections.Counter(message.send for message in self.messages.values() if not message.ending)
        promised = collections.Counter(message.send for message in self.messages.values())
        for send, names in self.evidence.survey.items():
            if names is None:
                self.expect(self.is_forgotten(send), "forgotten", f"the send {send} is not known any more")
                continue
            self.counts["waiting at the end"] += len(names)
            self.expect(len(names) >= waiting[send], "waiting",
                        f"{waiting[send]} messages of {send} came to no end, {len(names)} wait")
            self.expect(len(names) <= promised[send], "waiting", f"{len(names)} messages of {send} wait, none was promised")

    def check_deliveries(self):
        first, latest, accepted = {}, {}, {}
        for record in self.evidence.record:
            delivery = record["delivery"]
            identifier = delivery["message_id"]
            self.counts["deliveries"] += 1
            self.counts["repeats"] += identifier in accepted
            latest[identifier] = record["at"]
            if record["answered"] in (202, "withheld"):
                accepted.setdefault(identifier, record["at"])
            message = self.messages.get(identifier)
            if not self.expect(message, "undecided", f"the message {identifier} was handed over and never decided"):
                continue
            self.expect(delivery["send_id"] == message.send, "promise", f"the message {identifier} is of another send")
            # How long the gateway waits for an answer is of each try.
            content = {name: value for name, value in delivery.items() if name != "hand_over_by"}
            self.expect(first.setdefault(identifier, content) == content, "content",
                        f"the message {identifier} came again with another content")
        self.counts["messages accepted"] = len(accepted)
        for message in self.messages.values():
            there = message.id in accepted
            what = f"the message {message.id} of entry {message.entry}"
            if message.ending == "ambiguous":
                # It was with the delivery layer, which has it or not; of who was erased meanwhile nothing comes after that.
                person = self.people[message.subject]
                if person.erased is not None:
                    late = latest.get(message.id, 0) - person.erased_at
                    self.expect(late <= UNDER_WAY, "withdrawn", f"{what} was erased, and came {late} ms later")
            elif message.ending == "handed_over":
                self.expect(there, "arrival", f"{what} was recorded as handed over and never arrived")
            elif message.ending:
                self.expect(not there, "withdrawn", f"{what} was taken out ({message.ending}) and arrived")
            elif message.state != "ready":
                self.expect(not there, "early", f"{what} is {message.state} and arrived")
            elif not message.not_before:
                # The gateway is not stopped before nothing waits that was to go at once.
                self.expect(there, "arrival", f"{what} was promised and never arrived")
                self.expect(not there, "unrecorded", f"{what} arrived and has no end in the trail")
            if there and message.not_before:
                self.expect(accepted[message.id] >= message.not_before, "early",
                            f"{what} waits until {message.not_before} and arrived at {accepted[message.id]}")


class Person:
    """One pseudonym, as far as the entries read so far tell."""

    def __init__(self, registered):
        self.registered, self.erased, self.erased_at = registered, None, None
        self.facts, self.preferences, self.consents, self.forwards = {}, {}, [], []

    def is_there(self, index):
        return self.registered <= index and (self.erased is None or index <= self.erased)

    def count(self, now, hours, wanted, besides=None):
        return sum(1 for time, kind, send in self.forwards
                   if now - time <= hours * 3_600_000 and wanted(kind) and send != besides)

    def consent_state(self):
        """The newest word on marketing by push. A withdrawal counts no earlier than what it names was given; at equal
        times a no counts."""
        given = {entry["consent"]: entry["event_time"] for entry in self.consents if entry["state"] == "given"}
        words = [(max(entry["event_time"], given.get(entry.get("withdraws"), 0)),
                  ["given", "refused", "withdrawn"].index(entry["state"]), entry["state"]) for entry in self.consents]
        return max(words)[2] if words else "never_asked"


class Message:
    """One promised message on its way to its end."""

    def __init__(self, identifier, entry, decision):
        self.id, self.entry, self.send, self.subject = identifier, entry["index"], entry["send_id"], entry["subject"]
        self.category = KINDS.get(entry["request"]["type"], (None,))[0]
        self.state = {"defer": "deferred", "digest": "digested"}.get(decision["outcome"], "ready")
        self.not_before = decision.get("not_before", 0)
        self.ending = self.ended_at = None

    def end(self, entry, how):
        self.ending, self.ended_at = how, entry["index"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trail", type=pathlib.Path)
    parser.add_argument("--journal", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--foreign", type=int, default=0)
    parser.add_argument("--require", nargs="*", default=[], metavar="NAME=COUNT")
    options = parser.parse_args()
    check = Check(Evidence(options.trail, options.journal, options.record), options.foreign).run()
    require(check, options.require)
    for line in check.told[:50]:
        print(f"check_evidence: difference: {line}", file=sys.stderr)
    json.dump({"counts": check.counts, "differences": check.differences}, sys.stdout)
    print()
    sys.exit(3 if check.differences else 0)


def require(check, wanted):
    for each in wanted:
        name, _, count = each.rpartition("=")
        check.expect(check.counts[name] >= int(count), "required",
                     f"{check.counts[name]} {name}, {count} are needed for the rest to mean anything")


if __name__ == "__main__":
    main()
