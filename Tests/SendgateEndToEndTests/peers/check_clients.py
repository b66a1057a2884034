#!/usr/bin/env python3
"""The handbook's Python, Node and Go clients, against a server that fails in the ways a producer has to live with.

    check_clients.py FOLDER
    check_clients.py FOLDER SOCKET TRAIL

FOLDER has `sendgate_client.py`, `sendgate_client.mjs` and `sendgate_client.go`. Each is driven by `drive_client.*` through the same cases
and must give the same result. Prints what each client promises and keeps; ends with status 1 and a sentence at the first that is not kept.

With SOCKET, the clients send to a real gateway, which the caller of this kills and starts again. Prints `under way`, and `done` when
every send has its decision. After a line on standard input, when the gateway has ended, counts the entries of TRAIL: one for each id.
"""

import collections
import concurrent.futures
import http
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

FOLDER = pathlib.Path(sys.argv[1])
# No error may show them.
PRIVATE = ["u_karimi", "Ahmad Karimi", "rem-8812", "0d4f5a3e"]


def require(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


def send(number):
    return {"id": f"rem-8812-{number}", "type": "transaction.remittance_sent", "recipient": {"user": "u_karimi"},
            "params": {"recipient_name": "Ahmad Karimi", "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"}}


# MARK: What the server does with one request. Each step is given the connection and the id, and returns whether to go on with it.

def answer(status, document, headers=(), cut=None):
    """Answers as written; with `cut`, only so many bytes of the document, and then closes."""
    def step(connection, id):
        body = (document if isinstance(document, str) else json.dumps(document)).replace("THE ID", id).encode()
        lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", f"Content-Length: {len(body)}", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode() + body[:cut])
        return cut is None and "Connection: close" not in headers
    return step


def decision(outcome, reason, detail, **members):
    return {"id": "THE ID", "send_id": "01a22899-6232-7b03-bdac-762abcbf7e78", "outcome": outcome, "reason": reason, "detail": detail,
            "who_can_fix": "recipient", "policy": "c3" * 32, "deliveries": [],
            "trail": {"origin": "gate.test/trail", "index": 3, "leaf": "e0" * 32}, **members}


def problem(status, title, *headers, **members):
    return answer(status, {"type": "urn:sendgate:problem:made", "title": title, "status": status, **members}, headers)


def drop(connection, id):
    return False


def hang(connection, id):
    connection.recv(1)  # until the client goes away
    return False


def drip(connection, id):
    """A byte at a time: no read of the client's ever waits long."""
    try:
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100000\r\n\r\n")
        connection.settimeout(0.02)
        while True:
            connection.sendall(b" ")
            try:
                connection.recv(1)
                return False
            except TimeoutError:
                pass
    except OSError:
        return False


def garble(connection, id):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    return False


def leave(connection, id):
    """Closes after the answer without having said so."""
    FORWARD(connection, id)
    return False


FORWARD = answer(202, decision("forward", "generic_only", "no_key"))
BUSY = problem(503, "The store or the trail cannot take the request", "Retry-After: 0")


class Server:
    """Takes the steps in their order; the last one holds for all requests that follow. With `each`, every id has all of them."""

    def __init__(self, path):
        self.path, self.lock, self.listener, self.connections = str(path), threading.Lock(), None, []
        self.expect([FORWARD])

    def expect(self, steps, each=False):
        with self.lock:
            self.steps, self.each, self.taken, self.requests = steps, each, {}, []

    def listen(self):
        self.bind()
        self.listener.listen(64)
        threading.Thread(target=self.accept, args=[self.listener], daemon=True).start()

    def bind(self):
        """A socket at which nobody listens yet refuses."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)

    def end(self):
        if self.listener:
            try:
                self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            except OSError:
                pass
            self.listener.close()
            self.listener = None
            os.unlink(self.path)
        self.hang_up()

    def hang_up(self):
        with self.lock:
            for each in self.connections:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=self.talk, args=[connection], daemon=True).start()

    def talk(self, connection):
        try:
            with connection, connection.makefile("rb") as reader:
                while self.one(connection, reader):
                    pass
        except OSError:
            pass

    def one(self, connection, reader):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline()
            if not line:
                return False
            head += line
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        body = reader.read(int(fields[b"content-length"]))
        if len(body) < int(fields[b"content-length"]):
            return False
        id = json.loads(body)["id"]
        with self.lock:
            key = id if self.each else None
            taken = self.taken[key] = self.taken.get(key, 0) + 1
            step = self.steps[min(taken, len(self.steps)) - 1]
            self.requests.append({"id": id, "body": body, "at": time.monotonic(), "connection": connection})
        return step(connection, id)

    def used(self):
        """How many connections the requests came over."""
        return len({id(each["connection"]) for each in self.requests})


class Client:
    """One of the three, as a process that is told what to send."""

    def __init__(self, name, command, folder):
        self.name, self.server = name, Server(folder / f"{name}.sock")
        self.child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, sends, timeout=5, deadline=20, at_once=1):
        order = {"socket": self.server.path, "timeout": timeout, "deadline": deadline, "at_once": at_once, "sends": sends}
        print(json.dumps(order), file=self.child.stdin, flush=True)
        line = self.child.stdout.readline()
        require(line, "the client ended")
        told = json.loads(line)
        for each in told["results"]:
            require("error" not in each or not any(value in json.dumps(each) for value in PRIVATE), f"an error shows the request: {each}")
        for id in {each["id"] for each in self.server.requests}:
            bodies = {each["body"] for each in self.server.requests if each["id"] == id}
            require(len(bodies) == 1, f"{id} was sent with another content: {bodies}")
        return told["results"], told["seconds"]

    def one(self, steps, **options):
        self.server.expect(steps)
        results, seconds = self.send([send(1)], **options)
        return results[0], seconds

    def require_decision(self, steps, requests, **options):
        result, seconds = self.one(steps, **options)
        require(result.get("text") == "forward: generic_only (no_key)" and result["is_promised"], f"{result}")
        self.require_requests(requests)
        return seconds

    def require_error(self, name, steps, requests=None, **options):
        result, seconds = self.one(steps, **options)
        require(result.get("error") == name, f"{name} was to be told: {result}")
        if requests is not None:
            self.require_requests(requests)
        deadline = options.get("deadline", 20)
        require(seconds < deadline + 2, f"{seconds} s, with a deadline of {deadline} s")
        return result, seconds

    def require_requests(self, count):
        require(len(self.server.requests) == count, f"{len(self.server.requests)} requests in place of {count}")

    # MARK: The promises

    def answers(self):
        """a decision is a result, a refusal too, and asked for once"""
        for steps, members in [
            (FORWARD, {"is_promised": True, "text": "forward: generic_only (no_key)", "violations": [], "is_replayed": False}),
            (answer(202, decision("defer", "quiet_hours_deferred", None, replayed=True)),
             {"is_promised": True, "text": "defer: quiet_hours_deferred", "detail": "", "is_replayed": True}),
            (answer(403, decision("reject", "invalid_params", None, status=403, title="The params do not fit", violations=[
                {"pointer": "/params/amount", "message": "the param is missing"}])),
             {"is_promised": False, "outcome": "reject", "reason": "invalid_params", "who_can_fix": "recipient",
              "violations": ["/params/amount: the param is missing"],
              "text": "reject: invalid_params\n  /params/amount: the param is missing"}),
        ]:
            result, _ = self.one([steps])
            require("error" not in result and members.items() <= result.items(), f"{result}")
            require(result["id"] == send(1)["id"] and result["send_id"] == "01a22899-6232-7b03-bdac-762abcbf7e78", f"{result}")
            require(result["document"]["trail"]["index"] == 3, f"{result}")
            self.require_requests(1)

    def refusals(self):
        """what will not change is asked once and told readably"""
        for status in (400, 401, 403, 404, 409, 413, 415, 422, 431):
            result, _ = self.require_error("Refused", [problem(
                status, "The request is not of the right shape", detail="see the list", violations=[
                    {"pointer": "/ttl_seconds", "message": "expected an integer"},
                    {"parameter": "locale", "message": "expected a tag"}])], 1)
            require(result["status"] == status and result["text"] == (
                f"{status} The request is not of the right shape\n  see the list\n  /ttl_seconds: expected an integer\n"
                "  locale: expected a tag"), f"{result}")
            require(result["violations"] == ["/ttl_seconds: expected an integer", "locale: expected a tag"], f"{result}")
        result, _ = self.require_error("Refused", [problem(409, "This id was used before with other content")], 1)
        require(result["text"] == "409 This id was used before with other content" and result["violations"] == [], f"{result}")

    def retries(self):
        """what may have failed is tried again, with the same id and content, until it is decided"""
        wait = problem(429, "Too many requests are under way", "Retry-After: 1")
        self.require_decision([drop, wait, BUSY, problem(408, "Slow", "Connection: close"), FORWARD], 5)
        gap = self.server.requests[2]["at"] - self.server.requests[1]["at"]
        require(gap >= 1, f"`Retry-After: 1` was waited for {gap} s")
        self.require_decision([answer(202, decision("forward", "x", None), cut=40), garble, drop, FORWARD], 4)
        self.require_decision([answer(503, "", ["Retry-After: 0"]), answer(429, "<html>"), FORWARD], 3)
        for value in ("soon", "-5", "1.5", "", "Wed, 21 Oct 2037 07:28:00 GMT"):
            self.require_decision([problem(503, "Busy", f"Retry-After: {value}"), FORWARD], 2)

    def time_outs(self):
        """each try has a time-out, for the whole of it"""
        for step in (hang, drip):
            seconds = self.require_decision([step, FORWARD], 2, timeout=1)
            require(1 <= seconds < 4, f"the time-out was {seconds} s")
        self.require_error("Unanswered", [hang], timeout=0.3, deadline=2)
        require(len(self.server.requests) > 1, "it was asked once")
        # The last try ends with the deadline, however long its own time is. It goes over the connection of the send before.
        self.require_decision([FORWARD], 1, timeout=60, deadline=1)
        self.require_error("Unanswered", [hang], 1, timeout=60, deadline=1)

    def deadlines(self):
        """it gives up at the deadline, or at once when it is told to come back after it"""
        result, seconds = self.require_error("Busy", [BUSY], deadline=1)
        require(len(self.server.requests) > 2 and result["status"] == 503, f"{result}")
        require(result["text"] == "503 The store or the trail cannot take the request", f"{result}")
        for value, told in (("60", 60), ("9" * 300, None)):
            result, seconds = self.require_error("Busy", [problem(429, "Wait", f"Retry-After: {value}")], 1)
            require(seconds < 2 and told in (None, result["retry_after"]), f"{seconds} s: {result}")
        # A 503 says nothing of the try before it.
        result, _ = self.require_error("Unanswered", [drop, BUSY], deadline=2)
        require("503 The store or the trail" in result["text"], f"{result}")
        self.require_error("Unanswered", [answer(202, "x" * 2_000_000)], deadline=1)

    def strangers(self):
        """an answer that no gateway gives is told, and not asked for again"""
        for step in (problem(500, "Out of order"), problem(502, "Bad gateway"), answer(200, decision("forward", "x", None)),
                     answer(302, "", ["Location: http://gate/elsewhere"]), answer(202, '{"id": "x'), answer(202, "[]"), answer(202, "null"),
                     answer(202, {"ok": True}), answer(422, {"ok": True}), answer(403, "<html>"), answer(404, ""),
                     answer(422, {"title": "x", "violations": 5}), answer(202, "[" * 200_000)):
            self.require_error("UnreadableAnswer", [step], 1)

    def absences(self):
        """a gateway that is away is waited for, and told from one that may have taken it"""
        self.require_decision([FORWARD], 1, deadline=1)
        self.server.end()
        for _ in range(3):
            self.send([], deadline=1)  # time to notice that the connection it has kept is closed
        result, _ = self.require_error("Unreachable", [FORWARD], 0, deadline=1)
        require(self.server.path in result["text"] and "may this user enter the folder?" in result["text"], f"{result}")
        self.server.bind()
        self.require_error("Unreachable", [FORWARD], 0, deadline=1)
        self.server.end()
        late = threading.Timer(0.5, self.server.listen)
        late.start()
        self.require_decision([FORWARD], 1)
        late.join()

    def connections(self):
        """connections are kept, and one that was closed meanwhile costs nothing"""
        self.server.expect([FORWARD])
        sends = [send(number) for number in range(50)]
        self.require_all(sends)
        require(self.server.used() == 1, f"{self.server.used()} connections for sends one after the other")
        self.server.hang_up()
        self.require_all(sends[:1], 51)
        require(self.server.used() == 2, f"{self.server.used()} connections")
        self.server.expect([leave])
        self.require_all(sends)
        self.server.expect([answer(202, decision("forward", "generic_only", "no_key"), ["Connection: close"])])
        self.require_all(sends)
        require(self.server.used() == 50, f"{self.server.used()} connections")

    def at_once(self):
        """many send at once, and each is given its own answer"""
        barrier = threading.Barrier(8)

        def together(connection, id):
            barrier.wait(20)  # eight are under way, or nobody goes on
            return FORWARD(connection, id)
        self.server.expect([together] * 8 + [FORWARD])
        self.require_all([send(number) for number in range(400)], at_once=8)
        # Go may open one where another is given back in that moment.
        require(8 <= self.server.used() <= 16, f"{self.server.used()} connections for eight at once")
        self.server.expect([FORWARD])
        self.require_all([send(number) for number in range(400)], at_once=64)
        bound = 64 if self.name == "Python" else 32
        require(self.server.used() <= bound, f"{self.server.used()} connections, at most {bound} are promised")
        shuffled = random.Random(39)
        self.server.expect([shuffled.choice([drop, BUSY, FORWARD, FORWARD, leave, garble]) for _ in range(300)] + [FORWARD])
        self.require_all([send(number) for number in range(200)], None, at_once=8)

    def spread(self):
        """those who failed together do not come back together"""
        self.server.expect([BUSY] * 4 + [FORWARD], each=True)
        sends = [send(number) for number in range(20)]
        self.require_all(sends, 100, at_once=20)
        times = [[each["at"] for each in self.server.requests if each["id"] == one["id"]] for one in sends]
        waits = sorted(five[4] - five[3] for five in times)  # the fourth: up to 0.8 s
        require(waits[0] < 0.4 and waits[-1] - waits[0] > 0.1, f"{waits}")

    def require_all(self, sends, requests=0, **options):
        results, _ = self.send(sends, **options)
        require([each.get("id") for each in results] == [each["id"] for each in sends], f"{results}")
        require(all(each["is_promised"] for each in results), f"{results}")
        if requests is not None:
            self.require_requests(requests or len(sends))

    def tell(self):
        self.server.listen()
        self.server.expect([FORWARD])
        for promise in (self.answers, self.refusals, self.retries, self.time_outs, self.deadlines, self.strangers, self.absences,
                        self.connections, self.at_once, self.spread):
            try:
                promise()
            except AssertionError as error:
                raise AssertionError(f"{self.name}: {promise.__doc__}: {error}") from None
            print(f"{self.name}: {promise.__doc__}", flush=True)
        self.child.stdin.close()
        require(self.child.wait(20) == 0, f"{self.name}: ended with {self.child.returncode}")


def fork():
    """Two processes of one Python client never share a connection."""
    sys.path.insert(0, str(FOLDER))
    import sendgate_client
    server = Server(FOLDER / "fork.sock")
    server.listen()
    client = sendgate_client.SendgateClient(server.path)
    client.send(send(0))
    child = os.fork()
    if child == 0:
        client.send(send(1))
        os._exit(0)
    require(os.waitpid(child, 0)[1] == 0, "the child could not send")
    client.send(send(2))
    require(server.used() == 2 and len(server.requests) == 3, f"{len(server.requests)} requests over {server.used()} connections")
    print("Python: after a fork each process has its own connection", flush=True)


def entries(trail):
    """Every entry of a trail: bundles of 256, each entry after its length in two bytes."""
    count = int((trail / "checkpoint").read_text().split("\n")[1])
    for number in range(0, count, 256):
        rest = count - number
        path = f"tile/entries/{number // 256:03}" + (f".p/{rest}" if rest < 256 else "")
        bundle = (trail / path).read_bytes()
        while bundle:
            end = 2 + int.from_bytes(bundle[:2], "big")
            yield json.loads(bundle[2:end])
            bundle = bundle[end:]


def through_kills(clients, path, trail):
    """Each client sends in parts of 50, eight at once, so that a kill comes upon requests, answers and waits."""
    def run(client):
        client.server.path, answers = path, []
        for part in range(8):
            sends = [{**send(0), "id": f"{client.name}-{part * 50 + number}", "recipient": {"user": "u_1"}} for number in range(50)]
            for each in sends:
                each["params"] = {**each["params"], "amount": {"minor": 500000, "currency": "NOK"}}
            answers += client.send(sends, deadline=60, at_once=8)[0]
            begun.set()
        return answers
    begun = threading.Event()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        running = [threads.submit(run, client) for client in clients]
        begun.wait(60)
        print("under way", flush=True)
        answers = [answer for each in running for answer in each.result()]
    print("done", flush=True)
    require(all(each.get("is_promised") for each in answers), f"{[each for each in answers if not each.get('is_promised')][:3]}")
    sys.stdin.readline()
    lives, decided = [], collections.Counter()
    for entry in entries(trail):
        if entry["kind"] == "start":
            lives.append(0)
        elif entry["kind"] == "send":
            lives[-1] += 1
            decided[entry["send_id"]] += 1
    require(len([sends for sends in lives if sends > 0]) > 1, f"sends of each life: {lives}")
    require(len(answers) == 1200 and decided == collections.Counter(each["send_id"] for each in answers),
            f"{len(answers)} answers, {len(decided)} sends decided, {max(decided.values())} times at most")
    print(f"every id was decided once; sends of each life: {lives}, answers found again: {sum(each['is_replayed'] for each in answers)}")


def main():
    here = pathlib.Path(__file__).parent
    for ending in ("py", "mjs", "go"):
        shutil.copy(here / f"drive_client.{ending}", FOLDER)
    subprocess.run(["go", "build", "-o", "drive_client", "drive_client.go", "sendgate_client.go"], cwd=FOLDER, check=True)
    clients = [Client("Python", [sys.executable, "drive_client.py"], FOLDER), Client("Node", ["node", "drive_client.mjs"], FOLDER),
               Client("Go", ["./drive_client"], FOLDER)]
    if len(sys.argv) > 2:
        through_kills(clients, sys.argv[2], pathlib.Path(sys.argv[3]))
        return
    fork()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        for told in [threads.submit(client.tell) for client in clients]:
            told.result()


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(f"check_clients: error: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # threads that still talk are not waited for
