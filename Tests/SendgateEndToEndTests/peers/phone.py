"""A phone: makes a device key, proves that it holds it, and opens what is sealed to it.

The opening is `open_envelope.py`'s, which knows nothing of sendgate but the description of the bytes.
"""

import base64
import hashlib
import json
import os

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519

from open_envelope import open_envelope


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def origin_keys(keys):
    """The origin keys of `GET /v1/keys`, by the id that content claims: SHA-256 of the key, 8 bytes."""
    found = {}
    for key in keys["keys"]:
        if key["purpose"] == "origin":
            raw = key["public_key"]
            data = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
            found[hashlib.sha256(data).hexdigest()[:16]] = raw
    return found


class Phone:
    def __init__(self, user, device, app="no.getdrop.app", suite="P256_SHA256_AES256GCM"):
        self.user, self.device, self.app, self.suite = user, device, app, suite
        if suite.startswith("P256"):
            key = ec.generate_private_key(ec.SECP256R1())
            self.private = key.private_numbers().private_value.to_bytes(32, "big")
            self.public = key.public_key().public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        else:
            key = x25519.X25519PrivateKey.generate()
            self.private = key.private_bytes_raw()
            self.public = key.public_key().public_bytes_raw()
        self.kid = None
        self.origins = {}

    @property
    def public_text(self):
        """As a registration has it."""
        return encode(self.public)

    def open(self, envelope, purpose="notification"):
        return open_envelope({
            "private_key": encode(self.private), "public_key": encode(self.public), "app": self.app,
            "device": self.device, "kid": self.kid, "envelope": envelope, "origin_keys": self.origins,
            "purpose": purpose,
        })

    def register_key(self, call):
        """Registers the key and answers the challenge. `call(method, target, body)` is an app backend's."""
        base = f"/v1/recipients/{self.user}/devices/{self.device}/keys"
        added = call("POST", base, {"suite": self.suite, "public_key": encode(self.public)})
        assert added.status == 201, added
        self.kid = added.json["key_id"]
        parts = added.json["challenge"]
        # The envelope has one spelling, and JSON objects have no order.
        challenge = json.dumps({name: parts[name] for name in ("v", "s", "kid", "mid", "exp", "ct")},
                               separators=(",", ":"))
        proof = self.open(challenge, "challenge")["proof"]
        wrong = encode(os.urandom(32))
        return proof, wrong, f"{base}/{self.kid}/confirm"
