#!/usr/bin/env python3
"""Pages behind unsubscribe links and sends of a producer, alone and beside each other: answers a second and latency.

    pages.py --page URL [--page URL ...] --socket SOCKET --user USER [--user USER ...]
             [--type TYPE] [--seconds N] [--page-rate N] [--page-clients N] [--send-clients N]

Starts no gateway: URL is an unsubscribe link as a message carries it, SOCKET that of a caller that may send TYPE. A run has four
parts of SECONDS each:

    pages           GET of the links, PAGE-RATE a second together; a page's time counts from when it was due
    sends           each producer sends its next message when it has the answer to the one before
    both            the two beside each other
    over the bound  the same sends beside page clients that wait for nothing, so most of their requests are refused with 503

Each part ends after its time, and after COUNT_MAX requests of a client at the latest. Pages and producers are processes of their
own.
"""

import argparse
import http.client
import multiprocessing
import pathlib
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "SendgateEndToEndTests" / "peers"))
from unix_http import Gate  # noqa: E402

SECONDS_MAX = 60
CLIENTS_MAX = 32
RATE_MAX = 1_000
COUNT_MAX = 50_000
TIMEOUT = 10
# Before the first request of a part, in seconds: both processes are there by then.
LEAD = 1.0


def page(url):
    """Status of one page; a connection carries one request."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=TIMEOUT)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def ask_pages(number, options, begin, rate, told):
    """One client of `options.page_clients`; `rate` of all of them together, 0 for one request after the other."""
    interval = options.page_clients / rate if rate else 0
    due = begin + interval * number / options.page_clients
    for count in range(COUNT_MAX):
        now = time.monotonic()
        if due > now:
            time.sleep(due - now)
        elif not rate:
            due = now
        if time.monotonic() >= begin + options.seconds:
            return
        try:
            status = page(options.page[count % len(options.page)])
        except (OSError, http.client.HTTPException) as error:
            status = type(error).__name__
        told.append((status, time.monotonic() - due))
        due = due + interval if rate else 0


def send_messages(number, options, begin, _, told):
    gate = Gate(options.socket, TIMEOUT)
    body = gate.call("GET", f"/v1/types/{options.type}").json["example"]
    time.sleep(max(0, begin - time.monotonic()))
    for count in range(COUNT_MAX):
        asked = time.monotonic()
        if asked >= begin + options.seconds:
            break
        body["id"] = f"pages-{time.time_ns()}-{number}-{count}"
        body["recipient"] = {"user": options.user[count % len(options.user)]}
        answer = gate.call("POST", "/v1/sends", body)
        told.append((answer.status, time.monotonic() - asked))
    gate.close()


def run_clients(client, count, options, begin, rate, results):
    told = [[] for _ in range(count)]
    threads = [threading.Thread(target=client, args=(number, options, begin, rate, told[number])) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put([row for rows in told for row in rows])


def measure(options, *loads):
    """Runs the loads beside each other; each is (name, client, count, rate). Gives (name, rows) of each."""
    begin = time.monotonic() + LEAD
    started = []
    for name, client, count, rate in loads:
        results = multiprocessing.Queue()
        process = multiprocessing.Process(target=run_clients, args=(client, count, options, begin, rate, results))
        process.start()
        started.append((name, process, results))
    measured = [(name, results.get(timeout=options.seconds + LEAD + 4 * TIMEOUT)) for name, _, results in started]
    for _, process, _ in started:
        process.join()
    return measured


def quantile(times, part):
    return times[min(len(times) - 1, int(part * len(times)))] * 1_000


def report(part, options, measured):
    for name, rows in measured:
        done = sorted(elapsed for status, elapsed in rows if status in (200, 202))
        others = {}
        for status, _ in rows:
            if status not in (200, 202):
                others[status] = others.get(status, 0) + 1
        if not done:
            sys.exit(f"{part}: no {name} was answered: {others}")
        print(f"{part:15}{name:7}{len(done) / options.seconds:8.1f} /s   p50 {quantile(done, 0.5):7.1f} ms   "
              f"p99 {quantile(done, 0.99):7.1f} ms   max {done[-1] * 1_000:7.1f} ms"
              + "".join(f"   {status}: {count}" for status, count in sorted(others.items(), key=str)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="append", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--user", action="append", required=True)
    parser.add_argument("--type", default="security.new_login")
    parser.add_argument("--seconds", type=int, default=10, choices=range(1, SECONDS_MAX + 1), metavar="N")
    parser.add_argument("--page-rate", type=int, default=90, choices=range(1, RATE_MAX + 1), metavar="N")
    parser.add_argument("--page-clients", type=int, default=4, choices=range(1, CLIENTS_MAX + 1), metavar="N")
    parser.add_argument("--send-clients", type=int, default=4, choices=range(1, CLIENTS_MAX + 1), metavar="N")
    options = parser.parse_args()
    pages = ("pages", ask_pages, options.page_clients, options.page_rate)
    flood = ("pages", ask_pages, options.page_clients, 0)
    sends = ("sends", send_messages, options.send_clients, 0)
    report("pages", options, measure(options, pages))
    report("sends", options, measure(options, sends))
    report("both", options, measure(options, pages, sends))
    report("over the bound", options, measure(options, flood, sends))


if __name__ == "__main__":
    main()
