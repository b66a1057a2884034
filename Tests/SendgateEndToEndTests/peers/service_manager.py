"""A service manager that does what systemd does for our units, and no more: for machines where none runs.

    python3 service_manager.py ROOT RUN UNITS

ROOT is the root directory of the services (`/` for this one), RUN a folder inside it for what the manager makes, UNITS the folder
of the units. It listens for commands on its standard input and, as `systemctl` of a chroot would, on RUN/control: one line
each, answered by one line of JSON. Commands: start, stop, restart, try-restart, reload, is-active,
is-enabled, enable, disable, show, daemon-reload, quit.

What it takes from a unit: ListenStream, FileDescriptorName, SocketUser, SocketGroup, SocketMode, Backlog, RemoveOnStop, Service;
ConditionPathExists, Requires; Type, ExecStart, ExecReload, User, Group, LoadCredential, UMask, LimitNOFILE, LimitMEMLOCK, LimitCORE,
Restart, WatchdogSec, Timeout…Sec, PrivateNetwork, ProtectSystem, ReadWritePaths. Walls that need no help of a test are real
here: a network of its own, a file system that is read-only, no way back to privileges.
"""

import ctypes
import fcntl
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import stat
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, NEW_NETWORK = 0x00020000, 0x40000000
READ_ONLY, BIND, REMOUNT, RECURSIVE, PRIVATE = 1, 4096, 32, 16384, 1 << 18
NO_NEW_PRIVILEGES = 38
# Restarts after a failure, after which the manager gives up.
RESTARTS_MAX = 5


def seconds(text):
    match = re.fullmatch(r"(\d+)(ms|s|min)?", text)
    return int(match[1]) * {"ms": 0.001, None: 1, "s": 1, "min": 60}[match[2]]


class Unit(dict):
    """Directives by name, each a list; an empty assignment empties it."""

    def __init__(self, path, drop_ins=()):
        super().__init__()
        self.name = path.rsplit("/", 1)[1]
        for line in (line for file in [path, *drop_ins] for line in open(file)):
            line = line.strip()
            if line and line[0] not in "#;[":
                key, _, value = line.partition("=")
                if value:
                    self.setdefault(key.strip(), []).append(value.strip())
                else:
                    self[key.strip()] = []

    def one(self, key, standard=None):
        return self[key][-1] if self.get(key) else standard


def mount(source, target, flags):
    if LIBC.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


class Manager:
    def __init__(self, root, run, units):
        self.root, self.run, self.unit_folder = root.rstrip("/"), run, units
        self.folder = self.root + run
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o711)
        self.accounts = self.read("passwd"), self.read("group")
        # Listening sockets by unit, which outlive every service.
        self.sockets = {}
        self.services = {}
        self.control = self.listen(f"{self.folder}/control", 0o600)
        self.watched = {}

    def read(self, name):
        lines = open(f"{self.root}/etc/{name}").read().splitlines()
        return {line.split(":")[0]: line.split(":") for line in lines if ":" in line}

    def user(self, name):
        return int(self.accounts[0][name][2])

    def group(self, name):
        return int(self.accounts[1][name][2])

    def unit(self, name):
        folder = f"{self.root}/etc/systemd/system/{name}.d"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return Unit(f"{self.unit_folder}/{name}", [f"{folder}/{one}" for one in names if one.endswith(".conf")])

    def is_wanted(self, unit):
        return all(os.path.exists(self.root + path) for path in unit.get("ConditionPathExists", []))

    @staticmethod
    def listen(path, mode):
        if os.path.exists(path):
            os.unlink(path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(path)
        os.chmod(path, mode)
        made.listen(64)
        return made

    # Sockets

    def start_socket(self, name):
        unit = self.unit(name)
        if name in self.sockets:
            return
        if not self.is_wanted(unit):
            return
        self.accounts = self.read("passwd"), self.read("group")
        made = []
        for address in unit["ListenStream"]:
            if address.startswith("/"):
                path = self.root + address
                if os.path.exists(path) and stat.S_ISSOCK(os.lstat(path).st_mode):
                    os.unlink(path)
                one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.bind_inside(one, address)
                os.chmod(path, int(unit.one("SocketMode", "0666"), 8))
                os.chown(path, self.user(unit.one("SocketUser", "root")), self.group(unit.one("SocketGroup", "root")))
            else:
                host, _, port = address.rpartition(":")
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((host, int(port)))
            one.listen(int(unit.one("Backlog", "4096")))
            made.append(one)
        self.sockets[name] = (unit, made)

    def bind_inside(self, one, path):
        """Binds in the root of the services, so that the name of the socket is what they see."""
        outside = os.open("/", os.O_RDONLY)
        try:
            os.chroot(self.root or "/")
            one.bind(path)
        finally:
            os.fchdir(outside)
            os.chroot(".")
            os.close(outside)

    def stop_socket(self, name):
        unit, made = self.sockets.pop(name, (None, []))
        for one in made:
            if one.family == socket.AF_UNIX and unit.one("RemoveOnStop") == "yes":
                path = self.root + one.getsockname()
                if os.path.lexists(path):
                    os.unlink(path)
            one.close()

    def sockets_of(self, service):
        for name, (unit, made) in self.sockets.items():
            if unit.one("Service", name.replace(".socket", ".service")) == service:
                for one in made:
                    yield unit.one("FileDescriptorName", name), one

    # Services

    def start(self, name, by_itself=False):
        if name.endswith(".socket"):
            return self.start_socket(name)
        unit = self.unit(name)
        if self.is_active(name) or not self.is_wanted(unit):
            return None
        for other in " ".join(unit.get("Requires", [])).split():
            self.start(other)
        service = self.services.setdefault(name, {"restarts": 0})
        if not by_itself:
            service["restarts"] = 0
        self.spawn(unit, service)
        limit = time.monotonic() + seconds(unit.one("TimeoutStartSec", "90"))
        while True:
            if unit.one("Type", "simple") == "oneshot":
                if service["pid"] is None:
                    if service["ending"] != 0:
                        raise RuntimeError(f"{name} ended with {service['ending']}: {self.errors(name)}")
                    return None
            elif service["ready"]:
                return None
            elif service["pid"] is None:
                raise RuntimeError(f"{name} ended with {service['ending']} before it was ready: {self.errors(name)}")
            if service.get("extended", 0) > limit:
                limit = service["extended"]
            if time.monotonic() > limit:
                self.kill(service, signal.SIGKILL)
                raise RuntimeError(f"{name} was not ready in time: {self.errors(name)}")
            self.turn(0.05)

    def errors(self, name):
        return open(f"{self.folder}/{name}.log", errors="replace").read()[-3000:]

    def spawn(self, unit, service):
        name = unit.name
        self.accounts = self.read("passwd"), self.read("group")
        notify = f"{self.run}/{name}.notify"
        if "notify" in service:
            service["notify"].close()
            os.unlink(self.root + notify)
        service["notify"] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        service["notify"].bind(self.root + notify)
        # systemd's is for everybody, and it looks at who wrote.
        os.chmod(self.root + notify, 0o666)
        handed = list(self.sockets_of(name))
        user, group = unit.one("User", "root"), unit.one("Group", "root")
        uid, gid = self.user(user), self.group(group)
        groups = [int(line[2]) for line in self.accounts[1].values() if user in line[3].split(",")] + [gid]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "USER": user,
            "NOTIFY_SOCKET": notify, "SWIFT_BACKTRACE": "enable=no",
        }
        for line in unit.get("Environment", []):
            key, _, value = line.strip('"').partition("=")
            environment[key] = value
        credentials = f"{self.run}/credentials/{name}"
        shutil.rmtree(self.root + credentials, ignore_errors=True)
        for line in unit.get("LoadCredential", []):
            # As systemd does where a file system has no access lists: the files are the user's.
            os.makedirs(self.root + credentials, exist_ok=True)
            identifier, _, source = line.partition(":")
            target = f"{self.root}{credentials}/{identifier}"
            try:
                shutil.copyfile(self.root + source, target)
            except FileNotFoundError:
                raise RuntimeError(f"{name} has no credential `{identifier}`: {source} is missing") from None
            os.chmod(target, 0o400)
            os.chown(target, uid, gid)
            os.chmod(self.root + credentials, 0o500)
            os.chown(self.root + credentials, uid, gid)
            environment["CREDENTIALS_DIRECTORY"] = credentials
        if unit.one("WatchdogSec"):
            service["watchdog"] = seconds(unit.one("WatchdogSec"))
            environment["WATCHDOG_USEC"] = str(int(service["watchdog"] * 1_000_000))
        log = os.open(f"{self.folder}/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        pid = os.fork()
        if pid == 0:
            try:
                self.become(unit, environment, handed, log, uid, gid, groups)
            except BaseException as error:
                os.write(log, f"{name}: {error!r}\n".encode())
            os._exit(203)
        os.close(log)
        service.update(
            unit=unit, pid=pid, ready=False, ending=None, status="", notices=service.get("notices", []), stopping=False,
            began=time.monotonic(), alive=time.monotonic(), reloading=False, extended=0)

    def become(self, unit, environment, handed, log, uid, gid, groups):
        LIBC.prctl(1, signal.SIGKILL)
        if unit.one("PrivateNetwork") == "yes" and LIBC.unshare(NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        if unit.one("ProtectSystem") == "strict":
            self.protect(" ".join(unit.get("ReadWritePaths", [])).split())
        if self.root:
            os.chroot(self.root)
        os.chdir("/")
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # First out of the way of their new numbers, then there.
        spare = [os.dup(one.fileno()) for _, one in handed]
        moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 64) for one in spare]
        for number, one in enumerate(moved):
            os.dup2(one, 3 + number, inheritable=True)
        os.closerange(3 + len(moved), 4096)
        if handed:
            environment |= {
                "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(handed)),
                "LISTEN_FDNAMES": ":".join(name for name, _ in handed),
            }
        if "WATCHDOG_USEC" in environment:
            environment["WATCHDOG_PID"] = str(os.getpid())
        for key, limit in [
            ("LimitNOFILE", resource.RLIMIT_NOFILE), ("LimitCORE", resource.RLIMIT_CORE),
            ("LimitMEMLOCK", resource.RLIMIT_MEMLOCK),
        ]:
            if unit.one(key):
                value = int(unit.one(key).replace("M", "")) * (1 << 20 if unit.one(key).endswith("M") else 1)
                resource.setrlimit(limit, (value, value))
        os.umask(int(unit.one("UMask", "0022"), 8))
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
        # Cleared by the change of user.
        LIBC.prctl(1, signal.SIGKILL)
        LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        command = shlex.split(unit.one("ExecStart"))
        os.execve(command[0], command, environment)

    def protect(self, writable):
        if LIBC.unshare(NEW_NAMESPACE) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        mount("none", "/", RECURSIVE | PRIVATE)
        root = self.root or "/"
        for path in [root] + [self.root + path for path in writable]:
            mount(path, path, BIND | RECURSIVE)
        mount("none", root, BIND | REMOUNT | READ_ONLY)
        for path in writable:
            mount("none", self.root + path, BIND | REMOUNT)

    def kill(self, service, number):
        if service.get("pid"):
            os.kill(service["pid"], number)

    def stop(self, name):
        if name.endswith(".socket"):
            return self.stop_socket(name)
        service = self.services.get(name)
        if not service or service.get("pid") is None:
            return None
        service["stopping"] = True
        self.kill(service, signal.SIGTERM)
        limit = time.monotonic() + seconds(service["unit"].one("TimeoutStopSec", "90"))
        while service["pid"] is not None:
            if time.monotonic() > limit:
                self.kill(service, signal.SIGKILL)
            self.turn(0.05)
        return service["ending"]

    def reload(self, name):
        service = self.services[name]
        service["reloads"] = service.get("reloads", 0)
        before = service["reloads"]
        if service["unit"].one("ExecReload") != "/bin/kill -HUP $MAINPID":
            raise RuntimeError(f"{name} reloads otherwise")
        self.kill(service, signal.SIGHUP)
        limit = time.monotonic() + 60
        while service["reloads"] == before or service["reloading"]:
            if time.monotonic() > limit or service["pid"] is None:
                raise RuntimeError(f"{name} did not say that it has reloaded")
            self.turn(0.05)

    def is_active(self, name):
        return name in self.sockets or self.services.get(name, {}).get("pid") is not None

    # What happens

    def turn(self, timeout, activates=False):
        """Waits for something to happen to a service, and takes note of it; starts one whose socket is connected to."""
        self.reap()
        notices = {service["notify"]: name for name, service in self.services.items() if "notify" in service}
        waiting = {
            one: unit.one("Service", name.replace(".socket", ".service"))
            for name, (unit, made) in self.sockets.items() for one in made
            if not self.services.get(unit.one("Service", name.replace(".socket", ".service")), {}).get("pid")
        } if activates else {}
        ready, _, _ = select.select(list(notices) + list(waiting), [], [], timeout)
        for one in ready:
            if one in notices:
                self.noted(notices[one], one.recv(4096).decode())
            elif self.services.get(waiting[one], {}).get("restarts", 0) <= RESTARTS_MAX:
                self.start(waiting[one], by_itself=True)
        self.watch()

    def noted(self, name, text):
        service = self.services[name]
        service["notices"] = (service["notices"] + [text])[-400:]
        for line in text.split("\n"):
            key, _, value = line.partition("=")
            if key == "READY":
                service["alive"] = time.monotonic()
                if service["reloading"]:
                    service["reloads"] = service.get("reloads", 0) + 1
                service["ready"], service["reloading"] = True, False
            elif key == "RELOADING":
                service["reloading"] = True
            elif key == "STATUS":
                service["status"] = value
            elif key == "WATCHDOG":
                service["alive"] = time.monotonic()
            elif key == "EXTEND_TIMEOUT_USEC":
                service["extended"] = time.monotonic() + int(value) / 1_000_000

    def watch(self):
        for service in self.services.values():
            if service.get("watchdog") and service.get("ready") and service.get("pid") and not service["stopping"]:
                if time.monotonic() - service["alive"] > service["watchdog"]:
                    service["notices"].append("the watchdog bit")
                    self.kill(service, signal.SIGKILL)
                    service["alive"] = time.monotonic()

    def reap(self):
        for name, service in list(self.services.items()):
            if service.get("pid") is None:
                continue
            pid, status = os.waitpid(service["pid"], os.WNOHANG)
            if pid == 0:
                continue
            service["pid"], service["ready"] = None, False
            service["ending"] = os.waitstatus_to_exitcode(status)
            failed = service["ending"] != 0 and not service["stopping"]
            if failed and service["unit"].one("Restart") == "on-failure" and service["restarts"] < RESTARTS_MAX:
                service["restarts"] += 1
                self.spawn(service["unit"], service)

    # Commands

    def command(self, line):
        now = "--now" in line.split()
        words = [word for word in line.split() if not word.startswith("-")]
        verb, units = words[0], words[1:]
        try:
            if verb in ("enable", "disable"):
                for name in units:
                    self.enable(name, verb == "enable")
                verb = {"enable": "start", "disable": "stop"}[verb] if now else "daemon-reload"
            if verb == "is-active":
                return {"status": 0 if all(self.is_active(name) for name in units) else 3}
            if verb == "is-enabled":
                # What lies in a wants folder of the root.
                there = all(self.is_enabled(name) for name in units)
                return {"status": 0 if there else 1, "output": "enabled" if there else "static"}
            if verb == "show":
                service = self.services.get(units[0], {})
                return {
                    "status": 0, "pid": service.get("pid"), "ready": service.get("ready"), "text": service.get("status"),
                    "notices": service.get("notices"), "ending": service.get("ending"), "restarts": service.get("restarts"),
                }
            for name in units:
                if verb == "try-restart" and not self.is_active(name):
                    continue
                # A socket stays over a restart: that is what it is for.
                if verb == "stop" or (verb in ("restart", "try-restart") and name.endswith(".service")):
                    self.stop(name)
                if verb in ("start", "restart", "try-restart"):
                    self.start(name)
                if verb == "reload":
                    self.reload(name)
            return {"status": 0}
        except Exception as error:
            return {"status": 1, "error": str(error)}

    def enable(self, name, wanted):
        for target in " ".join(self.unit(name).get("WantedBy", [])).split():
            folder = f"{self.root}/etc/systemd/system/{target}.wants"
            os.makedirs(folder, exist_ok=True)
            if wanted and not os.path.lexists(f"{folder}/{name}"):
                os.symlink(f"/lib/systemd/system/{name}", f"{folder}/{name}")
            elif not wanted and os.path.lexists(f"{folder}/{name}"):
                os.unlink(f"{folder}/{name}")

    def is_enabled(self, name):
        folder = f"{self.root}/etc/systemd/system"
        return any(
            os.path.lexists(f"{folder}/{wants}/{name}")
            for wants in (os.listdir(folder) if os.path.isdir(folder) else []) if wants.endswith(".wants"))

    def serve(self):
        print(json.dumps({"ready": True}), flush=True)
        unread = b""
        while True:
            self.turn(0.02, activates=True)
            ready, _, _ = select.select([0, self.control], [], [], 0.02)
            if 0 in ready:
                some = os.read(0, 65536)
                if not some:
                    break
                unread += some
                while b"\n" in unread:
                    line, _, unread = unread.partition(b"\n")
                    if line == b"quit":
                        return self.end()
                    print(json.dumps(self.command(line.decode())), flush=True)
            if self.control in ready:
                client, _ = self.control.accept()
                line = client.makefile().readline()
                client.sendall((json.dumps(self.command(line)) + "\n").encode())
                client.close()
        return self.end()

    def end(self):
        for name in list(self.services):
            self.stop(name)
        for name in list(self.sockets):
            self.stop_socket(name)
        print(json.dumps({"status": 0}), flush=True)


if __name__ == "__main__":
    Manager(*sys.argv[1:4]).serve()
