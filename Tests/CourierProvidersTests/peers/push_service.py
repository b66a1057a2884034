#!/usr/bin/env python3
"""Stands in for Apple, Google and Expo, on one port of the loopback: HTTP/2 or HTTP/1.1 over TLS, as ALPN says.

usage: push_service.py FOLDER [--certificate NAME] [--streams N] [--window BYTES] [--delay MILLISECONDS]

FOLDER has what push_keys.py made. The first line on standard output is the port; then each line of standard input is a
command as a JSON object, answered by one line:

{"next": [BEHAVIOUR, …]}   what to do with the next requests, one each; after them each is answered as its service would
{"log": true}              the requests since the last such command: path, headers, body, broken rules, connection
{"streams": N}             SETTINGS_MAX_CONCURRENT_STREAMS from now on
{"release": true}          answers the requests that were held
{"connections": true}      how many connections there are
{"clock": SECONDS}         how far this service's clock is ahead

A BEHAVIOUR is {"status": 400, "body": "…", "headers": {…}}, or {"do": …} with one of
  hold, silence            the answer comes at `release`; never
  freeze                   nothing is read or written on the connection any more
  reset, refuse            RST_STREAM with CANCEL; with REFUSED_STREAM
  close                    the connection is cut
  goaway_unread            GOAWAY whose last stream is the one before, and the end when the rest is answered
  goaway_read              GOAWAY whose last stream is this one, which is answered
  half                     a head and part of a body, and then the connection is cut
  huge                     200 with 70,000 bytes
  lie                      no answer, and PINGs of the connection are answered with another one's data

Requests are checked by the providers' rules, whatever is then answered.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import ssl
import sys
import time
import urllib.parse
import uuid

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from email.utils import formatdate

APNS_REASONS = {
    "BadPath": 404, "MethodNotAllowed": 405, "BadDeviceToken": 400, "MissingTopic": 400, "BadTopic": 400,
    "TopicDisallowed": 400, "InvalidPushType": 400, "BadPriority": 400, "BadMessageId": 400, "BadExpirationDate": 400,
    "BadCollapseId": 400, "PayloadEmpty": 400, "PayloadTooLarge": 413, "MissingProviderToken": 403,
    "InvalidProviderToken": 403, "ExpiredProviderToken": 403, "DuplicateHeaders": 400,
}
TOPICS = {"com.example.app", "com.example.second", "no.getdrop.app"}

# What FCM takes, from its discovery document.
TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(f"{TESTS}/SendgateEndToEndTests/peers")
SHAPES = json.load(open(f"{TESTS}/Fixtures/FCM/fcm-v1-shapes.json", encoding="utf-8"))


import check_fcm  # noqa: E402, found by the path above


class Service:
    """What the three services answer, whatever the transport."""

    def __init__(self, folder):
        self.clock = 0
        self.apple = serialization.load_pem_public_key(open(f"{folder}/apns.pub", "rb").read())
        self.google = serialization.load_pem_public_key(open(f"{folder}/account.pub", "rb").read())
        self.access_tokens = {}
        self.next = []
        self.log = []
        self.held = []
        self.tickets = 0
        self.receipts = {}

    def now(self):
        return time.time() + self.clock

    def behaviour(self, request):
        """Notes the request, and returns what to do with it."""
        request["broken"] = None
        try:
            usual = self.usual(request)
        except Broken as broken:
            usual = broken.answer
            request["broken"] = str(broken)
        self.log.append(request)
        return self.next.pop(0) if self.next and not request["path"].startswith("/token") else usual

    def usual(self, request):
        path = request["path"]
        if path.startswith("/3/"):
            return self.apns(request)
        if path == "/token":
            return self.oauth(request)
        if path.startswith("/v1/projects/"):
            return self.fcm(request)
        if path.startswith("/--/api/v2/push/"):
            return self.expo(request)
        return {"status": 404, "body": "no such path"}

    # Apple

    def apns(self, request):
        headers = request["headers"]

        def refuse(reason, why=""):
            raise Broken(f"{reason} {why}".strip(), {
                "status": APNS_REASONS[reason], "body": json.dumps({"reason": reason}),
                "headers": {"apns-id": headers.get("apns-id", str(uuid.uuid4()))}})

        if request["method"] != "POST":
            refuse("MethodNotAllowed")
        # Who asks comes before what is asked.
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme != "bearer" or not token:
            refuse("MissingProviderToken")
        try:
            head, claims, signature, signed = jwt(token)
            if head | {"typ": "JWT"} != {"alg": "ES256", "kid": "KEYIDKEYID", "typ": "JWT"} or len(signature) != 64:
                refuse("InvalidProviderToken", "header or length")
            r, s = (int.from_bytes(signature[i:i + 32], "big") for i in (0, 32))
            self.apple.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
        except (ValueError, InvalidSignature) as error:
            refuse("InvalidProviderToken", repr(error))
        if claims.get("iss") != "TEAMIDTEAM" or type(claims.get("iat")) is not int:
            refuse("InvalidProviderToken", "claims")
        if not -3600 <= self.now() - claims["iat"] <= 3600:
            refuse("ExpiredProviderToken")
        if not re.fullmatch(r"/3/device/([0-9a-f]{2})+", request["path"]):
            refuse("BadPath" if not request["path"].startswith("/3/device/") else "BadDeviceToken")
        if len({name for name, _ in request["pairs"]}) != len(request["pairs"]):
            refuse("DuplicateHeaders")
        if "apns-topic" not in headers:
            refuse("MissingTopic")
        if headers["apns-topic"] not in TOPICS:
            refuse("TopicDisallowed")
        kind = headers.get("apns-push-type")
        if kind not in ("alert", "background"):
            refuse("InvalidPushType")
        if headers.get("apns-priority", "10") not in (("5",) if kind == "background" else ("10", "5", "1")):
            refuse("BadPriority")
        try:
            if str(uuid.UUID(headers.get("apns-id", ""))) != headers["apns-id"]:
                refuse("BadMessageId", "not in lower case")
        except ValueError:
            refuse("BadMessageId")
        expiration = headers.get("apns-expiration", "0")
        if not expiration.isdigit() or int(expiration) > self.now() + 30 * 86400 + 60:
            refuse("BadExpirationDate")
        if len(headers.get("apns-collapse-id", "").encode()) > 64:
            refuse("BadCollapseId")
        if not request["body"]:
            refuse("PayloadEmpty")
        if len(request["body"]) > 4096:
            refuse("PayloadTooLarge")
        if not isinstance(json.loads(request["body"]).get("aps"), dict):
            refuse("PayloadEmpty", "no aps")
        return {"status": 200, "headers": {"apns-id": headers["apns-id"]}}

    # Google

    def oauth(self, request):
        def refuse(why):
            raise Broken(why, {"status": 400, "body": json.dumps({"error": "invalid_grant", "error_description": why})})

        form = dict(urllib.parse.parse_qsl(request["body"].decode()))
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            refuse("grant_type")
        head, claims, signature, signed = jwt(form.get("assertion", ""))
        try:
            self.google.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            refuse("Invalid JWT Signature.")
        if head.get("alg") != "RS256" or head.get("kid") != "k1" or head.get("typ") != "JWT":
            refuse("header")
        if claims["iss"] != "courier@courier-test.iam.gserviceaccount.com":
            refuse("iss")
        # Google's own library names Google's server, whatever the account's file says.
        if not re.fullmatch(r"https://(localhost:\d+|oauth2\.googleapis\.com)/token", claims["aud"]):
            refuse("aud")
        scopes = {f"https://www.googleapis.com/auth/{name}" for name in ("firebase.messaging", "cloud-platform")}
        if scopes.isdisjoint(claims["scope"].split()):
            refuse("scope")
        if not 0 < claims["exp"] - claims["iat"] <= 3600 or abs(claims["iat"] - self.now()) > 300:
            refuse("iat or exp")
        token = f"ya29.{len(self.access_tokens)}"
        self.access_tokens[token] = self.now() + 3599
        return {"status": 200, "body": json.dumps(
            {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}, indent=2)}

    def fcm(self, request):
        def refuse(status, state, code=None, field=None):
            details = []
            if code:
                details.append({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code})
            if field:
                details.append({"@type": "type.googleapis.com/google.rpc.BadRequest",
                                "fieldViolations": [{"field": field, "description": "Invalid value"}]})
            raise Broken(f"{state} {field or code or ''}".strip(), {"status": status, "body": json.dumps(
                {"error": {"code": status, "message": "no", "status": state, "details": details}}, indent=2)})

        if request["method"] != "POST" or request["path"] != "/v1/projects/courier-test/messages:send":
            refuse(404, "NOT_FOUND")
        if not request["headers"].get("content-type", "").startswith("application/json"):
            refuse(400, "INVALID_ARGUMENT", field="content-type")
        scheme, _, token = request["headers"].get("authorization", "").partition(" ")
        if scheme != "Bearer" or self.access_tokens.get(token, 0) < self.now():
            refuse(401, "UNAUTHENTICATED")
        message = json.loads(request["body"]).get("message")
        if not isinstance(message, dict):
            refuse(400, "INVALID_ARGUMENT", field="message")
        if [name for name in ("token", "topic", "condition", "fid") if name in message] != ["token"]:
            refuse(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token")
        del message["token"]
        composed = json.dumps({"message": message}, separators=(",", ":"), ensure_ascii=False).encode()
        for violation in check_fcm.check(SHAPES, composed):
            refuse(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", violation)
        return {"status": 200, "body": json.dumps({"name": f"projects/courier-test/messages/{len(self.log)}"}, indent=2)}

    # Expo

    def expo(self, request):
        def refuse(status, code, message="no"):
            raise Broken(code, {"status": status, "body": json.dumps({"errors": [{"code": code, "message": message}]})})

        if request["method"] != "POST" or not request["headers"].get("content-type", "").startswith("application/json"):
            refuse(400, "VALIDATION_ERROR")
        if request["headers"].get("authorization", "Bearer expo-token") != "Bearer expo-token":
            refuse(401, "UNAUTHORIZED")
        body = json.loads(request["body"])
        if request["path"].endswith("/getReceipts"):
            if not 0 < len(body["ids"]) <= 300:
                refuse(400, "VALIDATION_ERROR")
            return {"status": 200, "body": json.dumps(
                {"data": {id: self.receipts[id] for id in body["ids"] if id in self.receipts}})}
        messages = body if isinstance(body, list) else [body]
        if len(messages) > 100:
            refuse(400, "PUSH_TOO_MANY_NOTIFICATIONS")
        if len({"other-project" in to(message) for message in messages}) > 1:
            refuse(400, "PUSH_TOO_MANY_EXPERIENCE_IDS")
        tickets = []
        for message in messages:
            if not re.fullmatch(r"Expo(nent)?PushToken\[[^\]]+\]", to(message)):
                refuse(400, "VALIDATION_ERROR", f"{to(message)} is not a token")
            for name, value in message.items():
                if name not in EXPO_FIELDS or not EXPO_FIELDS[name](value):
                    refuse(400, "VALIDATION_ERROR", f"{name} is not as Expo takes it")
            # Expo passes `data` on inside of what Apple and Google count.
            passed_on = {name: value for name, value in message.items() if name != "to"}
            if len(json.dumps(passed_on, ensure_ascii=False, separators=(",", ":")).encode()) > 4096:
                tickets.append({"status": "error", "message": "x", "details": {"error": "MessageTooBig"}})
                continue
            if "gone" in to(message):
                tickets.append({"status": "error", "message": f'"{to(message)}" is not registered',
                                "details": {"error": "DeviceNotRegistered"}})
                continue
            self.tickets += 1
            ticket = f"ticket-{self.tickets}"
            tickets.append({"status": "ok", "id": ticket})
            if "later" not in to(message):
                self.receipts[ticket] = (
                    {"status": "error", "message": "x", "details": {"error": "DeviceNotRegistered"}}
                    if "stale" in to(message) else {"status": "ok"})
        return {"status": 200, "body": json.dumps({"data": tickets if isinstance(body, list) else tickets[0]})}


def text(value):
    return isinstance(value, str)


def count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def sound(value):
    return value is None or text(value) or (isinstance(value, dict) and value.keys() <= {"critical", "name", "volume"})


# Expo, "Message request format", and `ExpoPushMessage` of expo-server-sdk 6.
EXPO_FIELDS = {
    "to": lambda value: text(value) or isinstance(value, list), "data": lambda value: isinstance(value, dict),
    "title": text, "subtitle": text, "body": text, "sound": sound, "ttl": count, "expiration": count,
    "priority": ("default", "normal", "high").__contains__, "badge": count, "channelId": text, "icon": text,
    "interruptionLevel": ("active", "critical", "passive", "time-sensitive").__contains__,
    "richContent": lambda value: isinstance(value, dict), "categoryId": text, "threadId": text, "collapseId": text,
    "tag": text, "mutableContent": lambda value: isinstance(value, bool),
    "contentAvailable": lambda value: isinstance(value, bool), "_contentAvailable": lambda value: isinstance(value, bool),
}


def to(message):
    return message["to"][0] if isinstance(message["to"], list) else message["to"]


class Broken(Exception):
    def __init__(self, why, answer):
        super().__init__(why)
        self.answer = answer


def jwt(text):
    parts = text.split(".")
    if len(parts) != 3 or "=" in text:
        raise ValueError("not a compact JWT")
    head, claims, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts)
    return json.loads(head), json.loads(claims), signature, f"{parts[0]}.{parts[1]}".encode()


# The head of a PING frame with ACK (RFC 9113, section 6.7), and its eight bytes.
PING_ANSWER = re.compile(rb"(\x00\x00\x08\x06\x01\x00\x00\x00\x00).{8}", re.DOTALL)


class Connection(asyncio.Protocol):
    count = 0
    living = set()

    def __init__(self, service, streams, window=None, delay=0):
        self.service, self.streams, self.window, self.delay = service, streams, window, delay
        self.isLying = False
        self.h2 = None
        self.bytes = b""
        self.requests, self.outgoing = {}, {}
        self.isFrozen = self.endsWhenIdle = False

    def connection_made(self, transport):
        self.transport = transport
        Connection.count += 1
        self.number = Connection.count
        Connection.living.add(self)
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            return
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        values = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.streams} if self.streams else {}
        if self.window is not None:
            values[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = self.window
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=values)
        self.h2.initiate_connection()
        self.write()

    def connection_lost(self, error):
        Connection.living.discard(self)

    def write(self):
        data = b"" if self.isFrozen else self.h2.data_to_send()
        if self.isLying:
            data = PING_ANSWER.sub(lambda found: found[1] + b"another.", data)
        self.transport.write(data)

    def data_received(self, data):
        if self.isFrozen:
            return
        if self.h2 is None:
            return self.http1(data)
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.service.log.append({"path": "", "broken": f"protocol: {error!r}", "headers": {}, "body": b""})
            self.write()
            return self.transport.close()
        for event in events:
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = {"pairs": event.headers, "body": b""}
                if event.stream_ended:
                    self.handle(event.stream_id)
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id]["body"] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.handle(event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self.requests.pop(event.stream_id, None)
                self.outgoing.pop(event.stream_id, None)
        self.send_data()
        self.write()

    def handle(self, stream):
        request = self.requests.get(stream)
        if request is None or "path" in request:
            return
        pairs = request["pairs"]
        pseudo = {name: value for name, value in pairs if name.startswith(":")}
        request.update(
            method=pseudo[":method"], path=pseudo[":path"], connection=self.number, stream=stream,
            open=len(self.requests), headers={name: value for name, value in pairs if not name.startswith(":")})
        if pseudo.get(":scheme") != "https":
            self.service.log.append({**request, "broken": "scheme"})
        behaviour = self.service.behaviour(request)
        if not self.delay:
            return self.perform(behaviour, stream)

        def perform():
            # The client may have gone, or given the request up.
            if stream in self.requests and not self.transport.is_closing():
                self.perform(behaviour, stream)
                self.write()

        asyncio.get_running_loop().call_later(self.delay / 1000, perform)

    def perform(self, behaviour, stream):
        do = behaviour.get("do", "answer")
        if do == "hold":
            self.service.held.append((self, stream))
        elif do == "freeze":
            self.isFrozen = True
        elif do == "lie":
            self.isLying = True
        elif do in ("reset", "refuse"):
            self.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL if do == "reset" else h2.errors.ErrorCodes.REFUSED_STREAM)
            self.requests.pop(stream, None)
        elif do == "close":
            self.transport.abort()
        elif do in ("goaway_unread", "goaway_read"):
            frame = hyperframe.frame.GoAwayFrame(
                0, last_stream_id=max(0, stream - 2) if do == "goaway_unread" else stream, error_code=0,
                additional_data=b'{"reason":"Shutdown"}')
            self.write()
            self.transport.write(frame.serialize())
            self.endsWhenIdle = True
            if do == "goaway_read":
                self.answer(self.service.usual(self.requests[stream]), stream)
            else:
                # Nothing above the last stream is ever answered.
                self.requests = {id: request for id, request in self.requests.items() if id < stream}
                self.endIfIdle()
        elif do == "half":
            self.answer({"status": 200, "body": "{"}, stream, ends=False)
            self.write() if self.h2 else None
            asyncio.get_running_loop().call_later(0.05, self.transport.abort)
        elif do == "huge":
            self.answer({"status": 200, "body": "x" * 70_000}, stream)
        elif do == "answer":
            self.answer(behaviour, stream)

    def answer(self, answer, stream, ends=True):
        body = answer.get("body", "").encode()
        headers = {"date": formatdate(self.service.now(), usegmt=True), **answer.get("headers", {})}
        if self.h2 is None:
            lines = [f"HTTP/1.1 {answer['status']} X"] + [f"{name}: {value}" for name, value in headers.items()]
            lines.append(f"content-length: {len(body) + (0 if ends else 10)}")
            return self.transport.write("\r\n".join(lines + ["", ""]).encode() + body)
        self.h2.send_headers(
            stream, [(":status", str(answer["status"]))] + list(headers.items()), end_stream=ends and not body)
        if body:
            self.outgoing[stream] = (body, ends)
        elif ends:
            self.requests.pop(stream, None)
        self.send_data()
        self.write()
        self.endIfIdle()

    def send_data(self):
        """As much of the bodies as the client's windows allow."""
        for stream, (body, ends) in list(self.outgoing.items()):
            while body and (room := min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)):
                part, body = body[:room], body[room:]
                self.h2.send_data(stream, part, end_stream=ends and not body)
            self.outgoing[stream] = (body, ends)
            if not body:
                del self.outgoing[stream]
                if ends:
                    self.requests.pop(stream, None)

    def endIfIdle(self):
        if self.endsWhenIdle and not self.requests:
            self.write()
            self.transport.close()

    def http1(self, data):
        self.bytes += data
        while b"\r\n\r\n" in self.bytes:
            head, _, rest = self.bytes.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            method, path, version = lines[0].split(" ")
            pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
            headers = dict(pairs)
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self.bytes = rest[length:]
            request = {"method": method, "path": path, "pairs": pairs, "headers": headers, "body": rest[:length],
                       "connection": self.number, "stream": 0, "open": 1}
            self.requests[0] = request
            if "host" not in headers or version != "HTTP/1.1":
                self.service.log.append({**request, "broken": "host or version"})
            self.perform(self.service.behaviour(request), 0)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--certificate", default="good")
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--protocols", default="h2,http/1.1")
    parser.add_argument("--window", type=int)
    parser.add_argument("--delay", type=int, default=0)
    arguments = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(f"{arguments.folder}/{arguments.certificate}.pem")
    context.set_alpn_protocols(arguments.protocols.split(","))
    service = Service(arguments.folder)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(service, arguments.streams, arguments.window, arguments.delay), "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        command, answer = json.loads(line), {}
        if "next" in command:
            service.next += command["next"]
        if "clock" in command:
            service.clock = command["clock"]
        if "streams" in command:
            arguments.streams = command["streams"]
            for connection in list(Connection.living):
                connection.h2.update_settings(
                    {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: command["streams"]})
                connection.write()
        if "release" in command:
            for connection, stream in service.held:
                if stream in connection.requests:
                    connection.answer(service.usual(connection.requests[stream]), stream)
            service.held = []
        if "connections" in command:
            answer = {"connections": len(Connection.living)}
        if "log" in command:
            answer = {"requests": [
                {name: request.get(name) for name in ("path", "headers", "broken", "connection", "open")}
                | {"body": request["body"].decode()} for request in service.log]}
            service.log = []
        print(json.dumps(answer), flush=True)


asyncio.run(main())
