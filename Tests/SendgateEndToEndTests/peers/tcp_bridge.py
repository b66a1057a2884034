#!/usr/bin/env python3
"""Lends a Unix socket a TCP port on 127.0.0.1, for tools that know TCP only.

    tcp_bridge.py SOCKET

Prints the port when it listens. Bytes pass unchanged both ways. Ends when its standard input does.
"""

import asyncio
import sys


async def pass_on(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError):
        writer.close()


async def main(path):
    async def bridge(reader, writer):
        try:
            there_reader, there_writer = await asyncio.open_unix_connection(path)
            await asyncio.gather(pass_on(reader, there_writer), pass_on(there_reader, writer))
            there_writer.close()
        finally:
            writer.close()

    server = await asyncio.start_server(bridge, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
