"""A phone's key is replaced by another, and what the old key's holder hears of it.

    python3 replace_key.py FOLDER CASE

FOLDER is that of a gateway that runs with `serve --dev FOLDER`, whose `onward.ndjson` is read. CASE says what becomes of the
old key before the new one is registered: `active` (nothing), `suspended`, or `compromised`, `lost`, `retired` (it is revoked for
this cause). With an active one the new key is proved by both keys, and the notice is to open with the old private key alone; else
the security team approves the new one, and no notice is to be there. A send that is made afterwards marks the end of what is read:
messages of one lane go on in their order.
"""

import json
import os
import sys
import time

from open_envelope import Refused
from phone import Phone, origin_keys
from unix_http import Gate

NOTICE = "security.device_key_replaced"


def require(condition, why):
    if not condition:
        sys.exit(f"replace_key: error: {why}")


def spelled(parts):
    """The envelope has one spelling, and JSON objects have no order."""
    return json.dumps({name: parts[name] for name in ("v", "s", "kid", "mid", "exp", "ct")}, separators=(",", ":"))


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        # A line is there when its end is.
        return [json.loads(line) for line in file.read().split("\n")[:-1]]


def envelope(message):
    body = message["body"]
    return body["sendgate"] if "sendgate" in body else body["message"]["data"]["sendgate"]


def main():
    folder, case = sys.argv[1:]
    gate = Gate(os.path.join(folder, "gate.sock"))
    user = f"u_{case}"

    def expect(status, *request):
        answer = gate.call(*request)
        require(answer.status == status, f"{request[:2]}: {answer}")
        return answer.json

    expect(200, "PUT", f"/v1/recipients/{user}", {"region": "DE", "region_source": "kyc", "locale": "en",
                                                   "time_zone": "Europe/Berlin", "age": "adult"})
    device = f"/v1/recipients/{user}/devices/d_{case}"
    expect(200, "PUT", device, {"platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted"})
    old, new = Phone(user, f"d_{case}"), Phone(user, f"d_{case}")
    old.origins = new.origins = origin_keys(expect(200, "GET", "/v1/keys"))
    proof, _, confirm = old.register_key(gate.call)
    expect(200, "POST", confirm, {"proof": proof})

    if case == "suspended":
        expect(200, "POST", f"/v1/keys/{old.kid}/suspend", {})
    elif case != "active":
        expect(200, "POST", f"/v1/keys/{old.kid}/revoke", {"cause": case})

    added = expect(201, "POST", f"{device}/keys", {"suite": new.suite, "public_key": new.public_text})
    new.kid = added["key_id"]
    if case == "active":
        expect(200, "POST", f"{device}/keys/{new.kid}/confirm", {
            "proof": new.open(spelled(added["challenge"]), "challenge")["proof"],
            "old_key_proof": old.open(spelled(added["old_key_challenge"]), "challenge")["proof"]})
    else:
        expect(200, "POST", f"/v1/keys/{new.kid}/promote", {})

    sent = expect(202, "POST", "/v1/sends", {
        "id": f"after-{case}", "type": "security.new_login", "recipient": {"user": user},
        "params": {"login_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "a laptop",
                   "at": "2026-11-21T05:00:00Z"}})
    marks = {delivery["message_id"] for delivery in sent["deliveries"]}
    path = os.path.join(folder, "onward.ndjson")
    deadline = time.monotonic() + 30
    while True:
        messages = [message for message in read(path) if message["destination"] == f"d_{case}"]
        if any(message["message_id"] in marks for message in messages) or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    require(any(message["message_id"] in marks for message in messages), "the send that marks the end did not arrive")

    notices = [message for message in messages if message["message_id"] not in marks]
    if case != "active":
        require(notices == [], f"a key that is {case} was told: {notices}")
    else:
        require(len(notices) == 1, f"{len(notices)} notices: {notices}")
        opened = old.open(envelope(notices[0]))
        require(opened["mid"] == notices[0]["message_id"], "the envelope names another message")
        content = json.loads(opened["content"])
        require(content["type"] == NOTICE, f"the notice is {content}")
        try:
            new.open(envelope(notices[0]))
        except Refused:
            pass
        else:
            require(False, "the new key opens the notice to the old one")
        outside = json.dumps(notices[0]["body"]).replace(json.dumps(envelope(notices[0]))[1:-1], "")
        require(content["title"] not in outside and content["body"] not in outside, "the notice is outside its envelope, too")
    # What comes afterwards is the new key's.
    after = next(message for message in messages if message["message_id"] in marks)
    require(json.loads(new.open(envelope(after))["content"])["type"] == "security.new_login", "the send is of another type")
    print(json.dumps({"notices": len(notices)}))


if __name__ == "__main__":
    main()
