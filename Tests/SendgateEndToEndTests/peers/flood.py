#!/usr/bin/env python3
"""Several producers that never stop asking, whatever happens to the gateway, and never forget an answer.

    flood.py FOLDER JOURNAL --seed N [--producers N] [--people N]

FOLDER is that of `sendgate serve --dev`. Every answer is a line of JSON in JOURNAL, written before the next
request: {"caller", "ask", "status", "answer"}. What got no answer is asked again, under the same id, until it is
answered: that is the promise a producer relies on. Prints `ready` once the people are registered.

A line `finish` on standard input stops new requests; what is open is asked until it is answered. The number of
messages that were promised is printed then, and the exit status is 0. The end of standard input ends everything at
once.
"""

import argparse
import http.client
import json
import os
import random
import sys
import threading
import time
import uuid

from phone import Phone, origin_keys
from unix_http import Gate, utc

NEW_LOGIN = "security.new_login"


class Journal:
    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "ab", buffering=0)
        self.promised = set()

    def write(self, caller, ask, status, answer):
        line = json.dumps({"caller": caller, "ask": ask, "status": status, "answer": answer}).encode() + b"\n"
        with self.lock:
            self.file.write(line)
            self.promised.update(each["message_id"] for each in answer.get("deliveries", ())
                                 if each["outcome"] == "forward")


class Producer(threading.Thread):
    def __init__(self, number, options, journal, finishing):
        super().__init__(daemon=True)
        self.random = random.Random(options.seed * 1000 + number)
        self.number, self.options, self.journal, self.finishing = number, options, journal, finishing
        self.gates = {}
        self.answered = []
        self.counter = 0
        self.failure = None

    def run(self):
        try:
            while not self.finishing.is_set():
                self.ask(*self.next())
        except Exception as error:  # told by main, which ends with it
            self.failure = error

    def next(self):
        """A caller, a target and what to ask."""
        chance = self.random.random()
        if chance < 0.08 and self.answered:
            caller, send = self.random.choice(self.answered)
            return caller, "/v1/sends", send
        if chance < 0.16:
            return "security", "/v1/sends/stream", [self.login() for _ in range(self.random.randint(2, 40))]
        if chance < 0.22:
            return "product", None, self.preference()
        if chance < 0.55:
            return "payments", "/v1/sends", self.send("transaction.remittance_sent", {
                "amount": {"minor": self.random.randint(1, 10**9), "currency": "NOK"},
                "recipient_name": "Ahmad Karimi", "transaction_id": self.uuid()})
        if chance < 0.75:
            return "security", "/v1/sends", self.login()
        if chance < 0.95:
            return "marketing", "/v1/sends", self.send(
                "promo.offer", {"offer_id": self.uuid(), "headline": "An offer nobody agreed to"})
        stranger = self.login()
        stranger["recipient"] = {"user": "u_nobody"}
        return "security", "/v1/sends", stranger

    def uuid(self):
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def send(self, kind, params):
        self.counter += 1
        user = f"u_{self.random.randrange(self.options.people)}"
        return {"id": f"{self.number}-{self.counter}", "type": kind, "recipient": {"user": user}, "params": params}

    def login(self):
        return self.send(NEW_LOGIN, {"login_id": self.uuid(), "device_name": "a laptop", "at": utc(5)})

    def preference(self):
        return {"user": f"u_{self.random.randrange(self.options.people)}",
                "body": {"state": self.random.choice(["user_on", "user_off"]), "source": "in_app_settings",
                         "channel": "push"}}

    def ask(self, caller, target, what):
        """Asks until there is an answer that binds, and writes every answer down."""
        if target is None:
            user, body = what["user"], what["body"]
            answer = self.insist(caller, "PUT", f"/v1/recipients/{user}/preferences/social", body)
            self.journal.write(caller, what, answer.status, answer.json)
            return
        if target == "/v1/sends":
            answer = self.insist(caller, "POST", target, what)
            self.journal.write(caller, what, answer.status, answer.json)
            self.answered.append((caller, what))
            return
        lines = what
        while lines:
            body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            answer = self.insist(caller, "POST", target, body, "application/x-ndjson")
            unbound = []
            for line, each in zip(lines, map(json.loads, answer.body.splitlines()), strict=True):
                if each["status"] in (429, 503):
                    unbound.append(line)
                else:
                    self.journal.write(caller, line, each["status"], each)
                    self.answered.append((caller, line))
            lines = unbound

    def insist(self, caller, method, target, body, content_type="application/json"):
        pause = 0.005
        while True:
            try:
                if caller not in self.gates:
                    self.gates[caller] = Gate(os.path.join(self.options.folder, f"{caller}.sock"))
                answer = self.gates[caller].call(method, target, body, content_type)
                if answer.status not in (429, 503):
                    return answer
            except (OSError, http.client.HTTPException):
                # Killed, restarting, or not there yet. Whether it counted is not known; asking again tells.
                self.gates.pop(caller).close()
            time.sleep(pause)
            pause = min(pause * 2, 0.1)


def register(options):
    product = Gate(os.path.join(options.folder, "product.sock"))
    auditor = Gate(os.path.join(options.folder, "auditor.sock"))
    origins = origin_keys(auditor.call("GET", "/v1/keys").json)
    for number in range(options.people):
        user = f"u_{number}"
        answer = product.call("PUT", f"/v1/recipients/{user}", {
            "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin", "age": "adult"})
        assert answer.status == 200, answer
        answer = product.call("PUT", f"/v1/recipients/{user}/devices/d_1", {
            "platform": "ios", "app": "no.getdrop.app", "token": f"token-{number}", "os_permission": "granted"})
        assert answer.status == 200, answer
        if number % 2:
            continue
        # Half of them have a key, so that sealed and generic bodies are both under way.
        phone = Phone(user, "d_1")
        phone.origins = origins
        proof, _, confirm = phone.register_key(product.call)
        answer = product.call("POST", confirm, {"proof": proof})
        assert answer.status == 200, answer
    product.close()
    auditor.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("journal")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--producers", type=int, default=6)
    parser.add_argument("--people", type=int, default=12)
    options = parser.parse_args()
    register(options)
    finishing = threading.Event()
    journal = Journal(options.journal)
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
    print(len(journal.promised), flush=True)


if __name__ == "__main__":
    main()
