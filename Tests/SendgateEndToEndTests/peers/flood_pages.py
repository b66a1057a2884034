"""Floods the pages behind unsubscribe links while a producer sends.

    flood_pages.py FOLDER LINK [--seconds N] [--clients N] [--sends-per-second N]

FOLDER is that of `sendgate serve --dev`, in which u_1 has a device; LINK is a genuine link of that gateway. Sends go for N
seconds without a flood and for N seconds under it, at an even pace and as two callers. The flood has so many clients, each with
one connection after another: GET and POST, of forged tokens, of the genuine one, and of one POST with the very same bytes each
time. Every send must be decided and every page answered as the handbook says; afterwards one good GET must work. Prints one line
of JSON with what was measured and counted; ends with 1 and a line for each thing that is wrong.
"""

import argparse
import base64
import collections
import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import uuid

from unix_http import Gate, utc

# What the handbook's page "Unsubscribing" has for these requests.
PAGE_STATUSES = {
    "get-genuine": {200, 503}, "get-forged": {404, 503}, "mute-genuine": {303, 503}, "undo-genuine": {303, 503},
    "one-click-replayed": {200, 503}, "post-forged": {404, 503},
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# Of one client, whatever the time says.
REQUEST_COUNT_MAX = 10_000


class Flood(threading.Thread):
    """One connection after another, each with one request, until it is told to end."""

    def __init__(self, number, link, ending):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.address = urllib.parse.urlsplit(link)
        self.ending = ending
        self.counts = collections.Counter()
        self.wrong = collections.Counter()

    def forged(self):
        """A token of the right length: all of it invented, or the genuine one with one byte changed."""
        if self.random.random() < 0.5:
            return base64.urlsafe_b64encode(b"\1" + self.random.randbytes(56)).decode()
        token = bytearray(base64.urlsafe_b64decode(self.address.path.rsplit("/", 1)[1]))
        token[self.random.randrange(len(token))] ^= 1 << self.random.randrange(8)
        return base64.urlsafe_b64encode(bytes(token)).decode()

    def run(self):
        genuine = self.address.path
        for _ in range(REQUEST_COUNT_MAX):
            if self.ending.is_set():
                break
            kind = self.random.choice(sorted(PAGE_STATUSES))
            path = genuine if kind.endswith(("genuine", "replayed")) else f"/u/{self.forged()}"
            body = {"mute-genuine": "action=mute", "undo-genuine": "action=undo", "post-forged": "action=mute",
                    "one-click-replayed": "List-Unsubscribe=One-Click"}.get(kind)
            connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=30)
            try:
                connection.request("GET" if body is None else "POST", path, body, FORM if body else {})
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException) as error:
                # The listener's own queue may be full; what was let in is answered.
                self.counts[type(error).__name__] += 1
                if not isinstance(error, ConnectionError):
                    self.wrong[f"{kind}: {type(error).__name__}"] += 1
                continue
            finally:
                connection.close()
            self.counts[status] += 1
            if status not in PAGE_STATUSES[kind]:
                self.wrong[f"{kind}: {status}"] += 1


def send(gates, number):
    """A notice that goes, and every fourth time a promotion, which the recipient has not consented to."""
    marketing = number % 4 == 3
    params = {"offer_id": str(uuid.uuid4()), "headline": "Half the fee"} if marketing else {
        "login_id": str(uuid.uuid4()), "device_name": "a laptop", "at": utc(5)}
    body = {"id": f"flood-{uuid.uuid4()}", "type": "promo.offer" if marketing else "security.new_login",
            "recipient": {"user": "u_1"}, "params": params}
    begin = time.monotonic()
    answer = gates["marketing" if marketing else "security"].call("POST", "/v1/sends", body)
    return time.monotonic() - begin, answer.status, 403 if marketing else 202


def produce(gates, seconds, per_second, wrong):
    """Sends at an even pace: one that is late does not put off the next, so that what waited counts as well."""
    taken = []
    begin = time.monotonic()
    for number in range(int(seconds * per_second)):
        due = begin + number / per_second
        time.sleep(max(0, due - time.monotonic()))
        _, status, expected = send(gates, number)
        taken.append(time.monotonic() - due)
        if status != expected:
            wrong[f"a send is {status} instead of {expected}"] += 1
    taken.sort()
    return {"sends": len(taken), "p50_ms": round(1000 * taken[len(taken) // 2], 1),
            "p99_ms": round(1000 * taken[len(taken) * 99 // 100], 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("link")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sends-per-second", type=int, default=50)
    options = parser.parse_args()
    wrong = collections.Counter()
    gates = {caller: Gate(os.path.join(options.folder, f"{caller}.sock")) for caller in ("security", "marketing")}
    quiet = produce(gates, options.seconds, options.sends_per_second, wrong)
    ending = threading.Event()
    floods = [Flood(number, options.link, ending) for number in range(options.clients)]
    begin = time.monotonic()
    for flood in floods:
        flood.start()
    under = produce(gates, options.seconds, options.sends_per_second, wrong)
    seconds = time.monotonic() - begin
    ending.set()
    for flood in floods:
        flood.join(60)
        if flood.is_alive():
            wrong["a client of the flood got no answer in a minute"] += 1
    pages = sum((flood.counts for flood in floods), collections.Counter())
    for flood in floods:
        wrong.update(flood.wrong)

    # The pages have their rate again within the time that they ask clients to wait.
    address = urllib.parse.urlsplit(options.link)
    good, deadline = 503, time.monotonic() + 30
    while good == 503 and time.monotonic() < deadline:
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        connection.request("GET", address.path)
        good = connection.getresponse().status
        connection.close()
    if good != 200:
        wrong[f"a good GET is {good} afterwards"] += 1
    served = sum(count for status, count in pages.items() if isinstance(status, int) and status != 503)
    for what, count in sorted(wrong.items()):
        print(f"{what}, {count} times")
    print(json.dumps({
        "quiet": quiet, "flooded": under, "pages": {str(status): count for status, count in sorted(pages.items(), key=str)},
        "asked_per_second": round(sum(pages.values()) / seconds), "served_per_second": round(served / seconds),
        "wrong": sum(wrong.values())}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
