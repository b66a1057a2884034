#!/usr/bin/env python3
"""A delivery layer on a Unix socket, written apart from sendgate and from its contract alone.

    delivery_layer.py SOCKET RECORD [--faults SEED] [--by-destination]

Every message is appended to RECORD, one line of JSON each with the Unix time in milliseconds, before it is answered:
what is not in RECORD was never accepted. A message id that was accepted before is answered 409. With --faults some answers are withheld
or are 503, as a loaded service would do. With --by-destination what goes to a destination with `-failed` in its name is
refused for good (422 `failed`), and with `-waiting` answered 503, always.

    GET /accepted?messages=N&within=S[&send=ID]
        answers when N different messages (of one send) were accepted, or 504 after S seconds

Prints `ready` when it listens. Ends when its standard input does, so it never outlives the test.
"""

import argparse
import collections
import http.server
import json
import os
import random
import socketserver
import sys
import threading
import time
import urllib.parse


class Ledger:
    """What was accepted, in memory and in the file."""

    def __init__(self, path, seed, by_destination):
        self.changed = threading.Condition()
        self.accepted = set()
        self.per_send = collections.Counter()
        self.random = random.Random(seed)
        self.has_faults = seed is not None
        self.by_destination = by_destination
        self.file = open(path, "a+b", buffering=0)
        self.file.seek(0)
        for line in self.file:
            record = json.loads(line)
            if record["answered"] in (202, "withheld"):
                self.accept(record["delivery"])

    def take(self, body):
        """Returns the status to answer with; None to say nothing at all."""
        delivery = json.loads(body)
        with self.changed:
            message = delivery["message_id"]
            now = time.time_ns() // 1_000_000
            chance = self.random.random() if self.has_faults else 1
            if self.by_destination and "-failed" in delivery["destination"]:
                answer = 422
            elif chance < 0.05 or self.by_destination and "-waiting" in delivery["destination"]:
                answer = 503
            elif message in self.accepted:
                answer = 409
            else:
                answer = "withheld" if chance < 0.15 else 202
            self.file.write(json.dumps({"answered": answer, "at": now, "delivery": delivery}).encode() + b"\n")
            if answer in (202, "withheld"):
                self.accept(delivery)
                self.changed.notify_all()
            return None if answer == "withheld" else answer

    def accept(self, delivery):
        self.accepted.add(delivery["message_id"])
        self.per_send[delivery["send_id"]] += 1

    def wait(self, count, seconds, send):
        with self.changed:
            there = (lambda: self.per_send[send]) if send else (lambda: len(self.accepted))
            self.changed.wait_for(lambda: there() >= count, seconds)
            return there()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes, which Nagle does not touch on a Unix socket.
    disable_nagle_algorithm = False

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/deliveries" or self.headers["Content-Type"] != "application/json":
            return self.answer(404)
        status = self.server.ledger.take(body)
        if status is None:
            self.close_connection = True
            return
        self.answer(status, b'{"outcome":"failed","reason":"refused"}' if status == 422 else b"")

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path != "/accepted":
            return self.answer(404)
        wanted = int(query.get("messages", 0))
        count = self.server.ledger.wait(wanted, float(query.get("within", 0)), query.get("send"))
        self.answer(200 if count >= wanted else 504, str(count).encode())

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        # A gateway that was killed in the middle of a request is what some tests are about.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("socket")
    parser.add_argument("record")
    parser.add_argument("--faults", type=int, metavar="SEED")
    parser.add_argument("--by-destination", action="store_true")
    options = parser.parse_args()
    if os.path.exists(options.socket):
        os.unlink(options.socket)
    server = Server(options.socket, Handler)
    server.ledger = Ledger(options.record, options.faults, options.by_destination)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
