#!/usr/bin/env python3
"""Puts markers into everything that callers and recipients choose, and brings messages into every state.

    canary.py FOLDER RECORD [COUNT]

FOLDER is that of `sendgate serve --dev`, RECORD what delivery_layer.py writes, which must refuse what goes to a
destination with `-failed` in its name and be busy for one with `-waiting`. One person for each state is registered under
a marked name with a marked device, mailbox and number and is sent to on every channel; COUNT sealed notifications go to
one of them besides. What is asked wrongly is marked, too.

Prints one line of JSON when all is done and a phone has found the marker inside what was sealed: {"texts", "states"}, the
random texts that every marker holds, and what became of the sends of each state. They are written nowhere else. Ends
with its standard input.
"""

import collections
import hashlib
import json
import pathlib
import secrets
import string
import sys
import time
import uuid

from phone import Phone, origin_keys
from unix_http import Gate, utc

STATES = ("forwarded", "waiting", "failed", "refused", "deferred", "digested", "cancelled", "erased")
POLICIES = pathlib.Path(__file__).resolve().parents[3] / "Policies"


class Canary:
    def __init__(self, folder, record):
        self.folder, self.record = folder, record
        self.gates, self.phones = {}, {}
        # Letters for names and texts, digits for telephone numbers: a German one of the full 15 digits of E.164 that begins
        # with no trunk zero, which a registration refuses.
        self.word = "Canary" + "".join(secrets.choice(string.ascii_letters) for _ in range(14))
        self.number = secrets.choice("123456789") + "".join(secrets.choice(string.digits) for _ in range(11))
        self.became = {state: collections.Counter() for state in STATES}
        self.ids = 0

    def call(self, caller, *request):
        if caller not in self.gates:
            self.gates[caller] = Gate(f"{self.folder}/{caller}.sock", timeout=120)
        return self.gates[caller].call(*request)

    def expect(self, status, caller, *request):
        answer = self.call(caller, *request)
        assert answer.status == status, f"{caller} {request}: {answer}"
        return answer.json

    def mark(self, field):
        return f"{self.word}-{field}"

    def user(self, state):
        return self.mark(f"user-{state}")

    # People.

    def register(self, state):
        person = f"/v1/recipients/{self.user(state)}"
        body = {"region": "DE", "region_source": "kyc", "locale": f"en-{self.word[:8]}-{self.word[8:16]}", "age": "adult",
                "time_zone": "Etc/UTC"}
        if state in ("deferred", "cancelled", "erased"):
            # Quiet from an hour ago until an hour from now.
            hour = time.gmtime().tm_hour
            body["quiet_hours"] = {"start": f"{(hour - 1) % 24:02}:00", "end": f"{(hour + 2) % 24:02}:00"}
        self.expect(200, "product", "PUT", person, body)
        self.expect(200, "product", "PUT", f"{person}/devices/{self.mark('d-' + state)}", {
            "platform": "ios", "app": "no.getdrop.app", "token": self.mark(f"token-{state}").encode().hex(),
            "os_permission": "granted", "time_zone": "Etc/UTC"})
        for name, body in (
            (f"sms-{state}", {"kind": "sms", "value": f"+49{self.number}{STATES.index(state)}"}),
            (f"mail-{state}", {"kind": "email", "value": f"{self.mark(state)}@example.com"}),
        ):
            self.expect(200, "product", "PUT", f"{person}/addresses/{self.mark(name)}", dict(body, verified_at=utc(5)))
        phone = self.phones[state] = Phone(self.user(state), self.mark(f"d-{state}"))
        phone.origins = self.origins
        proof, _, confirm = phone.register_key(lambda *request: self.call("product", *request))
        self.expect(200, "product", "POST", confirm, {"proof": proof})
        self.expect(200, "product", "POST", f"{person}/permission-prompts", {"device": self.mark(f"d-{state}")})
        if state == "refused":
            return
        for channel, address, notice, purpose in (
            ("push", None, "promo.3.en", "marketing"), ("email", f"mail-{state}", "promo.3.en", "marketing"),
            ("sms", f"sms-{state}", "sms_service.1.en", "transactional"),
            ("sms", f"sms-{state}", "sms_service.1.en", "security"),
        ):
            name = f"{channel}-{purpose}-{state}" if purpose == "security" else f"{channel}-{state}"
            consent = self.consent(name, channel, notice, purpose)
            if address:
                consent["address"] = self.mark(address)
            if channel == "sms":
                consent["method"] = "express_consent"
            self.expect(200, "product", "POST", f"{person}/consents", consent)

    def consent(self, name, channel, notice, purpose):
        identifier, version, language = notice.split(".")
        text = (POLICIES / "notices" / f"{notice}.txt").read_bytes()
        return {"id": self.mark(f"consent-{name}"), "purpose": purpose, "channel": channel, "event_time": utc(1),
                "method": "in_app_toggle", "jurisdiction": "DE",
                "notice": {"id": identifier, "version": version, "language": language,
                           "sha256": hashlib.sha256(text).hexdigest()}}

    # Sends.

    def send(self, state, caller, kind, channel, params, **more):
        self.ids += 1
        status = self.call(caller, "POST", "/v1/sends", {
            "id": self.mark(f"id-{self.ids}"), "type": kind, "recipient": {"user": self.user(state)}, "params": params,
            "channel": channel, "collapse_key": self.mark("collapse"), "locale": f"en-{self.word[:8]}", **more})
        assert status.status in (202, 403), status
        self.became[state][status.json["reason"]] += 1
        return status.json

    def sends(self, state):
        """Something for every channel and of every form, and more than goes in an hour where that is gathered."""
        answers = []
        for channel in ("push", "email", "sms"):
            answers.append(self.send(state, "payments", "transaction.remittance_sent", channel, {
                "amount": {"minor": 500_000, "currency": "NOK"}, "recipient_name": self.mark("name"),
                "transaction_id": str(uuid.uuid4())}, deep_link=f"drop://send/{self.mark('link')}"))
            answers.append(self.send(state, "payments", "statement.available", channel, {
                "statement_id": str(uuid.uuid4()), "period": self.mark("period")}))
        # The code itself is too short to be looked for; what it approves stands beside it in the same text.
        answers.append(self.send(state, "security", "security.payment_code", "sms", {
            "challenge_id": str(uuid.uuid4()), "code": "48392017", "amount": {"minor": 129_900, "currency": "NOK"},
            "payee_name": self.mark("payee")}))
        for channel in ("push", "email"):
            answers.append(self.send(state, "marketing", "promo.offer", channel, {
                "offer_id": str(uuid.uuid4()), "headline": self.mark("headline")}))
            for _ in range(7 if state == "digested" else 0):
                answers.append(self.send(state, "payments", "transfer.received", channel, {
                    "amount": {"minor": 1400, "currency": "NOK"}, "sender_name": self.mark("sender"),
                    "transaction_id": str(uuid.uuid4())}))
        answers.append(self.send(state, "social", "social.comment", "push", {
            "post_id": str(uuid.uuid4()), "commenter_name": self.mark("commenter")}))
        if state == "cancelled":
            for answer in answers:
                if answer["outcome"] == "defer":
                    caller = "payments"
                    done = self.expect(200, caller, "POST", f"/v1/sends/{answer['send_id']}/cancel", {})
                    self.became[state]["withdrawn"] += len(done["withdrawn"])
        if state == "forwarded":
            self.expect(200, "product", "POST", "/v1/receipts", {
                "send": answers[0]["send_id"], "destination": self.mark(f"d-{state}"), "event": "user_observed",
                "action": self.mark("action"), "at": utc()})
            done = self.expect(200, "product", "POST",
                               f"/v1/recipients/{self.user(state)}/consents/{self.mark(f'consent-email-{state}')}/withdraw",
                               {})
            assert "trail" in done, done

    def many(self, count):
        """Sealed ones by the hundred, in streams; of security, which no limit gathers."""
        phone = self.phones["forwarded"]
        for first in range(0, count, 500):
            lines = [json.dumps({
                "id": self.mark(f"many-{number}"), "type": "security.new_login",
                "recipient": {"user": self.user("forwarded")},
                "params": {"login_id": str(uuid.uuid4()), "device_name": self.mark("name"),
                           "at": "2026-11-23T12:00:00Z"},
            }) for number in range(first, first + 500)]
            answer = self.call(
                "security", "POST", "/v1/sends/stream", "\n".join(lines).encode(), "application/x-ndjson")
            assert answer.status == 200, answer
            for line in answer.body.splitlines():
                each = json.loads(line)
                assert each["status"] == 202 and each["reason"] == "allowed", each
                assert each["deliveries"][0]["key_id"] == phone.kid, each

    def wrongly(self):
        """What is asked wrongly in every place where a text fits, with the answer it gets."""
        word, user = self.mark("wrong"), self.user("forwarded")
        person = f"/v1/recipients/{user}"
        login = {"login_id": str(uuid.uuid4()), "device_name": word, "at": utc(5)}
        send = {"id": word, "type": "security.new_login", "recipient": {"user": user}, "params": login}
        for status, caller, method, target, body in (
            (403, "security", "POST", "/v1/sends", dict(send, type=f"promo.{word}")),
            (403, "payments", "POST", "/v1/sends", dict(send, id=word + "2")),
            (403, "security", "POST", "/v1/sends", dict(send, id=word + "3", params={word: word, "at": word})),
            (403, "security", "POST", "/v1/sends", dict(send, id=word + "4", recipient={"user": word})),
            (403, "security", "POST", "/v1/sends", dict(send, id=word + "5", recipient={"user": user, "device": word})),
            (403, "security", "POST", "/v1/sends", dict(send, id=word + "6", deep_link=f"https://{word}.example/")),
            (422, "security", "POST", "/v1/sends", {word: word}),
            (422, "security", "POST", "/v1/sends", dict(send, locale=word + "/")),
            (400, "security", "POST", "/v1/sends", b'{"id": "' + word.encode()),
            (415, "security", "POST", "/v1/sends", word.encode()),
            (200, "security", "POST", "/v1/sends/explain", dict(send, id=word + "7", caller="security")),
            (422, "payments", "GET", f"/v1/sends/{uuid.uuid4()}?{word}={word}", None),
            (404, "payments", "GET", f"/v1/types/{word}", None),
            (404, "payments", "GET", f"/v1/{word}", None),
            (403, "payments", "GET", f"/v1/recipients/{word}", None),
            (404, "auditor", "GET", f"/v1/recipients/{word}", None),
            (422, "product", "PUT", person, {"time_zone": f"Mars/{word}"}),
            (422, "product", "PUT", person, {"region": word}),
            (422, "product", "PUT", f"{person}/devices/{word}", {"platform": word}),
            (422, "product", "PUT", f"{person}/addresses/{word}", {"kind": "email", "value": word}),
            (404, "product", "DELETE", f"{person}/devices/{word}", None),
            (404, "product", "DELETE", f"{person}/addresses/{word}", None),
            (404, "product", "POST", f"{person}/consents/{word}/withdraw", {}),
            (422, "product", "POST", f"{person}/consents", dict(
                self.consent("wrong", "push", "promo.3.en", "marketing"), notice={
                    "id": word, "version": "1", "language": "en", "sha256": "0" * 64})),
            (422, "product", "PUT", f"{person}/preferences/{word}",
             {"state": "user_off", "source": "in_app_settings", "channel": "push"}),
            (404, "product", "POST", f"{person}/permission-prompts", {"device": word}),
            (404, "product", "POST", "/v1/receipts", {
                "send": str(uuid.uuid4()), "destination": word, "event": "user_observed", "action": word, "at": utc()}),
        ):
            media = "text/plain" if status == 415 else "application/json"
            answer = self.call(caller, method, target, body, media)
            assert answer.status == status, f"{caller} {method} {target} {body}: {answer}"

    def erase(self, state):
        self.expect(200, "product", "DELETE", f"/v1/recipients/{self.user(state)}")
        self.expect(404, "auditor", "GET", f"/v1/recipients/{self.user(state)}")

    def phone_finds_it(self):
        deadline = time.monotonic() + 60
        device = self.mark("d-forwarded")
        while True:
            with open(self.record, encoding="utf-8") as file:
                bodies = [record["delivery"] for record in map(json.loads, file) if record["answered"] == 202]
            sealed = [each for each in bodies if each["destination"] == device and "sendgate" in each["body"]]
            if sealed:
                inside = self.phones["forwarded"].open(sealed[0]["body"]["sendgate"])["content"]
                assert self.word in inside, inside
                return
            assert time.monotonic() < deadline, "nothing was delivered"
            time.sleep(0.05)

    def run(self, count):
        self.origins = origin_keys(self.expect(200, "auditor", "GET", "/v1/keys"))
        for state in STATES:
            self.register(state)
            self.sends(state)
        self.many(count)
        self.wrongly()
        self.erase("erased")
        self.phone_finds_it()
        print(json.dumps({"texts": [self.word, self.number], "states": self.became}), flush=True)


if __name__ == "__main__":
    Canary(*sys.argv[1:3]).run(int((sys.argv + ["2000"])[3]))
    sys.stdin.read()
