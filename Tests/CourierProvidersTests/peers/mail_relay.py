"""A mail relay made of aiosmtpd, which does what its one argument, a JSON object, says.

    mail_relay.py '{"security": "starttls", "certificate": …, "key": …, "user": …, "password": …, "token": …,
                    "answers": {"STAGE or local part": "550 5.1.1 no"}, "die_after_dot": true, "smtputf8": false,
                    "size": 1000, "hold_at": "RCPT", "close_after_mail": true}'

Prints the port, and then one JSON line for each connection, command and message. `raw` in place of `security` is no relay at all:
`silent` accepts and never answers, `flood` greets with a mebibyte, `inject` answers STARTTLS and adds a reply in clear.
"""

import asyncio
import base64
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, syntax

options = json.loads(sys.argv[1])
answers = options.get("answers", {})


def tell(**members):
    print(json.dumps(members), flush=True)


async def hold(stage):
    if options.get("hold_at") == stage:
        tell(held=stage)
        await asyncio.Event().wait()


class Handler:
    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        tell(command="EHLO", tls=session.ssl is not None)
        session.host_name = hostname
        if "dsn" in options:
            responses.insert(1, "250-DSN")
        return responses

    async def handle_RSET(self, server, session, envelope):
        tell(command="RSET")
        return "250 OK"

    async def handle_MAIL(self, server, session, envelope, address, mail_options):
        await hold("MAIL")
        if "MAIL" in answers:
            return answers["MAIL"]
        envelope.mail_from = address
        envelope.mail_options.extend(mail_options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        await hold("RCPT")
        local = address.split("@")[0]
        if local in answers:
            return answers[local]
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(rcpt_options)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        tell(
            sender=envelope.mail_from, recipients=envelope.rcpt_tos, options=envelope.mail_options,
            content=base64.b64encode(envelope.original_content).decode(), tls=session.ssl is not None,
        )
        if options.get("die_after_dot"):
            server.transport.abort()
        if options.get("close_after_mail"):
            asyncio.get_running_loop().call_soon(server.transport.close)
        await hold("dot")
        return answers.get("DATA", "250 2.0.0 OK: queued as 4F6A1")

    async def auth_XOAUTH2(self, server, args):
        given = base64.b64decode(args[1]) if len(args) > 1 else await server.challenge_auth("")
        given = given.decode() if isinstance(given, bytes) else ""
        right = f"user={options['user']}\x01auth=Bearer {options['token']}\x01\x01"
        if given == right:
            return AuthResult(success=True)
        await server.challenge_auth('{"status":"401"}')
        return AuthResult(success=False, handled=False)


def authenticate(server, session, envelope, mechanism, data):
    right = mechanism == "PLAIN" and (data.login.decode(), data.password.decode()) == (options["user"], options["password"])
    return AuthResult(success=right, handled=False)


class Relay(SMTP):
    # Of a line that is no command: an answer to AUTH (RFC 4954, section 4).
    line_length_limit = 12_288

    def connection_made(self, transport):
        if "connection" not in vars(self):
            self.connection = True
            tell(connected=True)
        super().connection_made(transport)

    def connection_lost(self, error):
        tell(lost=True)
        super().connection_lost(error)

    # aiosmtpd keeps what a client says of DSN from its handler.
    @syntax("MAIL FROM: <address>", extended=" [SP <mail-parameters>]")
    async def smtp_MAIL(self, arg):
        tell(command=f"MAIL {arg}")
        if "dsn" in options:
            arg = " ".join(word for word in arg.split(" ") if not word.startswith(("RET=", "ENVID=")))
        await super().smtp_MAIL(arg)

    @syntax("RCPT TO: <address>", extended=" [SP <mail-parameters>]")
    async def smtp_RCPT(self, arg):
        tell(command=f"RCPT {arg}")
        await super().smtp_RCPT(arg.removesuffix(" NOTIFY=FAILURE") if "dsn" in options else arg)


async def raw(reader, writer):
    tell(connected=True)
    if options["raw"] == "flood":
        try:
            for _ in range(1024):  # a mebibyte
                writer.write(b"220-" + b"x" * 1018 + b"\r\n")
                await writer.drain()
        except OSError:
            pass
        tell(closed=True)
    elif options["raw"] == "inject":
        writer.write(b"220 relay\r\n")
        await reader.readline()
        writer.write(b"250-relay\r\n250 STARTTLS\r\n")
        await reader.readline()
        writer.write(b"220 go\r\n250 injected\r\n")
        tell(rest=(await reader.read()).hex())
    else:
        await reader.read()
        tell(closed=True)


async def main():
    loop = asyncio.get_running_loop()
    context, security = None, options.get("security")
    if "certificate" in options:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options["certificate"], options["key"])

    def relay():
        return Relay(
            Handler(), hostname="relay.example", data_size_limit=options.get("size", 33554432),
            enable_SMTPUTF8=options.get("smtputf8", True), loop=loop,
            tls_context=context if security == "starttls" else None, require_starttls=security == "starttls",
            authenticator=authenticate if "user" in options else None, auth_required="user" in options,
            auth_require_tls=security == "starttls",
        )

    if "raw" in options:
        server = await asyncio.start_server(raw, "127.0.0.1", 0)
    else:
        server = await loop.create_server(relay, "127.0.0.1", 0, ssl=context if security == "implicit" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
