#!/usr/bin/env python3
"""Opens the vectors of the sealed format with Python's `cryptography`.

usage: check_vectors.py FILE...

Each vector must open to its content or proof, or be refused for the reason it states; the reasons are those of
`SealedPushError`. What does not is reported by name. Exit status: 0 all do, 3 some do not, 64 usage.
"""

import hashlib
import hmac
import json
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from open_envelope import (BUCKETS, ENVELOPE, HEADER, PURPOSES, SUITES, Refused, decode, encode, length_prefixed,
                           private_key)


def require(condition, reason):
    if not condition:
        raise Refused(reason)


def open_vector(suite, vector):
    """The content of a notification, or the proof of a challenge, in base64url."""
    kem, aead, hpke, _ = SUITES[suite]
    public = decode(vector["public_key"])
    key = private_key(suite, decode(vector["private_key"]), public)
    match = ENVELOPE.fullmatch(vector["envelope"])
    require(match and match[1] in SUITES, "malformed_envelope")
    named_suite, kid, mid, exp, ct = match.groups()
    sealed, exp = decode(ct), int(exp)
    require(len(sealed) - SUITES[named_suite][3] - 16 in BUCKETS, "malformed_envelope")
    require(kid == vector["kid"], "unknown_key")
    require(named_suite == suite, "suite_mismatch")
    require(vector["now"] < exp, "expired")

    purpose = PURPOSES[vector["purpose"]]
    info = (b"sendgate/sealed/v1\0" + struct.pack(">BHHH", purpose, kem, 1, aead) + length_prefixed(vector["app"])
            + length_prefixed(vector["device"]) + bytes.fromhex(kid) + hashlib.sha256(public).digest()
            + bytes.fromhex(mid.replace("-", "")) + struct.pack(">Q", exp))
    try:
        plaintext = hpke.decrypt(sealed, key, info)
    except Exception:
        raise Refused("cannot_open") from None

    (length,) = struct.unpack(">H", plaintext[72:HEADER])
    end = HEADER + length
    require(end <= len(plaintext), "malformed_message")
    require(len(plaintext) == next(b for b in BUCKETS if end <= b), "malformed_message")
    require(not any(plaintext[end:]), "malformed_message")
    content = plaintext[HEADER:end]
    origin = decode(vector["origin_key"])
    require(plaintext[:8] == hashlib.sha256(origin).digest()[:8], "unknown_origin")
    statement = b"sendgate/origin/v1\0" + hashlib.sha256(info).digest() + plaintext[:8] + plaintext[72:end]
    try:
        Ed25519PublicKey.from_public_bytes(origin).verify(plaintext[8:72], statement)
    except InvalidSignature:
        raise Refused("forged_origin") from None

    if purpose == PURPOSES["challenge"]:
        require(length == 32, "malformed_message")
        return encode(hmac.new(content, b"sendgate/possession/v1\0" + info, "sha256").digest())
    try:
        exact = json.loads(content)["expires_at"]
    except (ValueError, KeyError, TypeError):
        exact = None  # a content without a time of its own
    require(exact is None or vector["now"] < exact // 1000, "expired")
    return encode(content)


def main(paths):
    if not paths:
        print(__doc__, file=sys.stderr)
        return 64
    count, wrong = 0, 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for vector in document["vectors"]:
            count += 1
            try:
                field = "proof" if vector["purpose"] == "challenge" else "content"
                found = {field: open_vector(document["suite"], vector)}
            except Refused as reason:
                found = {"refused": str(reason)}
            stated = {key: vector[key] for key in ("content", "proof", "refused") if key in vector}
            if found != stated:
                wrong += 1
                # Shortened: a content may have 2,632 characters.
                print(f"{vector['name']}: {str(found)[:30]} and not {str(stated)[:30]}", file=sys.stderr)
    if wrong:
        return 3
    print(f"{count} vectors hold")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
