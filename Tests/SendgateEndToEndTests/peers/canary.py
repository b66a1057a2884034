#!/usr/bin/env python3
"""Sends two thousand sealed notifications with one marker inside, and says which.

    canary.py FOLDER RECORD [COUNT]

FOLDER is that of `sendgate serve --dev`, RECORD what delivery_layer.py writes. The marker is random, printed when
all sends are answered and a phone has opened one of them and found it, and written nowhere else.
"""

import json
import secrets
import string
import sys
import time
import uuid

from phone import Phone, origin_keys
from unix_http import Gate


def main(folder, record, count=2000):
    marker = "CANARY" + "".join(secrets.choice(string.ascii_letters) for _ in range(26))
    product = Gate(f"{folder}/product.sock")
    payments = Gate(f"{folder}/payments.sock", timeout=120)
    for target, body in (
        ("/v1/recipients/u_1", {"region": "NO", "region_source": "kyc", "locale": "en", "age": "adult"}),
        ("/v1/recipients/u_1/devices/d_1", {
            "platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted"}),
    ):
        answer = product.call("PUT", target, body)
        assert answer.status == 200, answer
    phone = Phone("u_1", "d_1")
    phone.origins = origin_keys(Gate(f"{folder}/auditor.sock").call("GET", "/v1/keys").json)
    proof, _, confirm = phone.register_key(product.call)
    answer = product.call("POST", confirm, {"proof": proof})
    assert answer.status == 200, answer

    for first in range(0, count, 500):
        lines = [json.dumps({
            "id": f"canary-{number}", "type": "transaction.remittance_sent", "recipient": {"user": "u_1"},
            "params": {"amount": {"minor": number + 1, "currency": "NOK"}, "recipient_name": marker,
                       "transaction_id": str(uuid.uuid4())},
        }) for number in range(first, first + 500)]
        answer = payments.call("POST", "/v1/sends/stream", "\n".join(lines).encode(), "application/x-ndjson")
        assert answer.status == 200, answer
        for line in answer.body.splitlines():
            each = json.loads(line)
            assert each["status"] == 202 and each["reason"] == "allowed", each
            assert each["deliveries"][0]["key_id"] == phone.kid, each
    # A wrong answer repeats nothing of what was asked.
    refused = payments.call("POST", "/v1/sends", {
        "id": "canary-refused", "type": "transaction.remittance_sent", "recipient": {"user": "u_1"},
        "params": {"amount": marker, "recipient_name": {"name": marker}}})
    assert refused.status == 403 and marker not in refused.body.decode(), refused

    deadline = time.monotonic() + 60
    while True:
        try:
            with open(record, encoding="utf-8") as file:
                body = json.loads(file.readline())["delivery"]["body"]
            break
        except (FileNotFoundError, json.JSONDecodeError):
            assert time.monotonic() < deadline, "nothing was delivered"
            time.sleep(0.05)
    inside = phone.open(body["sendgate"])["content"]
    assert marker in inside, inside
    print(marker, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
