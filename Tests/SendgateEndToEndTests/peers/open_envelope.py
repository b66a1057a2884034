#!/usr/bin/env python3
"""Open a sealed envelope with code that shares nothing with sendgate.

Written from the description of the bytes alone. HPKE, Ed25519 and HMAC come from the Python package
`cryptography` (47 or newer, which has `hazmat.primitives.hpke`); there is no other dependency.

    python3 open_envelope.py < question.json

The question is one JSON object on standard input; byte strings are base64url without padding:

    private_key  32 bytes: the P-256 scalar, big-endian, or the X25519 key
    public_key   the raw device public key: 65 bytes (0x04 || x || y) or 32; its length tells the suite
    app, device  the names the device was registered with
    kid          the key id, 32 lower-case hexadecimal digits
    envelope     the envelope: its JSON text, byte for byte
    origin_keys  {origin key id (16 hexadecimal digits): Ed25519 public key, 32 bytes}, or instead
                 origin_public_key: one such key, believed under whatever id the content claims
    purpose      "notification" (the default) or "challenge"
    now          optional, Unix seconds: refuse what has expired by then

Standard output is one JSON object and the exit status is 0:

    for a notification  {"content": text, "mid": ..., "exp": ..., "origin": ..., "bucket": ...}
    for a challenge     {"proof": base64url, "mid": ..., "exp": ..., "origin": ..., "bucket": ...}

`content` is the content's UTF-8 text; parse it to see the JSON inside. Whatever does not hold ends with
exit status 1 and one line on standard error that says what.
"""

import base64
import hashlib
import hmac
import json
import re
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

# name: (kem id, aead id, suite, length of the encapsulated key)
SUITES = {
    "P256_SHA256_AES256GCM": (0x0010, 0x0002, Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_256_GCM), 65),
    "X25519_SHA256_CHACHA20POLY1305": (
        0x0020, 0x0003, Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305), 32),
}
PURPOSES = {"notification": 1, "challenge": 2}
BUCKETS = (256, 512, 1024, 2048)
HEADER = 8 + 64 + 2

# The envelope has one spelling: this order, no white space, lower-case digits.
ENVELOPE = re.compile(
    r'\{"v":1,"s":"([A-Z0-9_]+)","kid":"([0-9a-f]{32})"'
    r',"mid":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"'
    r',"exp":([1-9][0-9]{9}),"ct":"([A-Za-z0-9_-]+)"\}'
)


class Refused(Exception):
    """What the question holds does not open; the message says why."""


def require(condition, why):
    if not condition:
        raise Refused(why)


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(encode(data) == text, "base64url in a second spelling")
    return data


def length_prefixed(name):
    data = name.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def private_key(suite, raw, public):
    if suite == "P256_SHA256_AES256GCM":
        key = ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1())
        numbers = key.public_key().public_numbers()
        derived = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    else:
        key = x25519.X25519PrivateKey.from_private_bytes(raw)
        derived = key.public_key().public_bytes_raw()
    require(derived == public, "the public key is not the private key's")
    return key


def open_envelope(question):
    public = decode(question["public_key"])
    suite = next((name for name, parts in SUITES.items() if parts[3] == len(public)), None)
    require(suite, f"no suite has public keys of {len(public)} bytes")
    kem_id, aead_id, hpke, encapsulated_length = SUITES[suite]
    purpose = question.get("purpose", "notification")
    require(purpose in PURPOSES, f"unknown purpose `{purpose}`")
    key = private_key(suite, decode(question["private_key"]), public)

    match = ENVELOPE.fullmatch(question["envelope"])
    require(match, "not an envelope in its one spelling")
    named_suite, kid, mid, expiry, sealed_text = match.groups()
    require(kid == question["kid"], "the envelope is for another key id")
    require(named_suite == suite, "the envelope names another suite than the device's record")
    require("now" not in question or question["now"] < int(expiry), "the message has expired")
    sealed = decode(sealed_text)
    bucket = len(sealed) - encapsulated_length - 16
    require(bucket in BUCKETS, "the ciphertext has no bucket's length")

    info = (
        b"sendgate/sealed/v1\x00"
        + struct.pack(">BHHH", PURPOSES[purpose], kem_id, 0x0001, aead_id)
        + length_prefixed(question["app"])
        + length_prefixed(question["device"])
        + bytes.fromhex(kid)
        + hashlib.sha256(public).digest()
        + bytes.fromhex(mid.replace("-", ""))
        + struct.pack(">Q", int(expiry))
    )
    try:
        plaintext = hpke.decrypt(sealed, key, info)
    except Exception as error:
        raise Refused(f"the seal does not open ({type(error).__name__})") from None
    require(len(plaintext) == bucket, "the plaintext has not its bucket's length")

    origin_kid, signature = plaintext[:8], plaintext[8:72]
    (length,) = struct.unpack(">H", plaintext[72:HEADER])
    require(HEADER + length <= bucket, "the length field exceeds the bucket")
    require(bucket == next(b for b in BUCKETS if HEADER + length <= b), "the bucket is larger than needed")
    content, padding = plaintext[HEADER:HEADER + length], plaintext[HEADER + length:]
    require(not any(padding), "the padding is not zeros")

    origin = origin_kid.hex()
    if "origin_public_key" in question:
        origin_key = question["origin_public_key"]
    else:
        require(origin in question["origin_keys"], f"unknown origin key `{origin}`")
        origin_key = question["origin_keys"][origin]
    statement = (
        b"sendgate/origin/v1\x00" + hashlib.sha256(info).digest() + origin_kid + struct.pack(">H", length) + content
    )
    try:
        Ed25519PublicKey.from_public_bytes(decode(origin_key)).verify(signature, statement)
    except InvalidSignature:
        raise Refused("the origin's signature does not verify") from None

    answer = {"mid": mid, "exp": int(expiry), "origin": origin, "bucket": bucket}
    if purpose == "challenge":
        require(length == 32, "a challenge holds 32 bytes")
        proof = hmac.new(content, b"sendgate/possession/v1\x00" + info, hashlib.sha256).digest()
        return {"proof": encode(proof), **answer}
    return {"content": content.decode("utf-8"), **answer}


def main():
    try:
        answer = open_envelope(json.load(sys.stdin))
    except KeyError as error:
        sys.exit(f"open_envelope: error: the question lacks {error}")
    except (Refused, ValueError) as error:
        sys.exit(f"open_envelope: error: {error}")
    json.dump(answer, sys.stdout, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
