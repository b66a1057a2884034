"""Builds the Debian packages `sendgate` and `sendgate-courier` from programs that are built already.

    python3 Sources/DebianPackages/build_packages.py --programs DIR --out DIR [--revision N] [--compression none]

DIR holds both programs. They are stripped, described (man pages and completions come from their own help), and packed with
their units, accounts, directories and the starter bundle. `Depends` is what dpkg-shlibdeps finds that they link. Licence texts of
what is linked statically are read from the checkouts of the build, because they are not ours to keep a copy of.

Two builds of the same programs give the same bytes: every time in a package is that of CHANGELOG.md.
"""

import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Pages that people read before they have the sources.
HANDBOOK = ROOT / "Sources/sendgate/Sendgate.docc"

PACKAGES = {
    "sendgate": {
        "units": ["sendgate.socket", "sendgate-pages.socket", "sendgate.service"],
        "other_units": ["sendgate-prove.service"],
        "configuration": "/etc/sendgate/gate.yaml",
        "hint": "`sendgate init` writes a configuration, keys and a starter bundle",
        "pages": ["Production.md", "Configuration.md", "Running.md"],
        # The new build proves while the old one still serves; where it cannot, the old one goes on.
        "restart": """\
if systemctl --quiet is-active sendgate.service && ! systemctl --quiet start sendgate-prove.service; then
                echo "sendgate: this build does not prove the bundle in /etc/sendgate; the gateway goes on with the old build" >&2
                echo "sendgate: look at journalctl -u sendgate-prove.service, then systemctl restart sendgate.service" >&2
            else
                deb-systemd-invoke try-restart sendgate.service >/dev/null || true
            fi""",
        # The trail is evidence, and without the keys nothing in it or in the databases can be read: a person removes them.
        "purge": """\
rm -f "$DPKG_ROOT/etc/sendgate/gate.yaml"
    rm -rf "$DPKG_ROOT/etc/sendgate/policies" "$DPKG_ROOT/run/sendgate"
    for path in /var/lib/sendgate/keys /var/lib/sendgate/trail /var/lib/sendgate /etc/sendgate; do
        rmdir "$DPKG_ROOT$path" 2>/dev/null || true
    done
    for path in /var/lib/sendgate /etc/sendgate; do
        if [ -e "$DPKG_ROOT$path" ]; then
            echo "sendgate: $path has keys, databases or the trail, and stays; remove it when no evidence is needed any more"
        fi
    done""",
    },
    "sendgate-courier": {
        "units": [
            "sendgate-courier.socket", "sendgate-courier-inbound.socket", "sendgate-courier-operations.socket",
            "sendgate-courier.service",
        ],
        "other_units": [],
        "configuration": "/etc/sendgate-courier/courier.yaml",
        "hint": "write /etc/sendgate-courier/courier.yaml; /usr/share/doc/sendgate-courier/Courier.md.gz has every key",
        "pages": ["Courier.md", "DeliveryLayer.md"],
        "restart": "deb-systemd-invoke try-restart sendgate-courier.service >/dev/null || true",
        "purge": """\
rm -rf "$DPKG_ROOT/etc/sendgate-courier" "$DPKG_ROOT/var/lib/sendgate-courier" "$DPKG_ROOT/run/sendgate-courier\"""",
    },
}


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def version():
    text = (ROOT / "Sources/CommandTerminal/ProgramVersion.swift").read_text()
    return re.search(r'text = "([0-9][0-9.]*)"', text)[1]


def moment():
    """The moment of every file: that of the last change of CHANGELOG.md, or SOURCE_DATE_EPOCH."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        text = run("git", "-C", str(ROOT), "log", "-1", "--format=%ct", "--", "CHANGELOG.md", stderr=subprocess.DEVNULL)
        return int(text)
    except (subprocess.CalledProcessError, FileNotFoundError, ValueError):
        return int((ROOT / "CHANGELOG.md").stat().st_mtime)


class Package:
    def __init__(self, name, programs, work, revision):
        self.name, self.about = name, PACKAGES[name]
        self.version = f"{version()}-{revision}"
        self.tree = work / name
        self.program = self.tree / "usr/bin" / name
        shutil.rmtree(self.tree, ignore_errors=True)
        self.install(programs / name, f"usr/bin/{name}", 0o755)
        # Symbols of a release are in its build folder; a package without them is a third of the size.
        run("strip", "--strip-all", "--remove-section=.comment", "--remove-section=.note", str(self.program))

    def install(self, source, place, mode=0o644):
        self.write(place, pathlib.Path(source).read_bytes(), mode)

    def write(self, place, content, mode=0o644, packed=False):
        path = self.tree / (f"{place}.gz" if packed else place)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content, 9, mtime=0) if packed else content)
        path.chmod(mode)

    def units(self):
        for unit in self.about["units"] + self.about["other_units"]:
            self.install(HERE / self.name / unit, f"lib/systemd/system/{unit}")
        self.install(HERE / self.name / "sysusers.conf", f"usr/lib/sysusers.d/{self.name}.conf")
        self.install(HERE / self.name / "tmpfiles.conf", f"usr/lib/tmpfiles.d/{self.name}.conf")
        (self.tree / "etc" / self.name).mkdir(parents=True)

    def bundle(self):
        for path in sorted((ROOT / "Policies").rglob("*")):
            if path.is_file():
                self.install(path, f"usr/share/sendgate/{path.relative_to(ROOT)}")

    def help_of(self, *arguments):
        environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        return run(str(self.program), *arguments, stdin=subprocess.DEVNULL, env=environment)

    def completions(self):
        for shell, place in [
            ("bash", f"usr/share/bash-completion/completions/{self.name}"),
            ("zsh", f"usr/share/zsh/vendor-completions/_{self.name}"),
            ("fish", f"usr/share/fish/vendor_completions.d/{self.name}.fish"),
        ]:
            text = self.help_of("--generate-completion-script", shell)
            # bash reads its own as a part of itself, not as a program.
            self.write(place, text.removeprefix("#!/bin/bash\n"))

    def manual(self, date):
        from manual_pages import pages

        for name, text in pages(self.name, self.version, date, self.help_of):
            self.write(f"usr/share/man/man1/{name}.1", text, packed=True)

    def documents(self, stamp, copyright):
        folder = f"usr/share/doc/{self.name}"
        self.write(f"{folder}/copyright", copyright)
        for page in self.about["pages"]:
            if (HANDBOOK / page).exists():
                self.write(f"{folder}/{page}", (HANDBOOK / page).read_bytes(), packed=True)
        self.write(
            f"usr/share/lintian/overrides/{self.name}",
            "# These packages are their owner's and none of Debian's archive.\n"
            f"{self.name}: initial-upload-closes-no-bugs *\n"
            "# Yams, which reads the pages of a bundle, carries libyaml; Debian's own has no module for Swift.\n"
            f"{self.name}: embedded-library libyaml *\n")
        self.write(f"{folder}/changelog", (ROOT / "CHANGELOG.md").read_bytes(), packed=True)
        self.write(
            f"{folder}/changelog.Debian",
            f"{self.name} ({self.version}) unstable; urgency=medium\n\n"
            "  * See changelog.gz for what changed.\n\n"
            f" -- sendgate maintainers <maintainers@sendgate.invalid>  {stamp}\n",
            packed=True)

    def depends(self, work):
        """What the program links, as Debian's packages name it."""
        (work / "debian").mkdir(exist_ok=True)
        (work / "debian/control").write_text(f"Source: {self.name}\n\nPackage: {self.name}\nArchitecture: any\n")
        text = run("dpkg-shlibdeps", "-O", *self.private_libraries(), str(self.program), cwd=work, stderr=subprocess.DEVNULL)
        return re.search(r"shlibs:Depends=(.*)", text)[1]

    def private_libraries(self):
        """Of a program with a shared Swift runtime, which only tests pack: the runtime is of no package."""
        return ["--ignore-missing-info"] if b"libswiftCore.so" in self.program.read_bytes() else []

    def control(self, depends):
        size = sum(-(-path.stat().st_size // 1024) for path in self.tree.rglob("*") if path.is_file())
        words = {
            "VERSION": self.version, "ARCHITECTURE": run("dpkg", "--print-architecture").strip(),
            "SIZE": str(size), "DEPENDS": depends, "PACKAGE": self.name,
            "UNITS": " ".join(self.about["units"]), "RESTART": self.about["restart"],
            "PURGE": self.about["purge"], "CONFIGURATION": self.about["configuration"], "HINT": self.about["hint"],
        }

        def filled(text):
            return re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], text)

        sums = "".join(
            f"{run('md5sum', str(path)).split()[0]}  {path.relative_to(self.tree)}\n"
            for path in sorted(self.tree.rglob("*")) if path.is_file())
        self.write("DEBIAN/control", filled((HERE / self.name / "control").read_text()))
        self.write("DEBIAN/md5sums", sums)
        for script in ["preinst", "postinst", "prerm", "postrm"]:
            self.write(f"DEBIAN/{script}", filled((HERE / script).read_text()), 0o755)

    def pack(self, out, epoch, compression):
        for path in [*self.tree.rglob("*"), self.tree]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (epoch, epoch))
        file = out / f"{self.name}_{self.version}_{run('dpkg', '--print-architecture').strip()}.deb"
        run(
            "dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", str(self.tree), str(file),
            env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
        return file


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--checkouts", type=pathlib.Path, default=ROOT / ".build/checkouts")
    parser.add_argument("--revision", type=int, default=1)
    parser.add_argument("--compression", choices=["xz", "none"], default="xz")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    from third_party import copyright_page

    out = options.out.resolve()
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    epoch = moment()
    stamp = run("date", "--utc", "--rfc-email", f"--date=@{epoch}").strip()
    date = run("date", "--utc", "--iso-8601", f"--date=@{epoch}").strip()
    copyright = copyright_page(options.checkouts)
    for name in PACKAGES:
        package = Package(name, options.programs.resolve(), work, options.revision)
        package.units()
        if name == "sendgate":
            package.bundle()
        package.completions()
        package.manual(date)
        package.documents(stamp, copyright)
        package.control(package.depends(work))
        file = package.pack(out, epoch, options.compression)
        print(f"{file} {file.stat().st_size} bytes, {package.program.stat().st_size} bytes of program")


if __name__ == "__main__":
    main()
