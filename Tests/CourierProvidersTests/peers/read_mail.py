"""Reads mails with Python's own parser: a line of base64 in, a line of JSON out."""

import base64
import email
import email.policy
import json
import sys

for line in sys.stdin:
    raw = base64.b64decode(line)
    message = email.message_from_bytes(raw, policy=email.policy.default)
    parts = {part.get_content_subtype(): part for part in message.walk() if not part.is_multipart()}
    defects = [str(defect) for part in message.walk() for defect in part.defects]
    defects += [str(defect) for value in message.values() for defect in value.defects]

    def body(subtype):
        return parts[subtype].get_payload(decode=True).decode() if subtype in parts else None

    print(json.dumps({
        "subject": str(message["subject"]), "name": message["from"].addresses[0].display_name,
        "from": message["from"].addresses[0].addr_spec, "to": message["to"].addresses[0].addr_spec,
        "date": message["date"].datetime.isoformat(), "id": str(message["message-id"]),
        "unsubscribe": str(message["list-unsubscribe"]), "fields": " ".join(name.lower() for name in message.keys()),
        "plain": body("plain"), "html": body("html"), "type": message.get_content_type(), "defects": defects,
        "longest": str(max(len(line) for line in raw.split(b"\r\n"))), "bare": raw.replace(b"\r\n", b"").count(b"\n"),
    }), flush=True)
