"""Asks a gateway without a pause from several clients, and tells how each request ended.

    python3 steady_load.py SOCKET CLIENTS [UID GID]

Half of the clients open a connection for each request; the others keep theirs, and repeat a request once on a new one where the old one
was closed before a byte of the answer came, as every HTTP library does (RFC 9112, section 9.3.1). At a line `more N` it says `more` once so many
more were answered. Ends at any other line, with one line of JSON: how many requests were answered with which status, what failed, and
the longest wait.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time

path, clients = sys.argv[1], int(sys.argv[2])
if len(sys.argv) > 3:
    os.setgroups([int(sys.argv[4])])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[3]))
ends = threading.Event()
lock = threading.Lock()
answered = threading.Condition(lock)
found = {"statuses": {}, "failures": [], "longest_seconds": 0.0, "repeated": 0}


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(path)


def ask(connection, body):
    connection.request("POST", "/v1/sends", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def client(number):
    keeps, connection, count = number % 2 == 0, None, 0
    while not ends.is_set():
        count += 1
        body = json.dumps({
            "id": f"load-{os.getpid()}-{number}-{count}", "type": "payment.received", "recipient": {"user": "stranger"},
            "params": {
                "amount": {"minor": 12500, "currency": "NOK"},
                "payment_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"},
        })
        begin = time.monotonic()
        is_new = connection is None
        try:
            connection = connection or Connection("localhost")
            try:
                status = ask(connection, body)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if is_new:
                    raise
                with lock:
                    found["repeated"] += 1
                connection = Connection("localhost")
                status = ask(connection, body)
            with lock:
                found["statuses"][str(status)] = found["statuses"].get(str(status), 0) + 1
                answered.notify_all()
            if not keeps:
                connection.close()
                connection = None
        except (OSError, http.client.HTTPException) as error:
            connection = None
            with lock:
                found["failures"].append(repr(error))
        with lock:
            found["longest_seconds"] = max(found["longest_seconds"], time.monotonic() - begin)


threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while (line := sys.stdin.readline()).startswith("more "):
    with answered:
        wanted = sum(found["statuses"].values()) + int(line.split()[1])
        answered.wait_for(lambda: sum(found["statuses"].values()) >= wanted, 60)
    print("more", flush=True)
ends.set()
for thread in threads:
    thread.join()
found["failures"] = found["failures"][:10]
print(json.dumps(found), flush=True)
