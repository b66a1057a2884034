"""Debian's postfix as a submission relay, out of the unpacked package and in a folder of its own.

    postfix.py PACKAGE FOLDER CERTIFICATE KEY

Prints the port. It delivers to ola@example.org and bounces@example.org, into files, takes mail to full@example.org and bounces it, and knows
no other mailbox of example.org; for other domains it does not relay. A line on standard input, `ola 2`, asks for the file when so many
of our mails, whole or as headers, are in it: a line of base64. Ends when its input does.
Needs root, as postfix does, and nobody's configuration: the accounts are Debian's own.
"""

import base64
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys
import time

if os.geteuid():
    raise SystemExit("postfix starts as root: run `sudo make test`, or `unshare --map-root-user --map-auto --mount make test`")
package, folder, certificate, key = (pathlib.Path(word).resolve() for word in sys.argv[1:])
libraries = f"{package}/usr/lib/postfix:{package}/usr/lib"
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]

mail = pwd.getpwnam("mail").pw_uid
for name in ("queue", "data", "mail"):
    (folder / name).mkdir()
    os.chown(folder / name, 0 if name == "queue" else mail, -1)
for name in ("active bounce corrupt defer deferred flush hold incoming maildrop pid private public saved trace").split():
    (folder / "queue" / name).mkdir()
    os.chown(folder / "queue" / name, 0 if name == "pid" else mail, -1)
folder.chmod(0o755)

(folder / "main.cf").write_text(f"""
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
daemon_directory = {package}/usr/lib/postfix/sbin
command_directory = {package}/usr/sbin
shlib_directory = {package}/usr/lib/postfix
meta_directory = {folder}
mail_owner = mail
setgid_group = daemon
default_privs = nobody
maillog_file = /dev/stdout
import_environment = MAIL_CONFIG={folder} LD_LIBRARY_PATH={libraries} TZ=UTC
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = relay.example
mydestination =
alias_maps =
mynetworks = 192.0.2.0/24
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_cert_file = {certificate}
smtpd_tls_key_file = {key}
smtpd_tls_security_level = encrypt
smtputf8_enable = yes
virtual_mailbox_domains = example.org
virtual_mailbox_maps = inline:{{ {{ ola@example.org = ola }}, {{ bounces@example.org = bounces }}, {{ full@example.org = full }} }}
transport_maps = inline:{{ {{ full@example.org = full: }} }}
virtual_mailbox_base = {folder}/mail
virtual_uid_maps = static:{mail}
virtual_gid_maps = static:{mail}
virtual_minimum_uid = 1
""")
(folder / "master.cf").write_text(f"""
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
full unix - n n - - pipe user=nobody argv=/bin/sh -c {{echo 5.2.2 mailbox full; exit 69}}
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
""")

master = subprocess.Popen(
    [f"{package}/usr/lib/postfix/sbin/master", "-c", str(folder), "-s"], stdout=open(folder / "log", "w"),
    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
    env={"MAIL_CONFIG": str(folder), "LD_LIBRARY_PATH": libraries, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []),
)

# Postfix changes its user, which takes a parent-death signal from it. So a process of its own waits for the end of this program,
# however that comes, and ends postfix, whose daemons end with it.
alive, _held = os.pipe()
if os.fork() == 0:
    os.closerange(0, 2)
    os.close(_held)
    os.read(alive, 1)
    os.killpg(master.pid, signal.SIGKILL)
    os._exit(0)


def until(seconds, holds):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline or master.poll() is not None:
            raise SystemExit((folder / "log").read_text())
        time.sleep(0.02)


def greets():
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            return connection.recv(3) == b"220"
    except OSError:
        return False


try:
    until(20, greets)
    print(port, flush=True)
    for line in sys.stdin:
        name, count = line.split()
        box = folder / "mail" / name
        until(20, lambda: box.exists() and box.read_bytes().count(b"\nX-Sendgate-Delivery: ") >= int(count))
        print(base64.b64encode(box.read_bytes()).decode(), flush=True)
finally:
    os.close(_held)
    master.wait()
