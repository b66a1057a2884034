#!/usr/bin/env python3
"""Several producers that never stop asking, whatever happens to the gateway, and never forget an answer.

    flood.py FOLDER JOURNAL --seed N [--producers N] [--people N] [--acts N] [--quiet-minutes N]

FOLDER is that of `sendgate serve --dev`. Every answer is a line of JSON in JOURNAL, written before the next
request: {"producer", "caller", "ask", "status", "answer", "lost"}. `ask` is the body of a send, or for everything else
{"edit", "user" or "send_id", "body"}. What got no answer is asked again, under the same id, until it is answered:
that is the promise a producer relies on. `lost` counts the requests that were written and got no answer.

People `u_N` are sent to, switch categories off and on, give and withdraw consent; every fourth keeps quiet hours that
end at the next full minute (or N - 1 minutes later), so that messages to them wait. Each producer has one person `e_N` besides, whom it erases
and registers again. Prints `ready` once the people are registered.

A line `finish` on standard input stops new requests, with --acts when each producer has done so many; what is open is asked until it is answered. Then every send is
looked up until nothing waits that was to go at once, and what still waits is a last kind of line:
{"survey": SEND_ID, "waiting": [...]}, null for one that is not known any more. `done` is printed then, and the exit status is 0. The end of standard input
ends everything at once.
"""

import argparse
import hashlib
import http.client
import json
import os
import pathlib
import random
import sys
import threading
import time
import uuid

from phone import Phone, origin_keys
from unix_http import Gate, utc

NEW_LOGIN = "security.new_login"
NOTICE = pathlib.Path(__file__).resolve().parents[3] / "Policies" / "notices" / "promo.3.en.txt"
RECIPIENT = {"region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Etc/UTC", "age": "adult"}
DEVICE = {"platform": "ios", "app": "no.getdrop.app", "os_permission": "granted"}


class Journal:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "ab", buffering=0)
        # By send id: who asked, for whom, and whether it waits.
        self.sends = {}

    def write(self, line):
        with self.lock:
            self.file.write(json.dumps(line).encode() + b"\n")
            answer = line.get("answer", {})
            if "send_id" in answer and "edit" not in line["ask"]:
                outcomes = {each["outcome"] for each in answer["deliveries"]}
                self.sends[answer["send_id"]] = (
                    line["caller"], line["ask"]["recipient"]["user"], bool(outcomes & {"defer", "digest"}))


class Producer(threading.Thread):
    def __init__(self, number, options, journal, finishing):
        super().__init__(daemon=True)
        self.random = random.Random(options.seed * 1000 + number)
        self.number, self.options, self.journal, self.finishing = number, options, journal, finishing
        self.gates = {}
        self.answered = []
        self.waiting = []
        self.consents = []
        self.counter = 0
        self.failure = None

    def run(self):
        try:
            acts = 0
            while acts < self.options.acts if self.options.acts else not self.finishing.is_set():
                self.act()
                acts += 1
        except Exception as error:  # told by main, which ends with it
            self.failure = error

    def act(self):
        chance = self.random.random()
        if chance < 0.08 and self.answered:
            caller, send = self.random.choice(self.answered)
            return self.send(caller, send)
        if chance < 0.15:
            return self.stream([self.login() for _ in range(self.random.randint(2, 40))])
        if chance < 0.20:
            return self.preference()
        if chance < 0.25:
            return self.consent()
        if chance < 0.28:
            return self.quiet_hours()
        if chance < 0.30:
            return self.begin_anew()
        if chance < 0.34 and self.waiting:
            caller, send_id, user = self.waiting.pop(self.random.randrange(len(self.waiting)))
            # The sends of an erased person are forgotten with them.
            return self.edit(caller, "cancel", "POST", f"/v1/sends/{send_id}/cancel", None, send_id=send_id,
                             also=404 if user.startswith("e_") else 200)
        if chance < 0.58:
            return self.send("payments", self.body("transaction.remittance_sent", {
                "amount": {"minor": self.random.randint(1, 10**9), "currency": "NOK"},
                "recipient_name": "Ahmad Karimi", "transaction_id": self.uuid()}))
        if chance < 0.70:
            # More than two an hour are gathered.
            return self.send("payments", self.body("savings.transfer", {
                "amount": {"minor": self.random.randint(1, 10**4), "currency": "NOK"},
                "transaction_id": self.uuid()}))
        if chance < 0.80:
            return self.send("security", self.login())
        if chance < 0.96:
            return self.send("marketing", self.body(
                "promo.offer", {"offer_id": self.uuid(), "headline": "Half the fee"}))
        stranger = self.login()
        stranger["recipient"] = {"user": "u_nobody"}
        self.send("security", stranger)

    def uuid(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def somebody(self):
        return f"u_{self.random.randrange(self.options.people)}"

    def body(self, kind, params):
        self.counter += 1
        user = self.somebody()
        if self.random.random() < 0.1:
            user = f"e_{self.random.randrange(self.options.producers)}"
        return {"id": f"{self.number}-{self.counter}", "type": kind, "recipient": {"user": user}, "params": params}

    def login(self):
        return self.body(NEW_LOGIN, {"login_id": self.uuid(), "device_name": "a laptop", "at": utc(5)})

    # What changes a person.

    def preference(self):
        user, scope = self.somebody(), self.random.choice(["social", "transactional", "transactional", "marketing"])
        state = "user_off" if self.random.random() < 0.35 else "user_on"
        self.edit("product", "preference", "PUT", f"/v1/recipients/{user}/preferences/{scope}",
                  {"state": state, "source": "in_app_settings", "channel": "push"}, user=user, scope=scope)

    def consent(self):
        if self.consents and self.random.random() < 0.4:
            user, consent = self.consents.pop()
            return self.edit("product", "withdrawal", "POST",
                             f"/v1/recipients/{user}/consents/{consent}/withdraw", {}, user=user)
        self.counter += 1
        user, consent = self.somebody(), f"c-{self.number}-{self.counter}"
        self.edit("product", "consent", "POST", f"/v1/recipients/{user}/consents", {
            "id": consent, "purpose": "marketing", "channel": "push", "event_time": utc(),
            "method": "in_app_toggle", "jurisdiction": "DE", "notice": {
                "id": "promo", "version": "3", "language": "en",
                "sha256": hashlib.sha256(NOTICE.read_bytes()).hexdigest()}}, user=user)
        self.consents.append((user, consent))

    def quiet_hours(self):
        user = f"u_{self.random.randrange(self.options.people // 4) * 4 + 1}"
        body = quiet_now(self.options) if self.random.random() < 0.8 else RECIPIENT
        self.edit("product", "recipient", "PUT", f"/v1/recipients/{user}", body, user=user)

    def begin_anew(self):
        user = f"e_{self.number}"
        # A lost answer to an erasure is followed by 404: the name is not known any more.
        self.edit("product", "erasure", "DELETE", f"/v1/recipients/{user}", None, user=user, also=404)
        recipient = quiet_now(self.options) if self.random.random() < 0.5 else RECIPIENT
        register_person(user, recipient, lambda *request: self.edit("product", *request, user=user))

    # How it is asked.

    def send(self, caller, body):
        status, answer, lost = self.insist(caller, "POST", "/v1/sends", body)
        self.note(caller, body, status, answer, lost)

    def note(self, caller, body, status, answer, lost):
        self.write(caller, body, status, answer, lost)
        self.answered.append((caller, body))
        if answer.get("outcome") in ("defer", "digest"):
            self.waiting.append((caller, answer["send_id"], body["recipient"]["user"]))

    def stream(self, lines):
        caller = "security"
        while lines:
            body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            _, answer, lost = self.insist(caller, "POST", "/v1/sends/stream", body, "application/x-ndjson")
            unbound = []
            for line, each in zip(lines, map(json.loads, answer.splitlines()), strict=True):
                if each["status"] in (429, 503):
                    unbound.append(line)
                else:
                    self.note(caller, line, each["status"], each, lost)
            lines = unbound

    def edit(self, caller, kind, method, target, body, also=200, **about):
        status, answer, lost = self.insist(caller, method, target, body)
        if status not in (200, also):
            raise AssertionError(f"{method} {target}: {status} {answer}")
        self.write(caller, {"edit": kind, "body": body, **about}, status, answer, lost)

    def write(self, caller, ask, status, answer, lost):
        self.journal.write({"producer": self.number, "caller": caller, "ask": ask, "status": status,
                            "answer": answer, "lost": lost})

    def insist(self, caller, method, target, body, content_type="application/json"):
        """Asks until there is an answer that binds; gives status, answer and how many answers were lost before."""
        pause, lost = 0.005, 0
        while True:
            try:
                if caller not in self.gates:
                    self.gates[caller] = Gate(os.path.join(self.options.folder, f"{caller}.sock"))
                answer = self.gates[caller].call(method, target, body, content_type)
                # An erasure that is recorded and not finished has no answer yet either.
                lost += answer.status == 503 and method == "DELETE" and b"erasure is recorded" in answer.body
                if answer.status not in (429, 503):
                    is_lines = content_type != "application/json"
                    return answer.status, answer.body if is_lines else answer.json, lost
            except (OSError, http.client.HTTPException):
                # Killed, restarting, or not there yet. Whether it counted is not known; asking again tells.
                gate = self.gates.pop(caller)
                lost += gate.is_written
                gate.close()
            time.sleep(pause)
            pause = min(pause * 2, 0.1)


def quiet_now(options):
    """A person to whom it is quiet up to a full minute that is near."""
    minute = int(time.time()) // 60 % 1440
    start, end = (minute - 59) % 1440, (minute + options.quiet_minutes) % 1440
    return dict(RECIPIENT, quiet_hours={"start": f"{start // 60:02}:{start % 60:02}",
                                        "end": f"{end // 60:02}:{end % 60:02}"})


def register_person(user, recipient, edit):
    edit("recipient", "PUT", f"/v1/recipients/{user}", recipient)
    edit("device", "PUT", f"/v1/recipients/{user}/devices/d_1", dict(DEVICE, token=f"token-{user}".encode().hex()))


def register(options, journal):
    product = Gate(os.path.join(options.folder, "product.sock"))
    auditor = Gate(os.path.join(options.folder, "auditor.sock"))
    origins = origin_keys(auditor.call("GET", "/v1/keys").json)
    people = [f"u_{number}" for number in range(options.people)]
    for number, user in enumerate(people + [f"e_{number}" for number in range(options.producers)]):
        def edit(kind, *request):
            answer = product.call(*request)
            assert answer.status == 200, answer
            journal.write({"producer": -1, "caller": "product", "ask": {"edit": kind, "user": user, "body": request[2]},
                           "status": 200, "answer": answer.json, "lost": 0})
        register_person(user, RECIPIENT, edit)
        if number % 2 or user not in people:
            continue
        # Half of them have a key, so that sealed and generic bodies are both under way.
        phone = Phone(user, "d_1")
        phone.origins = origins
        proof, _, confirm = phone.register_key(product.call)
        answer = product.call("POST", confirm, {"proof": proof})
        assert answer.status == 200, answer
    product.close()
    auditor.close()


def survey(options, journal):
    """What waits of every send, when nothing waits any more that was to go at once."""
    gates = {}
    begin = time.monotonic()
    for send_id, (caller, user, waits) in journal.sends.items():
        if caller not in gates:
            gates[caller] = Gate(os.path.join(options.folder, f"{caller}.sock"))
        # What was to go at once waits, too, where quiet hours began before the delivery layer took it.
        patience = 0 if waits else 5 if keeps_quiet_hours(user) else 60
        while True:
            answer = gates[caller].call("GET", f"/v1/sends/{send_id}")
            assert answer.status in (200, 404), f"{send_id}: {answer}"
            waiting = answer.json.get("waiting")
            if not waiting or time.monotonic() - begin >= patience:
                break
            time.sleep(0.05)
        assert not waiting or patience < 60, f"{send_id} was to go at once and still waits"
        journal.write({"survey": send_id, "waiting": waiting})


def keeps_quiet_hours(user):
    return user.startswith("e_") or user.startswith("u_") and user[2:].isdigit() and int(user[2:]) % 4 == 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("journal")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--producers", type=int, default=6)
    parser.add_argument("--people", type=int, default=12)
    parser.add_argument("--acts", type=int)
    parser.add_argument("--quiet-minutes", type=int, default=1)
    options = parser.parse_args()
    finishing = threading.Event()
    journal = Journal(options.journal)
    register(options, journal)
    producers = [Producer(number, options, journal, finishing) for number in range(options.producers)]
    for producer in producers:
        producer.start()
    print("ready", flush=True)
    if sys.stdin.readline() != "finish\n":
        os._exit(1)
    finishing.set()
    for producer in producers:
        producer.join()
        if producer.failure is not None:
            raise producer.failure
    survey(options, journal)
    print("done", flush=True)


if __name__ == "__main__":
    main()
