#!/usr/bin/env python3
"""How fast people come over by `sendgate import`, and in how much memory.

    python3 Tests/Benchmarks/import_rate.py .build/release/sendgate 1000000

Makes that many people with a phone and two consents, starts a gateway of its own in a temporary folder, imports them, and prints the
rate, the greatest memory of both processes, and the machine's load. The target is a million in 180 s on two cores, below 300 MB each.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CALLER = """
  migration:
    means: Brings people over.
    grants: [recipients.write, devices.write, consents.write, consents.import, preferences.write]
    types: {categories: []}
    may_assert: {sources: [in_app_settings], methods: [in_app_toggle]}
    consents_because: It records what was said to the system before.
    because: It measures an import.
    reviewed: "2026-11-23"
"""


def people(path, count, notice):
    with open(path, "w") as file:
        for number in range(count):
            consents = [
                {
                    "id": f"{purpose}-{number}", "purpose": "marketing", "channel": "push", "jurisdiction": "DE",
                    "event_time": time_, "method": "in_app_toggle", "notice": notice,
                }
                for purpose, time_ in (("first", "2024-11-03T10:00:00Z"), ("second", "2025-11-03T10:00:00Z"))
            ]
            person = {
                "user": f"u_{number}",
                "recipient": {
                    "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                    "age": "adult",
                },
                "devices": {
                    "d_1": {
                        "platform": "ios", "app": "no.getdrop.app", "os_permission": "granted",
                        "token": hashlib.sha256(str(number).encode()).hexdigest(),
                    }
                },
                "consents": consents,
            }
            file.write(json.dumps(person, separators=(",", ":")) + "\n")


def resident(process):
    try:
        with open(f"/proc/{process}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


def processor_seconds(process):
    with open(f"/proc/{process}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    binary, count = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    folder = tempfile.mkdtemp(prefix="sendgate-import-")
    gate = None
    try:
        bundle = f"{folder}/bundle"
        shutil.copytree(f"{ROOT}/Policies", bundle)
        with open(f"{bundle}/callers.yaml", "a") as file:
            file.write(CALLER)
        with open(f"{bundle}/notices/promo.3.en.txt", "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        people(f"{folder}/people.ndjson", count, {"id": "promo", "version": "3", "language": "en", "sha256": digest})
        with open(f"{folder}/log", "w") as log:
            gate = subprocess.Popen(
                [binary, "serve", "--dev", f"{folder}/g", "--policies", bundle, "--json"], stdout=subprocess.PIPE,
                stderr=log)
        gate.stdout.readline()
        before, used = time.monotonic(), processor_seconds(gate.pid)
        importing = subprocess.Popen(
            [binary, "import", f"{folder}/people.ndjson", "--json", "--socket", f"{folder}/g/migration.sock"],
            stdout=subprocess.PIPE)
        most = [0.0]

        def watch():
            while importing.poll() is None:
                most[0] = max(most[0], resident(importing.pid))
                time.sleep(0.2)

        watching = threading.Thread(target=watch)
        watching.start()
        answer = json.loads(importing.stdout.read())
        importing.wait()
        watching.join()
        seconds = time.monotonic() - before
        assert answer["recorded"] == {"consents": 2 * count, "devices": count, "recipients": count}, answer
        state = sum(os.path.getsize(f"{folder}/g/state/{name}") for name in os.listdir(f"{folder}/g/state"))
        print(f"{count} people in {seconds:.1f} s: {count / seconds:.0f} a second")
        print(f"gateway: {processor_seconds(gate.pid) - used:.1f} processor seconds, {resident(gate.pid):.0f} MiB at most")
        print(f"command: {most[0]:.0f} MiB at most")
        print(f"state directory: {state / count:.0f} bytes a person")
        print(f"load average: {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} processors")
    finally:
        if gate:
            gate.terminate()
            gate.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
