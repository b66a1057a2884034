"""What a fuzzer must be told to test more than 404s, and the five things JSON Schema cannot say.

Loaded by schemathesis (SCHEMATHESIS_HOOKS=fuzz_hooks) in its own process. SENDGATE_SOCKET is a socket whose caller
may do everything; people and sends are made there before the first case, whatever the fuzzer is. SENDGATE_FUZZED is the
socket the fuzzer uses, whose caller may do less. SENDGATE_SEED is the seed of the run. SENDGATE_ACCEPTED is a file that is written at the end: how many
requests of each operation were answered 2xx, as one JSON object.

1. `60.0` is an integer to JSON Schema and not to the gate, which reads integers as integers (RFC 8785's range).
2. Whether a notice, a time zone or a scope exists, and what a notice asks about, is in the bundle and in tzdata, not in the schema. Such a
   request is well-formed and answered 422 with a problem of its own, and only those are let pass.
3. That one time comes after another (a consent ends after it was given, a receipt is no older than its send), or that one
   value goes with another (a sale is a yes to marketing by e-mail), is no matter of one value. The violation names the place,
   and only these places are let pass.
4. How many bytes a body has. One that is too long is answered 413, as the reference says.
5. A stream's lines are of `application/x-ndjson`, which the fuzzer writes only when shown how.
"""

import atexit
import collections
import hashlib
import json
import os
import pathlib
import random
import re

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from phone import Phone, origin_keys
from unix_http import Gate, utc

# Known only to the bundle, to tzdata, to a clock or to a curve.
BEYOND_THE_SCHEMA = {
    f"urn:sendgate:problem:{name}"
    for name in ("unknown_notice", "unknown_purpose", "unknown_time_zone", "unknown_scope", "unknown_event", "event_in_future",
                 "invalid_public_key", "policy_refused", "other_purpose")
}
POLICIES = pathlib.Path(__file__).resolve().parents[3] / "Policies"

# `      en: [stop, quit]`: the first words of those that begin a withdrawal.
WORDS = re.search(
    r"^      en: \[(.+)\]$", (POLICIES / "channels.yaml").read_text().split("\n    words:\n")[1], re.M)[1].split(", ")
BEYOND_ONE_VALUE = {
    ("/at", "expected a time at or after the send's own"),
    ("/expires_at", "expected a time after `event_time`"),
    ("/method", "expected another method: `existing_customer` is a yes to marketing by e-mail and nothing else"),
    ("/region", "expected a country of ISO 3166-1; `NO`, or `US-CA` where the policy names the part"),
    ("/jurisdiction", "expected a country of ISO 3166-1; `NO`, or `US-CA` where the policy names the part"),
    ("/sent", "is for sends that a listener in shadow only records; this one is carried out here, so its own sender must not have "
              "sent it"),
    ("/reply", f"expected one of the words of `channels.yaml` ({', '.join(WORDS)}, and others), so nothing was withdrawn; "
               "if another word meant it, withdraw without `reply`"),
}
# The notice says by which methods a yes to it is given.
BEYOND_A_NOTICE = re.compile(r"expected (`\w+`, )*`\w+`: a yes to the notice `\w+` is given in no other way")


def is_beyond_one_value(pointer, message):
    return (pointer, message) in BEYOND_ONE_VALUE or pointer == "/method" and BEYOND_A_NOTICE.fullmatch(message)


def consent(identifier):
    """A consent to marketing by push, to the notice of the bundle."""
    text = (POLICIES / "notices" / "promo.3.nb.txt").read_bytes()
    return {"id": identifier, "purpose": "marketing", "channel": "push", "event_time": utc(5),
            "method": "in_app_toggle", "jurisdiction": "NO",
            "notice": {"id": "promo", "version": "3", "language": "nb", "sha256": hashlib.sha256(text).hexdigest()}}


def prepare():
    """Makes a person with everything, and returns the ids by the names they have in paths."""
    gate = Gate(os.environ["SENDGATE_SOCKET"])

    def call(method, target, body=None):
        answer = gate.call(method, target, body)
        assert answer.status < 300, f"{method} {target}: {answer}"
        return answer

    for number in range(8):
        call("PUT", f"/v1/recipients/u_gone_{number}", {"region": "NO", "region_source": "kyc"})
    # Nothing but sends ever names this one, so that what is asked in order is not refused for what came before.
    call("PUT", "/v1/recipients/u_still", {"region": "NO", "region_source": "kyc", "locale": "nb", "age": "adult"})
    call("PUT", "/v1/recipients/u_still/devices/d_still", {
        "platform": "android", "app": "no.getdrop.app", "token": "00bb", "os_permission": "granted"})
    phone = Phone("u_fuzz", "d_fuzz")
    person = "/v1/recipients/u_fuzz"
    call("PUT", person, {"region": "NO", "region_source": "kyc", "locale": "nb", "age": "adult"})
    call("PUT", f"{person}/devices/d_fuzz", {
        "platform": "ios", "app": phone.app, "token": "00aa", "os_permission": "granted"})
    call("PUT", f"{person}/addresses/a_fuzz", {"kind": "sms", "value": "+4790000000", "verified_at": utc(5)})
    keys = call("GET", "/v1/keys").json
    phone.origins = origin_keys(keys)
    proof, _, confirm = phone.register_key(gate.call)
    call("POST", confirm, {"proof": proof})
    call("POST", f"{person}/consents", consent("c_fuzz"))
    sends = [
        call("POST", "/v1/sends", {
            "id": f"fuzz-{number}", "type": "security.new_login", "recipient": {"user": "u_fuzz"},
            "params": {"login_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "a laptop", "at": utc(5)},
        }).json["send_id"]
        for number in range(4)
    ]
    types = Gate(os.environ["SENDGATE_FUZZED"]).call("GET", "/v1/types").json["types"]
    types = [each["type"] for each in types if each["permitted"]] or [each["type"] for each in types]
    examples = {kind: call("GET", f"/v1/types/{kind}").json["example"] for kind in types}
    gate.close()
    known = {
        "user": ["u_fuzz"], "device": ["d_fuzz"], "address": ["a_fuzz"], "key_id": [phone.kid],
        "consent": ["c_fuzz"],
        "send_id": sends, "type": types, "scope": ["marketing", "social", "transactional", "security"],
        "key": [phone.kid],
        "tile": ["0/000.p/1", "entries/000.p/1"],
    }
    return known, examples


KNOWN, EXAMPLES = prepare()
CHANCE = random.Random(int(os.environ["SENDGATE_SEED"]))


def whole(value):
    """The value with integral floats as the integers they are."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [whole(each) for each in value]
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    """Lets half of the valid requests meet a person who exists."""
    if str((case.path_parameters or {}).get("key", "")).startswith("dev-origin"):
        # The fuzzer remembers ids it was told. Without the origin key nothing is sealed: everything after is 503.
        case.path_parameters["key"] = KNOWN["key"][0]
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    # An optional body that is left out stays out; assigning to it would count as a change.
    if isinstance(case.body, (dict, list, float)):
        case.body = whole(case.body)
    removes = case.method.upper() == "DELETE"
    for name in case.path_parameters or {}:
        # What is removed is unknown to all that follows, so others than the usual ones are.
        known = [f"u_gone_{number}" for number in range(8)] if removes and name == "user" else KNOWN.get(name)
        if known and not (removes and name in ("device", "address")) and CHANCE.random() < 0.6:
            case.path_parameters[name] = CHANCE.choice(known)
    if case.path in ("/v1/sends", "/v1/sends/explain") and isinstance(case.body, dict) and "type" in case.body:
        chance = CHANCE.random()
        example = EXAMPLES[CHANCE.choice(KNOWN["type"])]
        if chance < 0.4:
            # What can be answered with 202, with all that leaves it so.
            kept = {name: case.body[name] for name in ("ttl_seconds", "collapse_key", "locale", "caller")
                    if name in case.body}
            case.body = dict(kept, id=f"fuzz-{CHANCE.getrandbits(64)}", type=example["type"],
                             params=example["params"], recipient={"user": "u_still"})
            if case.path == "/v1/sends/explain" and CHANCE.random() < 0.5:
                # A caller that may read no person may ask with facts of their own.
                del case.body["recipient"]
                case.body["facts"] = {"destination": "active"}
        elif chance < 0.7:
            case.body = dict(case.body, type=example["type"], params=example["params"])
    if case.path == "/v1/recipients/{user}/preferences" and isinstance(case.body, dict):
        # Each choice of one request is about something else.
        scopes = CHANCE.sample(KNOWN["scope"], len(KNOWN["scope"]))
        case.body = dict(case.body, preferences=[
            dict(choice, scope=scope) for choice, scope in zip(case.body["preferences"], scopes)])
    if case.path == "/v1/recipients/{user}/addresses/{address}" and isinstance(case.body, dict):
        # Which numbers and mailboxes there are is known beyond the schema.
        digits = f"{CHANCE.randrange(10_000_000):07}"
        value = f"+47 9{digits}" if case.body.get("kind") == "sms" else f"Fuzz.{digits}@Example.ORG"
        case.body = dict(case.body, value=value)
    if case.path == "/v1/recipients/{user}/permission-prompts" and isinstance(case.body, dict):
        case.body = dict(case.body, device="d_fuzz")
    if case.path == "/v1/recipients/{user}/consents" and isinstance(case.body, dict) and CHANCE.random() < 0.6:
        case.body = dict(consent(f"c_{CHANCE.randrange(8)}"), state=CHANCE.choice(["given", "refused"]))
    if case.path == "/v1/receipts" and isinstance(case.body, dict) and CHANCE.random() < 0.6:
        case.body = dict(case.body, send=CHANCE.choice(KNOWN["send_id"]), destination="d_fuzz")
    if case.path == "/v1/replies" and isinstance(case.body, dict) and CHANCE.random() < 0.6:
        case.body = {"id": f"reply-{CHANCE.randrange(40)}", "channel": "sms", "from": "+4790000000",
                     "text": CHANCE.choice(["STOP", "Stopp!", "START", ""]),
                     "received_at": "2026-11-21T05:00:00Z"}
    if case.path == "/v1/sends/stream" and isinstance(case.body, str) and CHANCE.random() < 0.6:
        case.body = "".join(
            json.dumps(dict(EXAMPLES[CHANCE.choice(KNOWN["type"])], id=f"line-{CHANCE.randrange(100)}",
                            recipient={"user": "u_fuzz"})) + "\n"
            for _ in range(CHANCE.randrange(20)))


ACCEPTED = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    """Counts what is accepted: a fuzzer that is always refused finds nothing."""
    if response.status_code < 300:
        ACCEPTED[f"{case.method.upper()} {case.path}"] += 1


@atexit.register
def tell():
    with open(os.environ["SENDGATE_ACCEPTED"], "w", encoding="utf-8") as file:
        json.dump(ACCEPTED, file)


@schemathesis.serializer("application/x-ndjson")
def write_lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.deserializer("application/x-ndjson")
def read_lines(context, response):
    """A line that is not JSON fails here; the text as a whole is what the reference describes."""
    for line in response.content.splitlines():
        json.loads(line)
    return response.content.decode("utf-8")


@schemathesis.check
def valid_data_is_accepted(context, response, case):
    """positive_data_acceptance, but for what is known beyond the schema."""
    if response.status_code == 413:
        return None
    if response.status_code == 422:
        problem = response.json()
        violations = [(each.get("pointer"), each["message"]) for each in problem.get("violations", [])]
        if problem["type"] in BEYOND_THE_SCHEMA or violations and all(is_beyond_one_value(*each) for each in violations):
            return None
    return positive_data_acceptance(context, response, case)
