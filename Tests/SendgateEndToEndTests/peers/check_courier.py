#!/usr/bin/env python3
"""Holds a gateway's trail against what Apple's and Twilio's stand-ins got.

    check_courier.py TRAIL PUSHES TEXTS TOLD

PUSHES is one answer to `{"log": true}` of push_service.py, TEXTS the output of text_service.py behind its port, and TOLD
`{"pushes": [message id, …], "texts": [send id, …]}` of the sends that were acknowledged. Prints `{"differences": […], "counts": {…}}`:

a push        was handed over, reached Apple, and more than once only if the trail says that so many tries were made
a text        reached Twilio once at most; one that the trail calls handed over did, and any other is `ambiguous` there
"""

import collections
import json
import pathlib
import sys
import urllib.parse

from check_evidence import Evidence

trail, pushes, texts, told = sys.argv[1:]
told = json.load(open(told, encoding="utf-8"))
at_apple = collections.Counter(
    request["headers"]["apns-id"] for request in json.load(open(pushes, encoding="utf-8"))["requests"])
at_twilio = collections.Counter()
for line in open(texts, encoding="utf-8"):
    form = dict(urllib.parse.parse_qsl(json.loads(line)["body"]))
    at_twilio[dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(form["StatusCallback"]).query))["send"]] += 1

by_message, by_send = {}, {}
for entry in map(json.loads, Evidence(pathlib.Path(trail), [], None).entries):
    if entry["kind"] == "delivery":
        body = entry["body"] if "body" in entry else entry
        by_message[body["message_id"]] = by_send[body["send_id"]] = body

differences, counts = [], collections.Counter(pushes=len(told["pushes"]), texts=len(told["texts"]))
for message in told["pushes"]:
    end, copies = by_message.get(message, {}), at_apple[message]
    counts["pushes tried again"] += end.get("attempts", 0) > 1
    counts["pushes doubled"] += copies > 1
    if end.get("result") != "handed_over":
        differences.append(f"the push {message} ended as {end.get('result')}")
    if copies == 0:
        differences.append(f"the push {message} never reached Apple")
    if copies > end.get("attempts", 0):
        differences.append(f"the push {message} reached Apple {copies} times in {end.get('attempts')} tries")
for send in told["texts"]:
    end, copies = by_send.get(send, {}), at_twilio[send]
    counts["texts in doubt"] += end.get("result") == "ambiguous"
    if copies > 1:
        differences.append(f"the text of {send} reached Twilio {copies} times")
    if end.get("result") not in ("handed_over", "ambiguous"):
        differences.append(f"the text of {send} ended as {end.get('result')}")
    if end.get("result") == "handed_over" and copies == 0:
        differences.append(f"the text of {send} is called handed over and never reached Twilio")
for strange in set(at_apple) - set(told["pushes"]) | set(at_twilio) - set(told["texts"]):
    differences.append(f"{strange} was never acknowledged")
print(json.dumps({"differences": differences, "counts": counts}))
