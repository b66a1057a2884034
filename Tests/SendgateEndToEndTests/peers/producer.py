#!/usr/bin/env python3
"""A producer, an app's backend and a phone, written from the reference of the socket alone.

    producer.py FOLDER --client http.client|httpx|curl --policies DIR --deliveries SOCKET RECORD [--lines N]

FOLDER is that of `sendgate serve --dev`; its hop is delivery_layer.py. Lives through the whole story with one
HTTP client and prints the name of each part when all of it held. Exit status 1 and one line on standard error
at the first thing that did not.
"""

import argparse
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import uuid

from phone import Phone, origin_keys
from unix_http import Answer, Gate, utc


class HttpxGate:
    """The same over httpx."""

    def __init__(self, path):
        import httpx

        self.client = httpx.Client(
            transport=httpx.HTTPTransport(uds=path), base_url="http://localhost", timeout=30)

    def call(self, method, target, body=None, content_type="application/json"):
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if content is None else {"content-type": content_type}
        answer = self.client.request(method, target, content=content, headers=headers)
        return Answer(answer.status_code, answer.headers.get("content-type"), answer.content)


class CurlGate:
    """The same with the curl command."""

    def __init__(self, path):
        self.path = path

    def call(self, method, target, body=None, content_type="application/json"):
        command = ["curl", "--silent", "--show-error", "--max-time", "30", "--unix-socket", self.path,
                   "--request", method, "--write-out", "\n%{http_code} %{content_type}",
                   f"http://localhost{target}"]
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            command += ["--header", f"Content-Type: {content_type}", "--data-binary", "@-"]
        output = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout
        text, _, last = output.rpartition(b"\n")
        status, _, media_type = last.decode().partition(" ")
        return Answer(int(status), media_type, text)


CLIENTS = {"http.client": Gate, "httpx": HttpxGate, "curl": CurlGate}


def require(condition, what):
    if not condition:
        raise AssertionError(what)


def done(part):
    print(part, flush=True)


class Story:
    def __init__(self, options):
        self.folder = pathlib.Path(options.folder)
        self.make = CLIENTS[options.client]
        self.policies = pathlib.Path(options.policies)
        self.layer = Gate(options.deliveries[0])
        self.record = pathlib.Path(options.deliveries[1])
        self.line_count = options.lines
        self.gates = {}
        # Every client has people and ids of its own, so that stories do not meet.
        self.mark = options.client.replace(".", "-")
        self.user = f"u_{self.mark}"

    def call(self, caller, *request, **keywords):
        if caller not in self.gates:
            self.gates[caller] = self.make(str(self.folder / f"{caller}.sock"))
        return self.gates[caller].call(*request, **keywords)

    def expect(self, status, caller, *request, **keywords):
        answer = self.call(caller, *request, **keywords)
        require(answer.status == status, f"{caller} {request[0]} {request[1]}: expected {status}, got {answer}")
        return answer.json

    def backend(self, method, target, body=None):
        return self.call("product", method, target, body)

    def send(self, identifier, kind, params, **members):
        return {"id": f"{self.mark}-{identifier}", "type": kind, "recipient": {"user": self.user},
                "params": params, **members}

    def promo(self, identifier, **members):
        return self.send(identifier, "promo.offer",
                         {"offer_id": str(uuid.uuid4()), "headline": "Half the fee this week"}, **members)

    def refused(self, caller, send, reason, detail=None):
        answer = self.call(caller, "POST", "/v1/sends", send)
        require(answer.status == 403, f"expected a refusal with `{reason}`, got {answer}")
        require(answer.media_type.startswith("application/problem+json"), f"media type {answer.media_type}")
        body = answer.json
        require(body["reason"] == reason, f"expected `{reason}`, got {answer}")
        require(body["type"] == f"urn:sendgate:reason:{reason}", f"type {body['type']}")
        require(detail is None or body["detail"] == detail, f"expected detail `{detail}`, got {answer}")
        require(len(body["trail"]["leaf"]) == 64 and body["send_id"], f"no evidence in {answer}")
        return body

    def delivered(self, send, count=1):
        """The deliveries of one accepted send, waiting until the delivery layer has them."""
        waited = self.layer.call("GET", f"/accepted?send={send['send_id']}&messages={count}&within=30")
        require(waited.status == 200, f"{waited.body.decode()} of {count} messages of {send} arrived")
        with open(self.record, encoding="utf-8") as file:
            found = [json.loads(line)["delivery"] for line in file]
        found = [each for each in found if each["send_id"] == send["send_id"]]
        require(len(found) == count, f"{len(found)} deliveries of {send['send_id']}, expected {count}")
        return found

    # The parts.

    def introductions(self):
        health = self.expect(200, "marketing", "GET", "/healthz")
        require(health is not None, "health says nothing")
        types = self.expect(200, "marketing", "GET", "/v1/types")["types"]
        permitted = {each["type"] for each in types if each["permitted"]}
        require("promo.offer" in permitted and "transaction.failed" not in permitted, f"permitted: {permitted}")
        # A producer that follows a type's own example is understood.
        kind = self.expect(200, "payments", "GET", "/v1/types/transaction.remittance_sent")
        example = dict(kind["example"], id=f"{self.mark}-example", recipient={"user": "nobody"})
        self.refused("payments", example, "unknown_recipient")
        require(self.call("marketing", "GET", f"/v1/recipients/{self.user}").status == 403, "marketing may read people")
        document = self.expect(200, "marketing", "GET", "/openapi.json")
        require(document["openapi"].startswith("3.1"), "no OpenAPI 3.1 document")
        done("types are read before anything is sent")

    def registration(self):
        person = f"/v1/recipients/{self.user}"
        self.expect(200, "product", "PUT", person, {
            "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin",
            "privacy": "generic", "age": "adult", "push_enabled": True})
        for device, platform in (("d_1", "ios"), ("d_2", "android")):
            self.expect(200, "product", "PUT", f"{person}/devices/{device}", {
                "platform": platform, "app": "no.getdrop.app", "token": f"{self.mark}-token-of-{device}".encode().hex(),
                "region": "DE", "region_at": utc(1), "time_zone": "Europe/Berlin", "os_permission": "granted",
                "critical_alerts": True})
        self.expect(200, "product", "PUT", f"{person}/addresses/a_1",
                    {"kind": "sms", "value": "+4790000000", "verified_at": utc(1)})
        require(self.call("marketing", "PUT", person, {"region": "DE", "region_source": "kyc"}).status == 403,
                "a marketing caller may register people")
        done("a person is registered by the app's backend and by nobody else")

    def possession(self):
        origins = origin_keys(self.expect(200, "auditor", "GET", "/v1/keys"))
        self.phones = {}
        for device, suite in (("d_1", "P256_SHA256_AES256GCM"), ("d_2", "X25519_SHA256_CHACHA20POLY1305")):
            phone = Phone(self.user, device, suite=suite)
            phone.origins = origins
            _, wrong, confirm = phone.register_key(self.backend)
            self.expect(403, "product", "POST", confirm, {"proof": wrong})
            # One guess: the right answer is too late now, and the key is registered again.
            proof, _, confirm = phone.register_key(self.backend)
            self.expect(200, "product", "POST", confirm, {"proof": proof})
            self.phones[device] = phone
        done("a device key is used after its owner proved to hold it")

    def consent(self):
        early = self.promo("p1")
        refusal = self.refused("marketing", early, "no_gdpr_consent", "never_asked")
        require({each["destination"] for each in refusal["deliveries"]} == {"d_1", "d_2"}, "destinations")
        text = (self.policies / "notices" / "promo.3.nb.txt").read_bytes()
        notice = {"id": "promo", "version": "3", "language": "nb", "sha256": hashlib.sha256(text).hexdigest()}
        record = {"id": f"{self.mark}-c1", "purpose": "marketing", "channel": "push", "event_time": utc(1),
                  "method": "in_app_toggle", "jurisdiction": "DE", "notice": notice}
        consents = f"/v1/recipients/{self.user}/consents"
        require(self.call("marketing", "POST", consents, record).status == 403, "a sender minted its own consent")
        wrong = dict(record, notice=dict(notice, sha256="0" * 64))
        self.expect(422, "product", "POST", consents, wrong)
        self.expect(200, "product", "POST", consents, record)
        # The refusal was this id's answer and stays it; a new id asks again.
        require(self.refused("marketing", early, "no_gdpr_consent")["replayed"], "the refusal was not repeated")
        sent = self.expect(202, "marketing", "POST", "/v1/sends", self.promo("p2"))
        require(sent["outcome"] == "forward", f"outcome {sent['outcome']}")
        for delivery in self.delivered(sent, 2):
            # A person who chose generic sees on the screen that there is an offer, and in the app which.
            body = json.dumps(delivery["body"], ensure_ascii=False)
            require("Du har fått et tilbud i appen." in body, f"the offer is not in {body}")
            require("Half the fee this week" not in body, f"the offer is on the screen: {body}")
        done("a promo is refused without consent and goes with it")

    def replay(self):
        remittance = self.remittance("r1")
        first = self.expect(202, "payments", "POST", "/v1/sends", remittance)
        again = self.expect(202, "payments", "POST", "/v1/sends", remittance)
        require(again.pop("replayed") is True, "the repeated answer does not say so")
        require(again == first, f"the repeated answer differs: {again} after {first}")
        changed = dict(remittance, ttl_seconds=60)
        self.expect(409, "payments", "POST", "/v1/sends", changed)
        # The same id of another caller is another send.
        self.refused("marketing", remittance, "caller_not_permitted")
        self.delivered(first, 2)
        done("a repeated id is answered again, sent once, and refused with other content")
        return first

    def remittance(self, identifier):
        return self.send(identifier, "transaction.remittance_sent", {
            "amount": {"minor": 481_516, "currency": "NOK"}, "recipient_name": "Ahmad Karimi",
            "transaction_id": str(uuid.uuid4())})

    def sealing(self):
        sent = self.expect(202, "payments", "POST", "/v1/sends", self.remittance("r2"))
        # None has hexadecimal digits alone: a collapse identifier would have them by chance.
        secrets = ("Ahmad", "Karimi", "815,16", "815.16", "minor", "NOK", "remittance", "drop://")
        for delivery in self.delivered(sent, 2):
            body = delivery["body"]
            envelope = body["sendgate"] if "sendgate" in body else body["message"]["data"]["sendgate"]
            outside = json.dumps(body).replace(json.dumps(envelope)[1:-1], "")
            for secret in secrets:
                require(secret not in outside, f"the provider reads `{secret}` in {outside}")
            phone = self.phones[delivery["destination"]]
            opened = phone.open(envelope)
            require(opened["mid"] == delivery["message_id"], "the envelope names another message")
            inside = json.loads(opened["content"])
            require(inside["type"] == "transaction.remittance_sent", f"inside: {inside}")
            require(inside["params"]["recipient_name"] == "Ahmad Karimi", f"inside: {inside}")
            require(any(f"815{sign}16" in opened["content"] for sign in ",."), f"inside: {inside}")
            require(inside["send_id"] == sent["send_id"], "inside names another send")
            other = self.phones["d_2" if delivery["destination"] == "d_1" else "d_1"]
            try:
                other.open(envelope)
            except Exception:
                pass
            else:
                raise AssertionError("another device opened the envelope")
        done("a remittance travels sealed and only its phone opens it")

    def critical(self):
        self.refused("marketing", self.promo("crit", critical=True), "critical_not_permitted")
        login = {"login_id": str(uuid.uuid4()), "device_name": "an unknown laptop", "at": utc(5)}
        sent = self.expect(202, "security", "POST", "/v1/sends",
                           self.send("s1", "suspicious_login", login, critical=True))
        apple = next(each for each in self.delivered(sent, 2) if each["platform"] == "ios")
        require(apple["body"]["aps"]["sound"]["critical"] == 1, f"not critical: {apple['body']}")
        self.refused("security", self.send("s2", "security.new_login", login, critical=True),
                     "critical_not_permitted")
        done("critical is for security's short list alone")

    def fallback(self, failed):
        as_text = {"channel": "sms", "fallback_for": failed["send_id"]}
        promo = self.promo("f1", channel="sms", fallback_for=self.expect(
            202, "security", "POST", "/v1/sends", self.send("f0", "security.new_login", {
                "login_id": str(uuid.uuid4()), "device_name": "a tablet", "at": utc(5)}))["send_id"])
        self.refused("marketing", promo, "sms_fallback_forbidden")
        replacement = self.remittance("f2")
        self.refused("payments", dict(replacement, **as_text), "no_sms_consent")
        text = (self.policies / "notices" / "sms_service.1.nb.txt").read_bytes()
        self.expect(200, "product", "POST", f"/v1/recipients/{self.user}/consents", {
            "id": f"{self.mark}-c2", "purpose": "transactional", "channel": "sms", "address": "a_1",
            "event_time": utc(1), "method": "express_consent", "jurisdiction": "DE",
            "notice": {"id": "sms_service", "version": "1", "language": "nb",
                       "sha256": hashlib.sha256(text).hexdigest()}})
        sent = self.expect(202, "payments", "POST", "/v1/sends",
                           dict(replacement, id=f"{self.mark}-f3", **as_text))
        (message,) = self.delivered(sent)
        require(message["channel"] == "sms" and message["destination"] == "a_1", f"{message}")
        require("Ahmad" not in json.dumps(message["body"]), "the text message tells the name")
        done("an SMS replaces a failed push with consent for the number, and marketing never does")

    def looking(self, known):
        status = self.expect(200, "payments", "GET", f"/v1/sends/{known['send_id']}")
        require(status["trail"] == known["trail"] and status["waiting"] == [], f"{status}")
        require(self.call("marketing", "GET", f"/v1/sends/{known['send_id']}").status in (403, 404),
                "another caller's send can be read")
        offer = self.promo("x1", recipient={"user": self.user, "device": "d_1"})
        (explained,) = self.expect(200, "security", "POST", "/v1/sends/explain",
                                   dict(offer, caller="marketing"))["deliveries"]
        require(len(explained["gates"]) == 13, f"{len(explained['gates'])} gates in {explained}")
        (sent,) = self.call("marketing", "POST", "/v1/sends", offer).json["deliveries"]
        require((sent["outcome"], sent["reason"]) == (explained["outcome"], explained["reason"]),
                f"explained as {explained}, sent as {sent}")
        events = self.expect(200, "payments", "GET", "/v1/events?after=0")
        require(known["send_id"] in {each["send_id"] for each in events["events"]}, f"no event of {known['send_id']}")
        later = self.expect(200, "payments", "GET", f"/v1/events?after={events['next']}")
        require(later["events"] == [], "events come twice")
        decisions = self.expect(200, "auditor", "GET", f"/v1/recipients/{self.user}/decisions")["decisions"]
        require(any(each["reason"] == "no_gdpr_consent" for each in decisions), "the refusal is not explained")
        norwegian = self.expect(200, "auditor", "GET", f"/v1/recipients/{self.user}/decisions?locale=nb-NO")["decisions"]
        require([each["send_id"] for each in norwegian] == [each["send_id"] for each in decisions], "other decisions")
        require(any(each["explanation"].startswith("Loven der mottakeren er, krever samtykke, og ") for each in norwegian),
                "the refusal is not explained in Norwegian")
        for tag in ("norsk", "nb_NO", "nb&locale=en", "%00", "nb-" * 1000):
            self.expect(422, "auditor", "GET", f"/v1/recipients/{self.user}/decisions?locale={tag}")
        done("status, events, decisions and explanations agree with the answers")

    def cancelling(self):
        person = f"/v1/recipients/{self.user}"
        # Quiet all day but for one minute that is not now, so that a payment notice waits.
        hour = (int(subprocess.run(["date", "+%H"], env=dict(os.environ, TZ="Europe/Berlin"), check=True,
                                   stdout=subprocess.PIPE).stdout) + 12) % 24
        self.expect(200, "product", "PUT", person, {
            "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin", "age": "adult",
            "quiet_hours": {"start": f"{hour:02}:01", "end": f"{hour:02}:00"}})
        sent = self.expect(202, "payments", "POST", "/v1/sends", self.remittance("w1"))
        require(sent["outcome"] == "defer" and sent["reason"] == "quiet_hours_deferred", f"{sent}")
        require(all(each["not_before"] for each in sent["deliveries"]), f"{sent}")
        cancel = f"/v1/sends/{sent['send_id']}/cancel"
        require(self.call("marketing", "POST", cancel).status in (403, 404), "another caller cancelled it")
        answer = self.expect(200, "payments", "POST", cancel)
        require(sorted(answer["withdrawn"]) == ["d_1", "d_2"] and answer["gone"] == [], f"{answer}")
        status = self.expect(200, "payments", "GET", f"/v1/sends/{sent['send_id']}")
        require(status["waiting"] == [], f"{status}")
        self.expect(200, "product", "PUT", person, {
            "region": "DE", "region_source": "kyc", "locale": "nb", "time_zone": "Europe/Berlin", "age": "adult"})
        done("a send that waits for morning is withdrawn by its caller")

    def batch(self):
        lines = []
        for number in range(self.line_count):
            if number % 4 == 0:
                lines.append(json.dumps(self.promo(f"b{number}", channel="email")))
            elif number % 50 == 1:
                lines.append('{"id": "broken"')
            else:
                lines.append(json.dumps(self.send(f"b{number}", "security.new_login", {
                    "login_id": str(uuid.uuid4()), "device_name": f"device {number}", "at": utc(5)})))
        # No caller may send all of these, so every other line is refused by gate 2.
        body = ("\n".join(lines) + "\n").encode()
        answer = self.call("security", "POST", "/v1/sends/stream", body, content_type="application/x-ndjson")
        require(answer.status == 200, f"batch: {answer}")
        answers = [json.loads(line) for line in answer.body.splitlines()]
        require(len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines")
        for number, (line, each) in enumerate(zip(lines, answers)):
            if number % 4 == 0:
                require(each["status"] == 403 and each["reason"] == "caller_not_permitted", f"line {number}: {each}")
            elif number % 50 == 1:
                require(each["status"] == 400, f"line {number}: {each}")
            else:
                require(each["status"] == 202, f"line {number}: {each}")
            if each["status"] != 400:
                require(each["id"] == json.loads(line)["id"], f"line {number} has the answer of {each['id']}")
        done(f"a batch of {self.line_count} lines is answered line by line, in order")

    def live(self):
        """Full duplex by hand: no ordinary client reads before it has written everything."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(self.folder / "security.sock"))
        connection.sendall(
            b"POST /v1/sends/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Sendgate-Stream: live\r\nContent-Type: application/x-ndjson\r\n\r\n")
        reader = connection.makefile("rb")

        def read_chunk():
            size = int(reader.readline().split(b";")[0], 16)
            data = reader.read(size)
            require(reader.readline() == b"\r\n", "a chunk does not end")
            return data

        pending = b""
        for number in range(50):
            line = json.dumps(self.send(f"l{number}", "security.new_login", {
                "login_id": str(uuid.uuid4()), "device_name": "live", "at": utc(5)})).encode() + b"\n"
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            if number == 0:
                status = reader.readline()
                require(b" 200 " in status, f"live: {status}")
                while reader.readline() not in (b"\r\n", b""):
                    pass
            # The answer comes while the request is still being written, or this would wait for ever.
            while b"\n" not in pending:
                pending += read_chunk()
            answer, _, pending = pending.partition(b"\n")
            answer = json.loads(answer)
            require(answer["status"] == 202 and answer["id"] == f"{self.mark}-l{number}", f"line {number}: {answer}")
        connection.sendall(b"0\r\n\r\n")
        require(read_chunk() == b"", "the stream goes on after its end")
        done("a live stream answers each line before the next is written")

    def tell(self):
        self.introductions()
        self.registration()
        self.possession()
        self.consent()
        first = self.replay()
        self.sealing()
        self.critical()
        self.fallback(first)
        self.looking(first)
        self.cancelling()
        self.batch()
        self.live()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--client", choices=sorted(CLIENTS), required=True)
    parser.add_argument("--policies", required=True)
    parser.add_argument("--deliveries", nargs=2, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    try:
        Story(parser.parse_args()).tell()
    except AssertionError as error:
        sys.exit(f"producer: error: {error}")


if __name__ == "__main__":
    main()
