#!/usr/bin/env python3
"""What check_evidence.py says to real evidence with one thing wrong, for every thing it is there to find.

    spoil_evidence.py TRAIL JOURNAL RECORD

Prints one line of JSON for each case: {"case", "rules"}, the names of the rules that the checker says are broken. A
changed entry is put back into a tree of its own, and the answers that name it are changed along, so that the one
thing stays the only one. The evidence must hold every kind of thing a case needs; one that finds none ends everything.
"""

import copy
import hashlib
import json
import os
import pathlib
import sys
import uuid

from check_evidence import Check, Evidence, leaf_hash, merkle_root, require

CASES = {}


def case(function):
    CASES[function.__name__.replace("_", " ")] = function
    return function


class Spoiled(Evidence):
    """Evidence to change: entries as objects, written back when all is changed."""

    def __init__(self, trail, journal, record):
        super().__init__(trail, [journal], record)
        self.trail = [json.loads(entry) for entry in self.entries]
        self.check = Check(self).run()
        assert not self.check.differences, f"the evidence is not sound: {self.check.told[:5]}"

    def seal(self, keeps_index=()):
        """Gives the entries their places and the answers theirs."""
        places = {}
        for index, entry in enumerate(self.trail):
            if id(entry) not in keeps_index:
                places[entry["index"]] = index
                entry["index"] = index
        self.entries = [
            json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() for entry in self.trail]
        leaves = [leaf_hash(entry) for entry in self.entries]
        self.root = merkle_root(leaves)
        for line in self.answers:
            place = line["answer"].get("trail")
            if place and place["index"] in places:
                place["index"] = places[place["index"]]
                place["leaf"] = leaves[place["index"]].hex()

    def entry(self, wanted):
        return next(entry for entry in self.trail if wanted(entry))

    def line(self, wanted):
        return next(line for line in self.answers if wanted(line))

    def edit(self, kind):
        return self.line(lambda line: line["ask"].get("edit") == kind and line["producer"] >= 0)

    def asked_once(self, wanted=lambda answer: True):
        """The answer to an id that was answered once."""
        def ids(line):
            return line["caller"], line["ask"].get("id")
        asked = [ids(line) for line in self.answers]
        return self.line(lambda line: "id" in line["ask"] and line["ask"]["recipient"]["user"].startswith("u_")
                         and asked.count(ids(line)) == 1 and wanted(line["answer"]))

    def message(self, wanted):
        """A message of a person who is not erased, by what became of it."""
        return next(message for message in self.check.messages.values()
                    if wanted(message) and self.check.people[message.subject].erased is None)

    def arrival(self, message):
        return next(record for record in self.record if record["delivery"]["message_id"] == message.id)

    def bring(self, message, at):
        """Hands over what was not."""
        delivery = dict(self.record[0]["delivery"], message_id=message.id, send_id=message.send)
        self.record.append({"answered": 202, "at": at, "delivery": delivery})

    def answers_to(self, entry):
        """Every answer that names an entry: the first, and those to repeats."""
        return [line for line in self.answers if line["answer"].get("trail", {}).get("index") == entry["index"]]


# An answer that is not what the trail has.

@case
def leaf(evidence):
    place = evidence.edit("preference")["answer"]["trail"]
    place["leaf"] = place["leaf"][::-1]


@case
def origin(evidence):
    evidence.edit("preference")["answer"]["trail"]["origin"] += "x"


@case
def entry_beyond_the_end(evidence):
    evidence.edit("preference")["answer"]["trail"]["index"] = len(evidence.entries)


@case
def answer_without_evidence(evidence):
    del evidence.edit("preference")["answer"]["trail"]


@case
def another_caller(evidence):
    evidence.edit("preference")["caller"] = "payments"


@case
def another_send(evidence):
    evidence.asked_once()["answer"]["send_id"] = str(uuid.uuid4())


@case
def another_reason(evidence):
    evidence.asked_once()["answer"]["reason"] = "blocked_at_os_level"


@case
def another_outcome(evidence):
    evidence.asked_once(lambda answer: answer["outcome"] == "defer")["answer"]["outcome"] = "digest"


@case
def another_policy(evidence):
    evidence.asked_once()["answer"]["policy"] = "0" * 64


@case
def another_status(evidence):
    evidence.asked_once(lambda answer: answer["outcome"] == "forward")["status"] = 403


@case
def another_message(evidence):
    answer = evidence.asked_once(lambda answer: answer["outcome"] == "forward")["answer"]
    answer["deliveries"][0]["message_id"] = str(uuid.uuid4())


@case
def another_answer_to_a_repeat(evidence):
    evidence.line(lambda line: line["answer"].get("replayed") and line["ask"].get("recipient", {}).get("user") == "u_0"
                  )["answer"]["id"] = "another"


@case
def send_nobody_was_told_of(evidence):
    evidence.answers.remove(evidence.asked_once(lambda answer: answer["outcome"] == "forward"))


@case
def one_send_for_two_ids(evidence):
    line = copy.deepcopy(evidence.asked_once())
    line["ask"]["id"] = "another"
    line["answer"]["replayed"] = True
    evidence.answers.append(line)


@case
def answers_in_another_order(evidence):
    lines = [line for line in evidence.answers if line["producer"] == 0 and "edit" in line["ask"]
             and line["status"] == 200][:2]
    places = [evidence.answers.index(line) for line in lines]
    evidence.answers[places[0]], evidence.answers[places[1]] = lines[1], lines[0]


@case
def edit_of_somebody_else(evidence):
    ask = evidence.edit("preference")["ask"]
    ask["user"] = next(f"u_{number}" for number in range(2) if f"u_{number}" != ask["user"])


@case
def another_edit(evidence):
    body = evidence.edit("preference")["ask"]["body"]
    body["state"] = "user_on" if body["state"] == "user_off" else "user_off"


@case
def another_consent(evidence):
    evidence.edit("consent")["ask"]["body"]["purpose"] = "social"


@case
def another_count_of_cancelled(evidence):
    evidence.edit("cancel")["answer"]["withdrawn"].append("d_9")


@case
def erasure_of_nobody(evidence):
    line = evidence.edit("erasure")
    line["status"], line["answer"] = 404, {"title": "Nothing is known under this path"}


@case
def send_of_somebody_known_not_found(evidence):
    asked = {message.send for message in evidence.check.messages.values()
             if evidence.check.people[message.subject].erased is None}
    line = evidence.line(lambda line: line["ask"].get("edit") == "cancel" and line["ask"]["send_id"] in asked)
    line["status"], line["answer"] = 404, {"title": "Nothing is known under this path"}


# A trail that is not itself.

@case
def root(evidence):
    evidence.root = hashlib.sha256(evidence.root).digest()


@case
def another_index(evidence):
    entry = evidence.entry(lambda entry: entry["kind"] == "delivery")
    entry["index"] += 1
    evidence.seal(keeps_index={id(entry)})


@case
def time_going_back(evidence):
    evidence.entry(lambda entry: entry["kind"] == "delivery")["time"] = 0
    evidence.seal()


@case
def entry_about_an_erased_person(evidence):
    erased = evidence.entry(lambda entry: entry["kind"] == "erasure")
    entry = evidence.entry(lambda entry: entry["kind"] == "preference" and entry["state"] == "user_on")
    evidence.trail.append(dict(entry, subject=erased["subject"], index=-1, time=evidence.trail[-1]["time"]))
    evidence.seal()


@case
def send_decided_twice(evidence):
    entry = evidence.entry(lambda entry: entry.get("reason") == "unknown_recipient")
    evidence.trail.append(dict(entry, index=-1, time=evidence.trail[-1]["time"]))
    evidence.seal()


@case
def message_of_a_refused_send(evidence):
    entry = evidence.entry(lambda entry: entry.get("reason") == "no_gdpr_consent"
                           and evidence.check.people[entry["subject"]].erased is None)
    entry["deliveries"][0]["message_id"] = message = str(uuid.uuid4())
    for line in evidence.answers_to(entry):
        line["answer"]["deliveries"][0]["message_id"] = message
    evidence.survey[entry["send_id"]] = ["d_1"]
    evidence.seal()


@case
def third_offer_of_a_week(evidence):
    # The last offer to a person, so that none after it counts it.
    latest = {entry["subject"]: entry for entry in evidence.trail
              if entry["kind"] == "send" and entry["request"].get("type") == "promo.offer"}
    entry = next(entry for entry in latest.values() if entry["reason"] == "frequency_cap")
    entry["outcome"] = "forward"
    for line in evidence.answers_to(entry):
        line["answer"]["outcome"], line["status"] = "forward", 202
    evidence.seal()


@case
def offer_without_consent(evidence):
    entry = evidence.entry(lambda entry: entry.get("reason") == "no_gdpr_consent")
    entry["deliveries"][0]["decision"]["outcome"] = "forward"
    evidence.seal()


@case
def notice_past_a_switch(evidence):
    entry = evidence.entry(lambda entry: entry.get("reason") == "user_preference"
                           and entry["request"]["type"] == "transaction.remittance_sent")
    entry["deliveries"][0]["decision"]["outcome"] = "defer"
    evidence.seal()


def fact(name, value):
    """A decision that claims what the entries before it do not say."""
    def spoil(evidence):
        entry = evidence.entry(lambda entry: entry["kind"] == "send" and entry["request"].get("type") == "promo.offer"
                               and entry["facts"].get("destination") == "active"
                               and entry["facts"].get(name) not in (None, value))
        entry["facts"][name] = value
        evidence.seal()
    CASES[f"fact {name}"] = spoil


fact("account_preference", "user_off")
fact("push_enabled", False)
fact("os_permission", "denied")
fact("privacy", "full")
fact("age", "minor")
fact("recipient", "unknown")
fact("type_count", 7)
fact("category_count", 7)
fact("everything_count", 7)
fact("consent", {"state": "refused"})


# What waits.

def without_end(evidence, message, cause):
    """Forgets that a waiting message was taken out, and lets it wait."""
    entry = evidence.entry(lambda entry: entry.get("message_id") == message.id and entry.get("cause") == cause)
    evidence.trail.remove(entry)
    if evidence.survey[message.send] is not None:
        evidence.survey[message.send] = ["d_1"]
    evidence.seal()


@case
def switched_off_and_waiting_on(evidence):
    message = evidence.message(lambda message: message.ending == "refused" and message.state != "ready")
    without_end(evidence, message, "preference_changed")


@case
def cancelled_and_waiting_on(evidence):
    asked = {line["ask"]["send_id"] for line in evidence.answers if line["ask"].get("edit") == "cancel"}
    message = evidence.message(lambda message: message.ending == "cancelled" and message.send in asked)
    without_end(evidence, message, "cancelled")


@case
def erased_and_waiting_on(evidence):
    message = next(message for message in evidence.check.messages.values()
                   if message.ending == "erased" and message.state != "ready")
    without_end(evidence, message, "erased")


@case
def waiting_message_lost(evidence):
    message = evidence.message(lambda message: not message.ending and message.state == "deferred")
    evidence.survey[message.send] = []


@case
def gathered_message_lost(evidence):
    message = evidence.message(lambda message: not message.ending and message.state == "digested")
    evidence.survey[message.send] = []


@case
def more_waiting_than_promised(evidence):
    message = evidence.message(lambda message: message.ending == "handed_over")
    evidence.survey[message.send] = ["d_1", "d_2"]


@case
def send_of_somebody_known_forgotten(evidence):
    message = evidence.message(lambda message: message.ending == "handed_over")
    evidence.survey[message.send] = None


@case
def delivery_after_the_end(evidence):
    message = evidence.message(lambda message: message.ending == "cancelled")
    entry = evidence.entry(lambda entry: entry["kind"] == "delivery")
    evidence.trail.append(dict(entry, index=-1, time=evidence.trail[-1]["time"], message_id=message.id,
                               send_id=message.send, subject=message.subject))
    evidence.seal()


@case
def end_of_a_message_nobody_decided(evidence):
    entry = evidence.entry(lambda entry: entry["kind"] == "delivery"
                           and evidence.check.people[entry["subject"]].erased is None)
    evidence.trail.append(dict(entry, index=-1, time=evidence.trail[-1]["time"], message_id=str(uuid.uuid4())))
    evidence.seal()


@case
def due_before_its_time(evidence):
    message = evidence.message(lambda message: not message.ending and message.state == "deferred")
    entry = evidence.trail[message.entry]
    facts = dict(entry["facts"], **evidence.check.people[message.subject].facts)
    facts["account_preference"] = evidence.check.people[message.subject].preferences.get(
        (message.category, "push", None), "default")
    decision = dict(entry["deliveries"][0]["decision"], outcome="forward", reason="allowed")
    evidence.trail.append({
        "kind": "redecision", "cause": "due", "decision": decision, "facts": facts, "index": -1, "v": 1,
        "time": message.not_before - 1, "message_id": message.id, "send_id": message.send, "subject": message.subject,
        "request": {"type": entry["request"]["type"]}})
    evidence.seal()


# What arrived.

@case
def message_that_never_arrived(evidence):
    message = evidence.message(lambda message: message.ending == "handed_over")
    evidence.record = [record for record in evidence.record if record["delivery"]["message_id"] != message.id]


@case
def message_nobody_decided(evidence):
    record = copy.deepcopy(evidence.record[0])
    record["delivery"]["message_id"] = str(uuid.uuid4())
    evidence.record.append(record)


@case
def message_of_another_send(evidence):
    message = evidence.message(lambda message: message.ending == "handed_over")
    for record in evidence.record:
        if record["delivery"]["message_id"] == message.id:
            record["delivery"]["send_id"] = str(uuid.uuid4())


@case
def repeat_with_another_content(evidence):
    record = copy.deepcopy(evidence.record[0])
    record["delivery"]["token"] += "x"
    evidence.record.append(record)


@case
def hand_over_without_an_entry(evidence):
    message = evidence.message(lambda message: message.ending == "handed_over" and not message.not_before)
    evidence.trail.remove(evidence.entry(
        lambda entry: entry["kind"] == "delivery" and entry["message_id"] == message.id))
    evidence.survey[message.send] = ["d_1"]
    evidence.seal()


@case
def switched_off_and_handed_over(evidence):
    message = evidence.message(lambda message: message.ending == "refused")
    evidence.bring(message, at=evidence.trail[-1]["time"] + 10**6)


@case
def cancelled_and_handed_over(evidence):
    message = evidence.message(lambda message: message.ending == "cancelled")
    evidence.bring(message, at=evidence.trail[-1]["time"] + 10**6)


@case
def erased_and_handed_over(evidence):
    # One that waited for the hop is there only where the erasure met it; one that waited for its time always is.
    message = next(message for message in evidence.check.messages.values()
                   if message.ending == "erased" and message.state != "digested")
    evidence.bring(
        message, at=max(evidence.check.people[message.subject].erased_at + 60_000, message.not_before))


@case
def deferred_and_handed_over_at_once(evidence):
    message = evidence.message(lambda message: not message.ending and message.state == "deferred")
    evidence.bring(message, at=message.not_before - 1)


@case
def gathered_and_handed_over_alone(evidence):
    message = evidence.message(lambda message: not message.ending and message.state == "digested")
    evidence.bring(message, at=evidence.trail[-1]["time"])


def main():
    evidence = Spoiled(*map(pathlib.Path, sys.argv[1:4]))
    for name, spoil in CASES.items():
        # Each case has a process of its own, and with it a copy of everything.
        child = os.fork()
        if child == 0:
            try:
                spoil(evidence)
            except StopIteration:
                print(f"spoil_evidence: error: the evidence has nothing for the case `{name}`", file=sys.stderr)
                os._exit(1)
            tell(name, Check(evidence).run())
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            sys.exit(1)
    # Nothing of it was lost, so a run that needs something lost is told.
    require(evidence.check, ["lost and found=1"])
    tell("nothing lost", evidence.check)


def tell(name, check):
    print(json.dumps({"case": name, "rules": sorted(check.differences)}), flush=True)


if __name__ == "__main__":
    main()
