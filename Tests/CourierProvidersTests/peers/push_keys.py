#!/usr/bin/env python3
"""Makes the keys and certificates of one test of the push providers, new each time.

usage: push_keys.py FOLDER

ca.pem               the authority that the courier is told to trust
good.pem             a certificate of it for localhost; so is each of the others, but
other_name.pem       for another name
expired.pem          until yesterday
unknown.pem          of an authority that nobody trusts
itself.pem           signed by itself
apns.p8, apns.pub    an ES256 key as Apple gives it out, and its public half
other.p8             another
account.json         a Google service account, whose `token_uri` is `https://localhost:TOKEN_PORT/token`
account.pub          its public half

Prints `made` when they are there.
"""

import datetime
import json
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


def write(name, data):
    with open(os.path.join(folder, name), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(data)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def authority(name):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(NOW - 10 * DAY).not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
        .sign(key, hashes.SHA256()))
    return key, certificate


def server(name, host, issuer, until):
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = issuer or (key, None)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)]))
        .issuer_name(issuer[1].subject if issuer[1] else x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)]))
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(NOW - 9 * DAY).not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(issuer[0], hashes.SHA256()))
    write(name, pem(key) + certificate.public_bytes(serialization.Encoding.PEM))


folder = sys.argv[1]
trusted = authority("courier test authority")
write("ca.pem", trusted[1].public_bytes(serialization.Encoding.PEM))
server("good.pem", "localhost", trusted, NOW + DAY)
server("other_name.pem", "push.example.com", trusted, NOW + DAY)
server("expired.pem", "localhost", trusted, NOW - DAY)
server("itself.pem", "localhost", None, NOW + DAY)
server("unknown.pem", "localhost", authority("nobody's authority"), NOW + DAY)

apple = ec.generate_private_key(ec.SECP256R1())
write("apns.p8", pem(apple))
write("apns.pub", public(apple))
write("other.p8", pem(ec.generate_private_key(ec.SECP256R1())))

google = rsa.generate_private_key(65537, 2048)
write("account.pub", public(google))
write("account.json", json.dumps({
    "type": "service_account", "project_id": "courier-test", "private_key_id": "k1",
    "private_key": pem(google).decode(), "client_email": "courier@courier-test.iam.gserviceaccount.com",
    "client_id": "1", "token_uri": "https://localhost:TOKEN_PORT/token",
}).encode())
print("made", flush=True)
