"""Sends through the handbook's Python client; see check_clients.py, which starts it beside the client's file."""

import concurrent.futures
import json
import sys
import time

import sendgate_client

clients = {}


def ask(client, send):
    try:
        answer = client.send(send)
    except sendgate_client.SendgateError as error:
        return {"error": type(error).__name__, "status": error.status or 0, "violations": error.violations,
                "retry_after": error.retry_after_seconds, "text": str(error)}
    return {"id": answer.id, "send_id": answer.send_id, "outcome": answer.outcome, "reason": answer.reason,
            "detail": answer.detail or "", "who_can_fix": answer.who_can_fix, "violations": answer.violations,
            "is_promised": answer.is_promised, "is_replayed": answer.is_replayed, "text": str(answer),
            "document": answer.document}


for line in sys.stdin:
    order = json.loads(line)
    key = order["socket"], order["timeout"], order["deadline"]
    client = clients.setdefault(key, sendgate_client.SendgateClient(*key))
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(order["at_once"]) as threads:
        results = list(threads.map(lambda send: ask(client, send), order["sends"]))
    print(json.dumps({"results": results, "seconds": time.monotonic() - begin}), flush=True)
