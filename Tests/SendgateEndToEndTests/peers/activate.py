#!/usr/bin/env python3
"""Hands listening sockets over as systemd does (sd_listen_fds(3)), then becomes the command.

    activate.py NAME=PATH... -- COMMAND ARGUMENT...
"""

import os
import socket
import sys


def main(arguments):
    end = arguments.index("--")
    listening = []
    for argument in arguments[:end]:
        name, path = argument.split("=", 1)
        if os.path.exists(path):
            os.unlink(path)
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        os.chmod(path, 0o666)
        server.listen(64)
        # Out of the way of the numbers it will have.
        listening.append((name, os.dup2(server.fileno(), 100 + len(listening))))
    for number, (_, descriptor) in enumerate(listening, 3):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    os.environ.update({
        # The pid stays the same through exec, which is the point of it.
        "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(listening)),
        "LISTEN_FDNAMES": ":".join(name for name, _ in listening),
    })
    os.execv(arguments[end + 1], arguments[end + 1:])


if __name__ == "__main__":
    main(sys.argv[1:])
