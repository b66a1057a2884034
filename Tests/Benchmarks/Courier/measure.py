#!/usr/bin/env python3
"""How fast the courier is, and what it needs: release builds against a stand-in of Apple's with a delay of its own.

    measure.py BINARIES [PART ...] [--waiting COUNT] [--outage SECONDS]

BINARIES is the folder of `sendgate` and `sendgate-courier`. Parts, all of them without a name:

    rate      pushes a second of a full gateway at 20 and 80 ms, against the same courier under orders of `push_stand drive`, which
              asks as the gateway does and does nothing else. At least 85 in 100; 0 ms is shown alone, where all share the processors.
    memory    the courier's resident memory at its highest, while COUNT promotions wait in the gateway and drain. At most 100 MiB.
    outage    COUNT wait, a third of each tier, while Apple answers 503 for SECONDS, long enough for every pause to have its
              longest; then how soon the first goes, how fast the rest, and in which order.
    critical  how long a critical push takes to Apple, at the 99th in 100, while COUNT promotions drain. Below 250 ms.

A gateway runs with `--dev` and the repository's bundle, which lets one promotion a day go to a person, so there are COUNT people:
they are registered once, and each gateway begins with a copy of that state. Ends with 1 when a promise is not kept.
"""

import argparse
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "Tests" / "SendgateEndToEndTests" / "peers"))
from unix_http import Gate, utc  # noqa: E402

APP = "no.getdrop.app"
BATCH = 1_000
# What a message waits for at most where nothing is measured, in seconds.
PATIENCE = 600
RATE_MIN, MEMORY_MAX, CRITICAL_MAX = 0.85, 100.0, 250.0
TYPES = {"promotional": "promo.offer", "important": "payment.received", "critical": "security.new_login"}


class Child:
    """A process that ends with the measurement."""

    def __init__(self, *command):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], stdout=subprocess.PIPE,
            stderr=self.errors, text=True)

    def line(self):
        if line := self.process.stdout.readline():
            return line
        self.errors.seek(0)
        sys.exit(f"measure: error: `{self.process.args[4]}` ended: {self.errors.read()}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def peak(self):
        """Resident memory at its highest, in MiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def processor_seconds(self):
        """User and system time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Stage:
    """Apple's stand-in, and a courier and a gateway that are started when they are needed."""

    examples = {}

    def __init__(self, binaries, folder, registered, people):
        self.binaries, self.folder = binaries, folder
        self.registered, self.people = registered, people
        openssl(folder)
        subprocess.run(
            ["go", "build", "-o", folder / "push_stand", HERE / "push_stand.go"], check=True,
            env={"GO111MODULE": "off", "GOCACHE": str(REPOSITORY / ".build/go-cache"), "PATH": "/usr/bin:/bin"})
        self.apple = Child(folder / "push_stand", "stand", folder / "apple.pem", folder / "apple.key")
        self.port, commands = map(int, self.apple.line().split())
        self.commands = http.client.HTTPConnection("127.0.0.1", commands)
        self.courier = self.gate = None
        (folder / "courier").mkdir(mode=0o700)
        (folder / "courier" / "courier.yaml").write_text(json.dumps({"apps": {APP: {"apns": {
            "key_id": "KEYIDKEYID", "team_id": "TEAMIDTEAM", "key": str(folder / "apns.p8"), "environment": "sandbox",
            "topics": [APP], "trust": str(folder / "ca.pem"), "endpoint": f"localhost:{self.port}"}}}}))

    def processor_seconds(self):
        """Of Apple's stand-in and of the courier."""
        return [self.apple.processor_seconds(), self.courier.processor_seconds()]

    @property
    def socket(self):
        return self.folder / "courier" / "courier.sock"

    def ask(self, target):
        self.commands.request("GET", target)
        return self.commands.getresponse().read().decode()

    def answers(self, delay, status=200):
        self.ask(f"/set?delay={delay}&status={status}")
        self.ask("/forget")

    def start_courier(self):
        self.courier = Child(self.binaries / "sendgate-courier", "serve", "--dev", self.folder / "courier", "--json")
        self.courier.line()

    def stop_courier(self):
        if self.courier:
            self.courier.end()
        self.courier = None

    def launch_gate(self):
        self.gate = Child(
            self.binaries / "sendgate", "serve", "--dev", self.folder / "gate", "--policies", REPOSITORY / "Policies",
            "--hop", f"unix:{self.socket}", "--dev-hop-requests", "512", "--json")
        self.gate.line()

    def start_gate(self):
        """A gateway that knows everybody and has sent nothing."""
        if self.gate:
            self.gate.end()
            shutil.rmtree(self.folder / "gate")
        if self.registered.exists():
            shutil.copytree(self.registered, self.folder / "gate", ignore=shutil.ignore_patterns("*.sock*"))
            return self.launch_gate()
        self.launch_gate()
        began = time.monotonic()
        for asks in registration(self.people):
            subprocess.run(
                [self.folder / "push_stand", "ask", self.folder / "gate" / "gate.sock"], check=True, text=True,
                input="".join(f"{method} {target} {json.dumps(body)}\n" for method, target, body in asks))
        gate = self.connect()
        self.examples.update({kind: gate.call("GET", f"/v1/types/{kind}").json["example"] for kind in TYPES.values()})
        self.gate.process.terminate()
        self.gate.process.wait()
        shutil.copytree(self.folder / "gate", self.registered, ignore=shutil.ignore_patterns("*.sock*"))
        print(f"registered {self.people} people in {time.monotonic() - began:.0f} s", flush=True)
        self.launch_gate()

    def connect(self):
        return Gate(str(self.folder / "gate" / "gate.sock"), 120)

    def send(self, tier, count):
        """Asks for so many sends, of all people in turn. Each is acknowledged, so it is durable."""
        gate, kind = self.connect(), TYPES[tier]
        for first in range(0, count, BATCH):
            lines = []
            for number in range(first, min(first + BATCH, count)):
                body = json.loads(json.dumps(self.examples[kind]))
                body["id"] = str(uuid.uuid4())
                body["recipient"] = {"user": f"u_{number % self.people}"}
                for name in body["params"]:
                    if name.endswith("_id"):
                        body["params"][name] = str(uuid.uuid4())
                lines.append(json.dumps(body))
            answer = gate.call("POST", "/v1/sends/stream", "\n".join(lines).encode(), "application/x-ndjson")
            outcomes = re.findall(rb'"outcome":"(\w+)","policy"', answer.body)
            assert answer.status == 200 and set(outcomes) == {b"forward"} and len(outcomes) == len(lines), answer
        gate.close()

    def wait(self, count, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while (arrived := int(self.ask("/count"))) < count:
            assert time.monotonic() < deadline, f"{arrived} of {count} pushes arrived within {patience} s"
            time.sleep(0.05)

    def arrivals(self):
        """Microseconds, priority and id of each, in order."""
        return [(int(at), priority, id) for at, priority, id in map(str.split, self.ask("/arrivals").splitlines())]

    def end(self):
        for child in (self.gate, self.courier, self.apple):
            if child:
                child.end()


def registration(people):
    """What makes so many people known, in three steps, each of which needs the one before."""
    digest = hashlib.sha256((REPOSITORY / "Policies/notices/promo.3.en.txt").read_bytes()).hexdigest()
    places = [(number, f"/v1/recipients/u_{number}") for number in range(people)]
    yield (("PUT", place, {
        "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin", "age": "adult"})
        for _, place in places)
    yield (("PUT", f"{place}/devices/d_1", {
        "platform": "ios", "app": APP, "token": f"{number:064x}", "os_permission": "granted"})
        for number, place in places)
    yield (("POST", f"{place}/consents", {
        "id": f"c_{number}", "purpose": "marketing", "channel": "push", "state": "given", "event_time": utc(30),
        "method": "in_app_toggle", "jurisdiction": "DE",
        "notice": {"id": "promo", "version": "3", "language": "en", "sha256": digest}})
        for number, place in places)


def openssl(folder):
    """An authority, a certificate of it for localhost, and a key as Apple gives one out."""
    def run(*command):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, cwd=folder)

    for name in ("ca", "apple"):
        run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
    run("req", "-x509", "-new", "-key", "ca.key", "-days", "2", "-subj", "/CN=authority", "-out", "ca.pem", "-addext",
        "basicConstraints=critical,CA:true")
    run("req", "-new", "-key", "apple.key", "-subj", "/CN=localhost", "-out", "apple.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    run("x509", "-req", "-in", "apple.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "apple.pem")
    run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "apns.p8")
    (folder / "apns.p8").chmod(0o400)


def per_second(times):
    """Of the middle eight tenths: neither the start nor the last stragglers."""
    middle = times[len(times) // 10:-len(times) // 10]
    return (len(middle) - 1) / (middle[-1] - middle[0]) * 1e6


def rate(stage, options):
    kept = True
    for delay, count in ((0, 20_000), (20, 30_000), (80, 30_000)):
        stage.start_courier()
        stage.answers(delay)
        used = stage.processor_seconds()
        driver = Child(stage.folder / "push_stand", "drive", stage.socket, APP, count)
        outcomes = driver.line().strip()
        alone_used = [after - before for before, after in zip(used, stage.processor_seconds())]
        alone_used.append(driver.processor_seconds())
        driver.end()
        alone = per_second([at for at, _, _ in stage.arrivals()])
        stage.stop_courier()
        stage.start_gate()
        stage.send("important", count)
        stage.answers(delay)
        stage.start_courier()
        used = [*stage.processor_seconds(), stage.gate.processor_seconds()]
        stage.wait(count)
        through = per_second([at for at, _, _ in stage.arrivals()])
        now = [*stage.processor_seconds(), stage.gate.processor_seconds()]
        through_used = [after - before for before, after in zip(used, now)]
        stage.stop_courier()
        share = through / alone
        kept = kept and (delay == 0 or share >= RATE_MIN)
        print(f"rate at {delay} ms: {alone:.0f}/s without the gateway ({outcomes}), {through:.0f}/s with it, "
              f"{100 * share:.0f} in 100", flush=True)
        # What two processors can do at most follows from these.
        for way, seconds, last in (("without", alone_used, "driver"), ("with", through_used, "gateway")):
            each = [1e6 * part / count for part in seconds]
            print(f"  processor time of a push {way} the gateway: Apple {each[0]:.0f} µs, courier {each[1]:.0f} µs, "
                  f"{last} {each[2]:.0f} µs, in all {sum(each):.0f} µs", flush=True)
    return kept


def memory(stage, options):
    stage.start_gate()
    stage.answers(80, 503)
    stage.start_courier()
    stage.send("promotional", options.waiting)
    waiting = stage.courier.peak()
    stage.answers(80)
    stage.wait(options.waiting)
    peak = stage.courier.peak()
    stage.stop_courier()
    print(f"memory: {waiting:.0f} MiB with {options.waiting} waiting, {peak:.0f} MiB when they had drained", flush=True)
    return peak < MEMORY_MAX


def outage(stage, options):
    stage.start_gate()
    stage.answers(80, 503)
    stage.start_courier()
    began = time.monotonic()
    third = options.waiting // 3
    for tier in ("promotional", "important", "critical"):
        stage.send(tier, third)
    while time.monotonic() - began < options.outage:
        time.sleep(0.1)
    stage.answers(80)
    over = time.time() * 1e6
    stage.wait(3 * third)
    arrivals = stage.arrivals()
    stage.stop_courier()
    # Its trail stands still once it has ended.
    stage.gate.process.terminate()
    stage.gate.process.wait()
    times = [at for at, _, _ in arrivals]
    # Of the message ids the stand-in knows no tier; the trail does.
    tiers = dict(tier_of_messages(stage.folder / "gate" / "trail"))
    print(f"outage of {options.outage} s: the first push {(times[0] - over) / 1e6:.1f} s after its end, then "
          f"{per_second(times):.0f}/s, all {3 * third} in {(times[-1] - over) / 1e6:.1f} s", flush=True)
    kept = True
    for name in ("critical", "important", "promotional"):
        own = [at - times[0] for at, _, id in arrivals if tiers.get(id) == name]
        print(f"  {name}: half after {statistics.median(own) / 1e6:.1f} s, all after {own[-1] / 1e6:.1f} s", flush=True)
    medians = [statistics.median([at for at, _, id in arrivals if tiers.get(id) == name])
               for name in ("critical", "important", "promotional")]
    return kept and medians == sorted(medians)


def tier_of_messages(trail):
    from check_evidence import Evidence

    names = {kind: tier for tier, kind in TYPES.items()}
    for entry in map(json.loads, Evidence(trail, [], None).entries):
        if entry["kind"] == "send":
            for delivery in entry["deliveries"]:
                if "message_id" in delivery:
                    yield delivery["message_id"], names[entry["request"]["type"]]


def critical(stage, options):
    stage.start_gate()
    stage.stop_courier()
    stage.send("promotional", options.waiting)
    stage.answers(80)
    stage.start_courier()
    stage.wait(1_000)
    gate, sent = stage.connect(), {}
    while int(stage.ask("/count")) < options.waiting * 0.8 and len(sent) < 2_000:
        body = json.loads(json.dumps(stage.examples[TYPES["critical"]]))
        body["id"] = str(uuid.uuid4())
        body["recipient"] = {"user": f"u_{len(sent) % stage.people}"}
        at = time.time() * 1e6
        answer = gate.call("POST", "/v1/sends", body)
        sent[answer.json["deliveries"][0]["message_id"]] = at
        time.sleep(0.02)
    stage.wait(options.waiting + len(sent))
    taken = sorted((at - sent[id]) / 1e3 for at, _, id in stage.arrivals() if id in sent)
    stage.stop_courier()
    p99 = taken[len(taken) * 99 // 100]
    print(f"critical: of {len(taken)} while {options.waiting} drained, half reached Apple within "
          f"{statistics.median(taken):.0f} ms, 99 in 100 within {p99:.0f} ms, the last within {taken[-1]:.0f} ms", flush=True)
    return p99 < CRITICAL_MAX


PARTS = {"rate": rate, "memory": memory, "outage": outage, "critical": critical}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--outage", type=int, default=150)
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="courier-") as all:
        for part in options.parts or PARTS:
            with tempfile.TemporaryDirectory(prefix="courier-") as folder:
                stage = Stage(
                    options.binaries.resolve(), pathlib.Path(folder), pathlib.Path(all) / "registered",
                    max(options.waiting, 1_000))
                try:
                    if not PARTS[part](stage, options):
                        missed.append(part)
                finally:
                    stage.end()
    if missed:
        sys.exit(f"measure: error: not kept: {', '.join(missed)}")


main()
