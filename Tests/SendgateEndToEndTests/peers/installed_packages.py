"""Installs the packages into a root of their own, goes by the handbook's page, upgrades under load, removes and purges.

    python3 installed_packages.py --first DIR --second DIR --page FILE --apple DIR --port N --expect TEXT [--root DIR]

DIR --first and --second have the packages of two revisions. Without --root the root is a layer over this machine's, in memory, which is gone
with this process; --root is one that debootstrap made. It runs in a mount namespace of its own, so nothing else on the machine sees its
mounts. --apple and --port say where a stand-in for Apple is. Prints one line of JSON: what was found.
"""

import argparse
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# What stands for systemctl in the root: it asks the manager outside.
SYSTEMCTL = r"""#!/usr/bin/perl
use IO::Socket::UNIX;
my $socket = IO::Socket::UNIX->new(Peer => "/run/manager/control") or die "no manager: $!";
print $socket join(" ", @ARGV) . "\n";
my $answer = <$socket>;
my ($output) = $answer =~ /"output": "([^"]*)"/;
print "$output\n" if defined $output;
my ($error) = $answer =~ /"error": "(.*?)"[,}]/;
print STDERR "systemctl: $error\n" if defined $error;
my ($status) = $answer =~ /"status": (\d+)/;
exit(defined $status ? $status : 1);
"""
MS_REC, MS_PRIVATE = 16384, 1 << 18


class Root:
    def __init__(self, folder):
        self.folder = folder
        for name in ("proc", "dev", "sys"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
            run("mount", "--rbind", f"/{name}", f"{folder}/{name}")
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "run", f"{folder}/run")
        # By this the packages' scripts know that systemd runs.
        os.makedirs(f"{folder}/run/systemd/system")
        self.write("usr/local/bin/systemctl", SYSTEMCTL, 0o755)
        # By this man-db indexes every page anew after each change of packages, and nothing here looks one up.
        if os.path.exists(f"{folder}/var/lib/man-db/auto-update"):
            os.unlink(f"{folder}/var/lib/man-db/auto-update")
        # A container's word that no service is to be started.
        if os.path.exists(f"{folder}/usr/sbin/policy-rc.d"):
            os.unlink(f"{folder}/usr/sbin/policy-rc.d")
        os.makedirs(f"{folder}/debs", exist_ok=True)

    def write(self, path, text, mode=0o644):
        path = pathlib.Path(f"{self.folder}/{path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def read(self, path):
        return pathlib.Path(f"{self.folder}/{path}").read_text()

    def exists(self, path):
        return os.path.lexists(f"{self.folder}/{path}")

    def shell(self, script, checked=True):
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive", "SWIFT_BACKTRACE": "enable=no",
        }
        done = subprocess.run(
            ["chroot", self.folder, "/bin/bash", "-euc", script], env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        if checked and done.returncode != 0:
            raise SystemExit(f"{script}\nended with {done.returncode}: {done.stdout}\n{done.stderr}")
        return done

    def install(self, folder, checked=True):
        for path in glob.glob(f"{self.folder}/debs/*"):
            os.unlink(path)
        names = []
        for path in sorted(glob.glob(f"{folder}/*.deb")):
            shutil.copy(path, f"{self.folder}/debs/")
            names.append("/debs/" + os.path.basename(path))
        return self.shell("dpkg -i " + " ".join(names), checked)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def layer(folder):
    """A root over this machine's, in memory."""
    run("mount", "-t", "tmpfs", "-o", "mode=0755,size=3g", "layer", folder)
    for name in ("upper", "work", "r"):
        os.mkdir(f"{folder}/{name}")
    options = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
    run("mount", "-t", "overlay", "-o", options, "layer", f"{folder}/r")
    return f"{folder}/r"


class Manager:
    def __init__(self, root):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "service_manager.py"), root.folder, "/run/manager", f"{root.folder}/lib/systemd/system"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def blocks(page):
    return re.findall(r"```sh\n(.*?)```", page, re.S)


def main():
    parser = argparse.ArgumentParser()
    for name in ("first", "second", "page", "apple", "port", "root"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0 or libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) != 0:
        raise SystemExit("no mount namespace")
    folder = f"/tmp/sgp-{os.getpid()}"
    os.makedirs(folder)
    found = {}
    try:
        root = Root(options.root or layer(folder))
        manager = Manager(root)
        try:
            go(root, manager, options, found)
        finally:
            manager.ask("quit")
    finally:
        subprocess.run(["umount", "-R", folder], stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found), flush=True)


def go(root, manager, options, found):
    # A foreign user of that name.
    passwd = root.read("etc/passwd")
    root.write("etc/passwd", passwd + "sendgate:x:1234:1234::/home/sendgate:/bin/bash\n")
    refused = root.install(options.first, checked=False)
    found["foreign_user"] = [refused.returncode != 0, "uid 1234" in refused.stderr]
    root.shell("dpkg --purge sendgate sendgate-courier", checked=False)
    root.write("etc/passwd", passwd)

    # By the page.
    page = blocks(pathlib.Path(options.page).read_text())
    shutil.copy(f"{options.apple}/apns.p8", f"{root.folder}/AuthKey_ABC123DEFG.p8")
    shutil.copy(f"{options.apple}/ca.pem", f"{root.folder}/etc/apple.pem")
    os.chmod(f"{root.folder}/etc/apple.pem", 0o644)
    begin = time.monotonic()
    root.install(options.first)
    found["installed"] = all(root.exists(path) for path in (
        "usr/bin/sendgate", "usr/bin/sendgate-courier", "etc/sendgate", "usr/share/sendgate/Policies/bundle.yaml",
        "usr/share/man/man1/sendgate-policy-prove.1.gz", "usr/share/bash-completion/completions/sendgate",
        "usr/share/zsh/vendor-completions/_sendgate", "usr/share/fish/vendor_completions.d/sendgate.fish"))
    apple = {
        "key_id: ABC123DEFG": "key_id: KEYIDKEYID", "team_id: DEF123GHIJ": "team_id: TEAMIDTEAM",
        "environment: production": f"environment: production\n      trust: /etc/apple.pem\n      endpoint: localhost:{options.port}",
    }
    outputs = []
    for block in page[1:]:
        for old, new in apple.items():
            block = block.replace(old, new)
        # A machine without a client of NTP has a fault that is its own.
        block = block.replace("sendgate doctor\n", "sendgate doctor --json > /doctor.json || true\n")
        outputs.append(root.shell("cd /\n" + block).stdout)
    found["page_seconds"] = round(time.monotonic() - begin, 1)
    found["first_send"] = outputs[-1].strip()
    faults = [row for row in json.loads(root.read("doctor.json"))["findings"] if "fault" in row]
    found["faults"] = [row for row in faults if row["check"] != "clock"]
    found["status"] = manager.ask("show sendgate.service")["text"]
    found["courier_status"] = manager.ask("show sendgate-courier.service")["text"]
    # From anywhere, without the sources.
    found["bundle_from_anywhere"] = root.shell("cd /srv && sendgate policy check /usr/share/sendgate/Policies").returncode

    # Upgraded under load.
    ids = {line.split(":")[0]: line.split(":")[2:4] for line in root.read("etc/passwd").splitlines()}
    user, _ = ids["payments"]
    group = next(line.split(":")[2] for line in root.read("etc/group").splitlines() if line.startswith("sendgate-callers:"))
    load = subprocess.Popen(
        [sys.executable, str(HERE / "steady_load.py"), f"{root.folder}/run/sendgate/callers/gate.sock", "4", user, group],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    load.stdout.readline()
    before = manager.ask("show sendgate.service")["pid"]
    upgraded = root.install(options.second)
    after = manager.ask("show sendgate.service")["pid"]
    load.stdin.write("finish\n")
    load.stdin.flush()
    found["load"] = json.loads(load.stdout.readline())
    found["upgrade"] = {"new_process": before != after and after is not None, "said": upgraded.stderr[-500:]}

    # A bundle that the new build cannot prove: the old process goes on.
    changed = root.shell("cd /etc/sendgate/policies && sed -i 's/hours: 24/hours: 23/' types/payment.received.yaml")
    kept = root.install(options.first)
    still = manager.ask("show sendgate.service")["pid"]
    answers = root.shell(
        "runuser -u payments -- curl -sS -o /dev/null -w '%{http_code}' --unix-socket /run/sendgate/callers/gate.sock "
        "http://localhost/readyz")
    found["unproved"] = {
        "same_process": still == after, "said": "goes on with the old build" in kept.stderr, "answers": answers.stdout}
    del changed

    # Removed: nothing runs, the configuration stays. Purged: what is left is evidence.
    root.shell("dpkg -r sendgate sendgate-courier")
    found["removed"] = {
        "program": root.exists("usr/bin/sendgate"), "socket": root.exists("run/sendgate/callers/gate.sock"),
        "process": manager.ask("is-active sendgate.service")["status"] == 0, "configuration": root.exists("etc/sendgate/gate.yaml"),
    }
    root.shell("dpkg --purge sendgate sendgate-courier")
    found["left"] = sorted(
        path for path in ("etc/sendgate/gate.yaml", "etc/sendgate/policies", "etc/sendgate/root.key", "etc/sendgate-courier",
                          "var/lib/sendgate/keys", "var/lib/sendgate/trail", "var/lib/sendgate-courier", "usr/share/sendgate")
        if root.exists(path))


if __name__ == "__main__":
    main()
