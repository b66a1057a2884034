"""An SMS provider over TLS, which answers by table: `text_service.py CERTIFICATE KEY '[{"status": 201, "body": {…}}, …]' [RECORD]`.

Prints the port, and one JSON line for each request, to the file RECORD where there is one. The answers are given in turn, the last one again and again. `"drop": true`
reads the request and closes without an answer; `"raw"` is a body as it stands; `"delay"` is a wait before the answer, in milliseconds.
"""

import http.server
import json
import ssl
import sys
import time

certificate, key, answers = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
record = open(sys.argv[4], "a", encoding="utf-8") if len(sys.argv) > 4 else sys.stdout


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        print(json.dumps({
            "method": self.command, "path": self.path, "body": body,
            "headers": {name.lower(): value for name, value in self.headers.items()},
        }), flush=True, file=record)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.get("drop"):
            self.close_connection = True
            return
        time.sleep(answer.get("delay", 0) / 1000)
        payload = answer["raw"].encode() if "raw" in answer else json.dumps(answer.get("body", {})).encode()
        self.send_response(answer["status"])
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_PUT = do_POST

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
