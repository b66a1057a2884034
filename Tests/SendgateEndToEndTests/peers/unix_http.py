"""HTTP over a Unix socket with Python's own http.client; shared by the peers beside it."""

import http.client
import json
import socket
import time


class UnixConnection(http.client.HTTPConnection):
    """One connection; kept open between requests as http.client does."""

    def __init__(self, path, timeout=30):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    """Status and body of one answer."""

    def __init__(self, status, media_type, body):
        self.status = status
        self.media_type = media_type
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:600].decode('utf-8', 'replace')}"


class Gate:
    """A caller of the gateway on one socket."""

    def __init__(self, path, timeout=30):
        self.connection = UnixConnection(path, timeout)
        # Whether the last request was written whole: only then can its answer have been lost.
        self.is_written = False

    def call(self, method, target, body=None, content_type="application/json"):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode()
        headers = {} if body is None else {"Content-Type": content_type}
        self.is_written = False
        self.connection.request(method, target, body, headers)
        self.is_written = True
        response = self.connection.getresponse()
        return Answer(response.status, response.getheader("Content-Type"), response.read())

    def close(self):
        self.connection.close()


def utc(seconds_ago=0):
    """RFC 3339, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))
