"""The copyright page of the packages: that no licence is granted, and the texts of what is linked statically.

Each text is read where the build has it: in the checkouts of the Swift packages, in the toolchain, and for ICU's, which the toolchain
links and gives no text of, in Debian's own package of ICU.
"""

import json
import pathlib
import subprocess

APACHE = "/usr/share/common-licenses/Apache-2.0"
# Folders of C sources that a Swift package carries, with notices of their own at the head of each file.
CARRIED = {
    "swift-nio-ssl": ["Sources/CNIOBoringSSL"], "swift-crypto": ["Sources/CCryptoBoringSSL"],
    "swift-nio": ["Sources/CNIOLLHTTP", "Sources/CNIOSHA1"], "Yams": ["Sources/CYaml"],
}
ICU = pathlib.Path("/usr/share/doc/libicu72/copyright")
NOTICE_BYTES_MAX = 6_000


def toolchain_licence():
    swift = pathlib.Path(subprocess.run(
        ["bash", "-c", "readlink -f $(command -v swift)"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip())
    return swift.parent.parent / "share/swift/LICENSE.txt"


def is_apache(text):
    return "Apache License" in text and "TERMS AND CONDITIONS FOR USE" in text


def licence(text):
    """The text, or for Apache's where Debian has it, with what follows its end."""
    if not is_apache(text):
        return text.strip("\n")
    rest = text.partition("limitations under the License.")[2].strip("\n")
    head = f"Apache License, Version 2.0. On Debian systems the text is in {APACHE}."
    return f"{head}\n\n{rest}" if rest else head


def opening_comment(text):
    """The comments that a file begins with, without their marks."""
    lines, inside = [], False
    for line in text.splitlines():
        line = line.strip()
        if not inside and not line.startswith(("/*", "//")):
            if lines or (line and not line.startswith("#")):
                break
            continue
        inside = (inside or line.startswith("/*")) and "*/" not in line
        lines.append(line.strip("/*").strip())
    return "\n".join(lines).strip()


def notices(folder):
    """What the files of a folder say of their authors, each once."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".c", ".cc", ".h", ".S", ".inc"}:
            text = opening_comment(path.read_text(errors="replace")[:NOTICE_BYTES_MAX])
            if "opyright" in text:
                found.setdefault(" ".join(text.split()), text)
    return list(found.values())


def copyright_page(checkouts):
    if not checkouts.is_dir():
        raise SystemExit(f"no checkouts in {checkouts}: build first")
    parts = [
        "sendgate and sendgate-courier",
        "Copyright: 2026, the authors of sendgate.\n\n"
        "No licence is granted yet: the choice is the owner's, and it has not been made. Without one nobody but the owner may\n"
        "use, copy, change or pass on these programs. What they link statically is others' work, under the licences below.",
    ]
    resolved = json.loads((checkouts.parent / "workspace-state.json").read_text())
    versions = {
        entry["subpath"]: entry["state"].get("checkoutState", {}).get("version", "")
        for entry in resolved["object"]["dependencies"]
    }
    for folder in sorted(checkouts.iterdir()):
        texts = [folder / name for name in ("LICENSE.txt", "LICENSE", "NOTICE.txt") if (folder / name).is_file()]
        if not texts:
            raise SystemExit(f"{folder} has no licence")
        parts.append(f"{'-' * 78}\n{folder.name} {versions.get(folder.name, '')}".rstrip())
        parts += [licence(path.read_text()) for path in texts]
        for carried in CARRIED.get(folder.name, []):
            parts.append(f"In {folder.name}, {carried}:")
            own = folder / carried / "LICENSE"
            parts += [licence(own.read_text())] if own.is_file() else notices(folder / carried)
    parts.append(f"{'-' * 78}\nSwift's runtime, Foundation and Dispatch, of the toolchain that built the programs")
    parts.append(licence(toolchain_licence().read_text()))
    parts.append(f"{'-' * 78}\nICU, which Swift's Foundation links")
    if not ICU.is_file():
        raise SystemExit(f"{ICU} is missing: install libicu72 for the text of ICU's licence")
    parts.append(ICU.read_text().strip("\n"))
    return "\n\n".join(parts) + "\n"
