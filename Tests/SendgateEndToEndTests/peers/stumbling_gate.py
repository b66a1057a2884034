#!/usr/bin/env python3
"""A socket between a producer and a gateway that fails in the ways a producer has to live with.

    stumbling_gate.py SOCKET GATEWAY RECORD STEP...

Each request takes the next STEP; the last one holds for all that follow:

    drop         closes the connection when the request was read, and passes nothing on
    lose         passes the request on, reads the answer, and closes without a word
    429          answers 429 with `Retry-After: 1`
    503          answers 503 with `Retry-After: 0`
    pass         passes the request on and returns its answer

Every request is a line of RECORD: its step, its body and the Unix time in seconds. Prints `ready` when it listens. Ends when its
standard input does.
"""

import http.server
import json
import os
import pathlib
import socketserver
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from unix_http import Gate

PATH, GATEWAY, RECORD, *STEPS = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            step = STEPS.pop(0) if len(STEPS) > 1 else STEPS[0]
            with open(RECORD, "a", encoding="utf-8") as file:
                print(json.dumps({"step": step, "at": time.time(), "body": body.decode()}), file=file)
        if step in ("lose", "pass"):
            gate = Gate(GATEWAY)
            answer = gate.call("POST", self.path, body)
            gate.close()
        if step in ("drop", "lose"):
            self.close_connection = True
        elif step == "pass":
            self.answer(answer.status, answer.media_type, answer.body, [])
        else:
            problem = {"type": "urn:sendgate:problem:stumbled", "title": "Stumbled", "status": int(step)}
            self.answer(int(step), "application/problem+json", json.dumps(problem).encode(),
                        [("Retry-After", "1" if step == "429" else "0")])

    def answer(self, status, media_type, body, headers):
        self.send_response(status)
        for name, value in [("Content-Type", media_type), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a producer"

    def log_message(self, *arguments):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    lock = threading.Lock()


server = Server(PATH, Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os.unlink(PATH)
