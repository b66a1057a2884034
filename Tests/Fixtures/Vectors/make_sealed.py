#!/usr/bin/env python3
"""Makes sealed-p256.json and sealed-x25519.json, the vectors of the sealed format; see README.md beside it.

usage: make_sealed.py FOLDER

Written from the handbook's description of the bytes (ForApps.md), with the Python package `cryptography` alone. The keys
are digests of public texts and so the same every time; the ephemeral keys of HPKE are random, so a second run makes other
envelopes. Run once; made anew only for another version of the format.
"""

import base64
import hashlib
import hmac
import json
import struct
import sys

from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

NOW = 1_790_000_000
EXP = NOW + 3600
SUITES = {
    "P256_SHA256_AES256GCM": (0x0010, 0x0002, Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_256_GCM), 65),
    "X25519_SHA256_CHACHA20POLY1305": (
        0x0020, 0x0003, Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305), 32),
}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def digest(text):
    return hashlib.sha256(text.encode("utf-8")).digest()


def lp(name):
    data = name.encode("utf-8")
    return struct.pack(">H", len(data)) + data


def pattern(count):
    return bytes((i * 31 + 5) % 256 for i in range(count))


class Device:
    def __init__(self, suite):
        self.suite = suite
        self.raw = digest(f"sendgate test vectors: device key of {suite}")
        if suite.startswith("P256"):
            self.public = ec.derive_private_key(int.from_bytes(self.raw, "big"), ec.SECP256R1()).public_key()
            numbers = self.public.public_numbers()
            self.public_raw = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
        else:
            self.public = x25519.X25519PrivateKey.from_private_bytes(self.raw).public_key()
            self.public_raw = self.public.public_bytes_raw()
        self.kid = digest(f"sendgate test vectors: key id of {suite}")[:16]


class Origin:
    def __init__(self, name):
        self.key = Ed25519PrivateKey.from_private_bytes(digest(f"sendgate test vectors: origin key {name}"))
        self.public_raw = self.key.public_key().public_bytes_raw()
        self.kid = hashlib.sha256(self.public_raw).digest()[:8]


ORIGIN, STRANGER = Origin("of the gateway"), Origin("of a stranger")


class Message:
    """Everything that goes into one envelope. Each keyword spoils or sets one thing."""

    def __init__(self, device, number, content, purpose=1, app="com.example.test", name="d_test_1", exp=EXP,
                 signer=ORIGIN, origin_kid=None, signed_purpose=None, bucket=None, length=None, padding=None):
        kem, aead, hpke, _ = SUITES[device.suite]
        self.device, self.app, self.name, self.exp, self.content = device, app, name, exp, content
        self.mid = digest(f"sendgate test vectors: message {number}")[:16]

        def info(purpose):
            return (b"sendgate/sealed/v1\0" + struct.pack(">BHHH", purpose, kem, 1, aead) + lp(app) + lp(name)
                    + device.kid + hashlib.sha256(device.public_raw).digest() + self.mid + struct.pack(">Q", exp))

        self.info = info(purpose)
        origin_kid = origin_kid or signer.kid
        statement = (b"sendgate/origin/v1\0" + hashlib.sha256(info(signed_purpose or purpose)).digest() + origin_kid
                     + struct.pack(">H", len(content)) + content)
        head = origin_kid + signer.key.sign(statement) + struct.pack(">H", len(content) if length is None else length)
        bucket = bucket or next(b for b in (256, 512, 1024, 2048) if len(head) + len(content) <= b)
        plaintext = bytearray((head + content).ljust(bucket, b"\0"))
        if padding is not None:
            plaintext[padding] = 1
        self.sealed = hpke.encrypt(bytes(plaintext), device.public, self.info)

    def envelope(self, suite=None, kid=None, mid=None, exp=None, sealed=None):
        mid = (mid or self.mid).hex()
        return (f'{{"v":1,"s":"{suite or self.device.suite}","kid":"{(kid or self.device.kid).hex()}","mid":"'
                f'{mid[:8]}-{mid[8:12]}-{mid[12:16]}-{mid[16:20]}-{mid[20:]}","exp":{exp or self.exp},"ct":"'
                f'{encode(sealed or self.sealed)}"}}')

    @property
    def proof(self):
        return hmac.new(self.content, b"sendgate/possession/v1\0" + self.info, hashlib.sha256).digest()


def flipped(data, index):
    changed = bytearray(data)
    changed[index] ^= 1
    return bytes(changed)


def vectors(suite):
    device = Device(suite)
    other = Device(next(name for name in SUITES if name != suite))
    found = []

    def add(name, message, envelope=None, now=NOW, purpose="notification", **answer):
        found.append({
            "name": name, "purpose": purpose, "app": message.app, "device": message.name,
            "kid": device.kid.hex(), "private_key": encode(device.raw), "public_key": encode(device.public_raw),
            "origin_key": encode(ORIGIN.public_raw), "envelope": envelope or message.envelope(), "now": now, **answer,
        })

    def new(content, **fields):
        return Message(device, f"{suite} {len(found)}", content, **fields)

    # What opens.
    for count in (0, 182, 183, 438, 439, 950, 951, 1974):
        message = new(pattern(count))
        add(f"test: a content of {count} bytes", message, content=encode(message.content))
    message = new("Penger mottatt: 5 000 kr ✓".encode("utf-8"), app="no.eksempel.blåbær-тест-試験")
    add("test: an app's name that is not ASCII", message, content=encode(message.content))
    message = new(b'{"title":"test"}', name="d" * 1024)
    add("test: the longest name of a device", message, content=encode(message.content))
    message = new(b'{"title":"test"}')
    add("test: the last second of a message", message, now=EXP - 1, content=encode(message.content))
    message = new(b'{"expires_at":%d,"title":"test"}' % ((EXP - 60) * 1000 + 999))
    add("test: the last second of a content", message, now=EXP - 61, content=encode(message.content))
    nonce = digest("sendgate test vectors: nonce")
    message = new(nonce, purpose=2)
    add("test: a challenge", message, purpose="challenge", proof=encode(message.proof))

    # What is refused.
    def refuse(name, why, envelope=None, message=None, **question):
        message = message or good
        add(f"test: {name}", message, envelope(message) if envelope else None, refused=why, **question)

    good = new(b'{"title":"test"}')
    text = good.envelope()
    enc = SUITES[suite][3]
    refuse("another version", "malformed_envelope", lambda m: text.replace('"v":1', '"v":2'))
    refuse("an unknown suite", "malformed_envelope", lambda m: m.envelope(suite=suite.replace("SHA256", "SHA512")))
    refuse("a space more", "malformed_envelope", lambda m: text.replace('"exp":', '"exp": '))
    refuse("two fields in another order", "malformed_envelope",
           lambda m: text.replace('"v":1,"s":"%s"' % suite, '"s":"%s","v":1' % suite))
    refuse("an upper-case key id", "malformed_envelope", lambda m: text.replace(m.device.kid.hex(), m.device.kid.hex().upper()))
    refuse("a ciphertext one byte short", "malformed_envelope", lambda m: m.envelope(sealed=m.sealed[:-1]))
    refuse("another suite under the same key id", "suite_mismatch",
           lambda m: Message(other, "other suite", b"{}").envelope(kid=device.kid))
    refuse("another key id", "unknown_key", lambda m: m.envelope(kid=flipped(m.device.kid, 15)))
    refuse("another message id", "cannot_open", lambda m: m.envelope(mid=flipped(m.mid, 15)))
    refuse("a later expiry", "cannot_open", lambda m: m.envelope(exp=m.exp + 1))
    refuse("another encapsulated key", "cannot_open", lambda m: m.envelope(
        sealed=Message(device, "elsewhere", b"{}").sealed[:enc] + m.sealed[enc:]))
    refuse("an encapsulated key that is no key", "cannot_open", lambda m: m.envelope(
        sealed=(flipped(m.sealed[:enc], enc - 1) if enc == 65 else bytes(32)) + m.sealed[enc:]))
    refuse("another first byte of the ciphertext", "cannot_open", lambda m: m.envelope(sealed=flipped(m.sealed, enc)))
    refuse("another last byte of the tag", "cannot_open",
           lambda m: m.envelope(sealed=flipped(m.sealed, len(m.sealed) - 1)))
    refuse("exp is reached", "expired", now=EXP)
    refuse("the content's own time is over", "expired", now=EXP - 60,
           message=new(b'{"expires_at":%d,"title":"test"}' % ((EXP - 60) * 1000 + 999)))
    refuse("a message for another app", "cannot_open",
           lambda m: new(b"{}", app="com.example.tesu").envelope())
    refuse("a message for another device", "cannot_open", lambda m: new(b"{}", name="d_test_2").envelope())
    refuse("a challenge as a notification", "cannot_open", message=new(nonce, purpose=2))
    refuse("a notification as a challenge", "cannot_open", message=new(nonce), purpose="challenge")
    refuse("a challenge of 31 bytes", "malformed_message", message=new(nonce[:31], purpose=2), purpose="challenge")
    refuse("signed by a stranger", "unknown_origin", message=new(b"{}", signer=STRANGER))
    refuse("signed by a stranger under the gateway's key id", "forged_origin",
           message=new(b"{}", signer=STRANGER, origin_kid=ORIGIN.kid))
    refuse("the signature of a challenge", "forged_origin", message=new(nonce, signed_purpose=2))
    refuse("one byte of padding is not zero", "malformed_message", message=new(b"{}", padding=255))
    refuse("a larger bucket than needed", "malformed_message", message=new(pattern(182), bucket=512))
    refuse("a length beyond the bucket", "malformed_message", message=new(b"{}", length=183))
    return {"suite": suite, "vectors": found}


def main(folder):
    for name, suite in zip(("p256", "x25519"), SUITES):
        with open(f"{folder}/sealed-{name}.json", "w", encoding="utf-8") as file:
            json.dump(vectors(suite), file, ensure_ascii=False, indent=1)
            file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    main(sys.argv[1])
