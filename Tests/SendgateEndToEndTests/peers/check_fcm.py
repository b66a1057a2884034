#!/usr/bin/env python3
"""Holds composed FCM bodies against Google's own description of the interface.

usage: check_fcm.py SHAPES FILE...

SHAPES is what FCM HTTP v1 takes, with the revision it was taken from: of every schema that `SendMessageRequest` leads
to its properties, types, enums and what is output only, as in fcm.googleapis.com/$discovery/rest?version=v1, without
its descriptions. Each FILE is a golden payload: a line of headers, a line with the body as it leaves the gateway, and
perhaps a line with what was sealed. A body is checked as it will be sent, so a token is put in first.

Every unknown property, wrong type, unknown enum value, malformed duration and reserved data key is reported.
Exit status: 0 all fit, 3 some do not, 64 usage.
"""

import json
import re
import sys

BYTES_MAX = 4096
TTL_SECONDS_MAX = 4 * 7 * 86400
RESERVED = re.compile(r"^(from|message_type)$|^google\.|^gcm\.notification\.|^gcm$|^google$")


def violations(schemas, schema, value, place):
    """Yields a sentence for everything at `place` that the schema does not allow."""
    if "$ref" in schema:
        yield from violations(schemas, schemas[schema["$ref"]], value, place)
        return
    kind = schema.get("type")
    expected = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if not isinstance(value, expected[kind]) or (kind in ("integer", "number") and isinstance(value, bool)):
        yield f"{place}: expected {kind}, found {value!r}"
        return
    if kind == "object":
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, member in value.items():
            if key in properties:
                if properties[key].get("readOnly"):
                    yield f"{place}/{key}: is output only"
                yield from violations(schemas, properties[key], member, f"{place}/{key}")
            elif others is not None:
                yield from violations(schemas, others, member, f"{place}/{key}")
            else:
                yield f"{place}/{key}: is no property"
    elif kind == "array":
        for index, element in enumerate(value):
            yield from violations(schemas, schema["items"], element, f"{place}/{index}")
    elif kind == "string":
        if "enum" in schema and value not in schema["enum"]:
            yield f"{place}: {value!r} is none of {schema['enum']}"
        if schema.get("format") == "google-duration":
            match = re.fullmatch(r"(\d+)(\.\d{1,9})?s", value)
            if not match:
                yield f"{place}: {value!r} is no duration"
            elif int(match[1]) > TTL_SECONDS_MAX:
                yield f"{place}: {value!r} is longer than four weeks"


def check(shapes, body):
    request = json.loads(body)
    if "token" in request.get("message", {}):
        yield "/message/token: a token must not be copied into a body"
    request.setdefault("message", {})["token"] = "test-token"
    yield from violations(shapes["schemas"], {"$ref": "SendMessageRequest"}, request, "")
    for key in request["message"].get("data", {}):
        if RESERVED.search(key):
            yield f"/message/data/{key}: is reserved"
    if len(body) > BYTES_MAX:
        yield f"the body has {len(body)} bytes, FCM takes {BYTES_MAX}"


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    with open(arguments[0], encoding="utf-8") as file:
        shapes = json.load(file)
    status = 0
    for path in arguments[1:]:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
        found = list(check(shapes, lines[1]))
        for violation in found:
            print(f"{path}: {violation}", file=sys.stderr)
        if found:
            status = 3
    if status == 0:
        print(f"{len(arguments) - 1} bodies fit {shapes['id']} revision {shapes['revision']}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
