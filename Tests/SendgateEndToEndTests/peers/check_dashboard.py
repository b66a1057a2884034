"""Loads the handbook's dashboard and rules into what reads them, beside a gateway that has something to count.

    check_dashboard.py MONITORING FOLDER PROMETHEUS DATA

MONITORING has dashboard.json and the files of rules; FOLDER is that of `sendgate serve --dev`, started with a recipient in its store
so that there is a count of them; PROMETHEUS is the server's binary and DATA a folder for it that is not there yet. The dashboard is read into the models of Grafana's own SDK and written again, and
nothing of it may be lost. Then Prometheus scrapes the gateway while there are sends, receipts, switches and an audit, with the
rules as they are but for how often they are evaluated. Each query of each panel must give a number, with the labels its legend
names, and each rule be in good health. Prints a last line of JSON with what was looked at, and a line for each thing that is
wrong; ends with 1 when anything was.
"""

import collections
import copy
import http.server
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from unix_http import Gate, utc

# What there is none of without a fault or an hour that passes: a next hop that fails, a message whose time has come.
QUIET = {
    "sum by (obstacle) (rate(sendgate_hand_over_retries_total[5m]))",
    "sum by (outcome) (rate(sendgate_redecisions_total[5m]))",
}
SECONDS_MAX = 60

wrong = []
looked = collections.Counter()


def expect(what, is_so):
    looked["expectations"] += 1
    if not is_so:
        wrong.append(what)


# Grafana


def loaded(board):
    """The dashboard as Grafana's models have it."""
    return json.loads(json.dumps(Dashboard.from_json(copy.deepcopy(board)), cls=JSONEncoder))


def lost(before, after, place=""):
    """Each place of `before` that `after` has not, or has otherwise. Defaults that were added are no loss."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [found for key, value in before.items() for found in
                (lost(value, after[key], f"{place}/{key}") if key in after else [f"{place}/{key}"])]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [found for index, (one, other) in enumerate(zip(before, after))
                for found in lost(one, other, f"{place}/{index}")]
    return [] if before == after else [place]


def check_dashboard(board):
    register_default_plugins()
    after = loaded(board)
    for place in lost(board, after):
        wrong.append(f"dashboard.json: Grafana's model has no {place}, or has it otherwise")
    expect("a second loading gives another dashboard", loaded(after) == after)
    for panel in after["panels"]:
        looked["panels"] += 1
        # The model's own value of what a panel leaves out: no legend at all.
        legend = panel.get("options", {}).get("legend") if panel["type"] == "timeseries" else {"showLegend": True}
        expect(f"{panel['title']}: no legend is shown", legend and legend["showLegend"])
    # This check can fail: what Grafana does not know is lost.
    for place, change in (
        ("/panels/0/fieldConfig/defaults/units", lambda b: b["panels"][0]["fieldConfig"]["defaults"].update(units="s")),
        ("/panels/0/targets/0/expression", lambda b: b["panels"][0]["targets"][0].update(expression="up")),
        ("/panels/0/options/legends", lambda b: b["panels"][0]["options"].update(legends={})),
        ("/templating/list/0/kind", lambda b: b["templating"]["list"][0].update(kind="datasource")),
    ):
        misspelled = copy.deepcopy(board)
        change(misspelled)
        expect(f"{place} was not lost", place in lost(misspelled, loaded(misspelled)))


# Prometheus


class Scraped(http.server.BaseHTTPRequestHandler):
    """The gateway's /metrics by TCP, which is what Prometheus scrapes."""

    folder = None
    count = 0
    condition = threading.Condition()

    def do_GET(self):
        answer = Gate(os.path.join(self.folder, "gate.sock")).call("GET", "/metrics")
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)
        with self.condition:
            Scraped.count += 1
            self.condition.notify_all()

    def log_message(self, *_):
        pass

    @classmethod
    def wait(cls, count):
        """Until the gateway has been scraped so many times more."""
        with cls.condition:
            goal = cls.count + count
            if not cls.condition.wait_for(lambda: cls.count >= goal, SECONDS_MAX):
                raise AssertionError("Prometheus does not scrape")


def started(program, monitoring, data, port):
    """A Prometheus that has taken up its rules, and the address it answers at."""
    data.mkdir()
    rules, count = re.subn(r"\n    interval: \w+", "\n    interval: 1s", (monitoring / "recording.yaml").read_text())
    expect(f"recording.yaml says {count} times how often it is evaluated", count == 1)
    (data / "recording.yaml").write_text(rules)
    (data / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["recording.yaml", str((monitoring / "alerts.yaml").resolve())],
        "scrape_configs": [{"job_name": "sendgate", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}))
    log = open(data / "log", "wb")
    process = subprocess.Popen(
        [program, f"--config.file={data}/prometheus.yml", f"--storage.tsdb.path={data}/tsdb",
         "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log)
    deadline = time.monotonic() + SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(rb"address=(127\.0\.0\.1:[1-9][0-9]*)", (data / "log").read_bytes())
        if found:
            return process, "http://" + found.group(1).decode()
        time.sleep(0.05)
    process.kill()
    raise AssertionError((data / "log").read_text())


def ask(address, path, **query):
    """What Prometheus answers; `None` while it cannot yet."""
    try:
        with urllib.request.urlopen(f"{address}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        raise AssertionError(f"{query}: {error.read().decode()}") from error


def series(address, expression):
    found = ask(address, "/api/v1/query", query=expression) or {"result": []}
    return [each["metric"] for each in found["result"] if not math.isnan(float(each["value"][1]))]


def check_queries(board, address):
    """Each query until it gives a number: rates need two scrapes, and rules an evaluation after these."""
    open_queries = [(panel["title"], target["expr"], target.get("legendFormat", ""))
                    for panel in board["panels"] for target in panel["targets"]]
    looked["queries"] = len(open_queries)
    stale = QUIET - {expression for _, expression, _ in open_queries}
    expect(f"no panel asks for what may be quiet: {stale}", not stale)
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        still_open = []
        for title, expression, legend in open_queries:
            found = series(address, expression)
            if found:
                looked["series"] += len(found)
                for label in re.findall(r"{{(\w+)}}", legend):
                    expect(f"{title}: the series {found[0]} have no {label}", all(label in each for each in found))
            elif expression not in QUIET:
                still_open.append((title, expression, legend))
        open_queries = still_open
        if not open_queries or time.monotonic() > deadline:
            break
        Scraped.wait(1)
    for title, expression, _ in open_queries:
        wrong.append(f"{title}: `{expression}` gives no number")


def check_rules(address):
    groups = ask(address, "/api/v1/rules")["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        looked["rules"] += 1
        expect(f"the rule {rule['name']} is {rule['health']}: {rule.get('lastError')}", rule["health"] == "ok")


# The gateway


def check(answer, *statuses):
    if answer.status not in statuses:
        raise AssertionError(f"{answer}")
    return answer.json


class Traffic:
    """A person with a phone, of whom everything is counted that a panel shows."""

    def __init__(self, folder):
        self.gate = Gate(os.path.join(folder, "gate.sock"))
        self.count = 0
        check(self.call("PUT", "/v1/recipients/u_2", {
            "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Etc/UTC", "age": "adult"}), 200)
        check(self.call("PUT", "/v1/recipients/u_2/devices/d_1", {
            "platform": "android", "app": "no.getdrop.app", "token": "token-1", "os_permission": "granted"}), 200)
        check(self.call("PUT", "/v1/recipients/u_2/devices/d_1/subscriptions", {
            "categories": {"marketing": True}, "observed_at": utc()}), 200)

    def call(self, *request):
        return self.gate.call(*request)

    def send(self, kind, user="u_2", **more):
        self.count += 1
        body = check(self.call("GET", f"/v1/types/{kind}"), 200)["example"]
        params = {name: str(uuid.uuid4()) if name.endswith("_id") else value for name, value in body["params"].items()}
        return check(self.call("POST", "/v1/sends", {
            **body, "id": f"dashboard-{self.count}", "recipient": {"user": user}, "params": params, **more}), 202, 403)

    def receive(self, send, event, **more):
        # The send is handed over by the relay, and a receipt of what was not is answered 409.
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            answer = self.call("POST", "/v1/receipts", {
                "send": send["send_id"], "destination": "d_1", "event": event, "at": utc(), **more})
            if answer.status == 200 or time.monotonic() > deadline:
                return check(answer, 200)

    def act(self):
        """All of it once: what a counter counted before the first scrape is no increase."""
        sent = self.send("social.mention")
        self.receive(sent, "accepted_by_provider")
        self.receive(sent, "user_observed", action="opened")
        self.send("security.new_login")
        self.send("transaction.remittance_sent")
        self.send("social.mention", user="u_nobody")
        # More than two an hour are gathered, and what waits can be taken back.
        gathered = [self.send("savings.transfer") for _ in range(3)][2]
        check(self.call("POST", f"/v1/sends/{gathered['send_id']}/cancel"), 200)
        for state in ("user_off", "user_on"):
            check(self.call("PUT", "/v1/recipients/u_2/preferences/social", {
                "state": state, "source": "in_app_settings", "channel": "push"}), 200)


def audit(folder):
    run = subprocess.run(["sendgate", "drift", "run", "--socket", os.path.join(folder, "gate.sock")],
                         capture_output=True, text=True, timeout=SECONDS_MAX)
    expect(f"no audit: {run}", run.returncode == 0)


def main():
    monitoring, folder, program, data = sys.argv[1:]
    monitoring = pathlib.Path(monitoring)
    board = json.loads((monitoring / "dashboard.json").read_text())
    check_dashboard(board)
    Scraped.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scraped)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    traffic = Traffic(folder)
    process, address = started(program, monitoring, pathlib.Path(data), server.server_address[1])
    try:
        Scraped.wait(2)
        for _ in range(2):
            traffic.act()
            Scraped.wait(1)
        audit(folder)
        check_queries(board, address)
        check_rules(address)
    finally:
        process.terminate()
        process.wait(30)
    for line in wrong:
        print(line)
    print(json.dumps(looked))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
