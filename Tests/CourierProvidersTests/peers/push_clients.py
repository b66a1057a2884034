#!/usr/bin/env python3
"""Sends one push with the client that others use, so that push_service.py is held right by it.

usage: push_clients.py apple|google|expo FOLDER PORT

Prints one line: what the client says of the answer.
"""

import asyncio
import os
import ssl
import sys

service, folder, port = sys.argv[1:]
# Of requests and httpx, which the clients of Google and Expo use.
os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = f"{folder}/ca.pem"


async def apple():
    import aioapns
    from aioapns.connection import APNsDevelopmentClientProtocol

    APNsDevelopmentClientProtocol.APNS_SERVER = "localhost"
    APNsDevelopmentClientProtocol.APNS_PORT = int(port)
    context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
    context.set_alpn_protocols(["h2"])
    client = aioapns.APNs(
        key=open(f"{folder}/apns.p8").read(), key_id="KEYIDKEYID", team_id="TEAMIDTEAM", topic="com.example.app", use_sandbox=True,
        ssl_context=context)
    for token in ("0a" * 32, "0z" * 32):
        result = await client.send_notification(aioapns.NotificationRequest(
            device_token=token, message={"aps": {"alert": "A"}}, priority=10, push_type=aioapns.PushType.ALERT))
        yield f"{result.status} {result.description}"


def google():
    import firebase_admin
    from firebase_admin import credentials, messaging

    messaging._MessagingService.FCM_URL = f"https://localhost:{port}/v1/projects/{{0}}/messages:send"
    firebase_admin.initialize_app(credentials.Certificate(f"{folder}/account.json"))
    yield messaging.send(messaging.Message(
        token="fcm-token", data={"body": "A"}, android=messaging.AndroidConfig(ttl=300)))


def expo():
    from exponent_server_sdk import DeviceNotRegisteredError, PushClient, PushMessage

    client = PushClient(host=f"https://localhost:{port}")
    tickets = client.publish_multiple([
        PushMessage(to=f"ExponentPushToken[{name}]", body="A") for name in ("a", "gone", "stale")])
    for ticket in tickets:
        try:
            ticket.validate_response()
            yield f"{ticket.status} {ticket.id}"
        except DeviceNotRegisteredError:
            yield "DeviceNotRegistered"
    for receipt in client.check_receipts_multiple([ticket for ticket in tickets if ticket.is_success()]):
        yield f"{receipt.id} {receipt.status}"


async def said():
    if service == "apple":
        return [line async for line in apple()]
    return list({"google": google, "expo": expo}[service]())


print("; ".join(asyncio.run(said())), flush=True)
