"""Manual pages of a program and of each of its commands, out of what it says of itself."""

import json
import re


def commands(tree, path=()):
    """Every command below a program, as the words that name it."""
    yield path
    for command in tree.get("subcommands", []):
        if command["commandName"] != "help" and command.get("shouldDisplay", True):
            yield from commands(command, path + (command["commandName"],))


def pages(program, version, date, help_of):
    """Name and text of each page."""
    tree = json.loads(help_of("--experimental-dump-help"))["command"]
    for path in commands(tree):
        name = "-".join((program,) + path)
        yield name, page(name, program, version, date, help_of(*path, "--help"))


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.split("\n"))


def page(name, program, version, date, text):
    """A page from the parser's help: sections that begin with a word in capitals and a colon, between blank lines."""
    sections, summary, prose = {}, None, []
    label = None
    for block in re.split(r"\n\n+", text.strip("\n")):
        head = re.match(r"([A-Z][A-Z ]*):(?: |\n|$)", block)
        if head:
            label = head[1]
            sections[label] = block[head.end():].strip("\n")
        elif label in (None, "USAGE", "OVERVIEW"):
            prose.append(block)
        else:
            sections[label] += "\n\n" + block
    if "OVERVIEW" in sections:
        prose.insert(0, sections.pop("OVERVIEW"))
    summary = " ".join(prose.pop(0).split()) if prose else name
    usage = sections.pop("USAGE", name)
    lines = [
        f'.TH "{escaped(name).upper()}" 1 "{date}" "{program} {version}" "{program}"',
        ".SH NAME", f"{escaped(name)} \\- {escaped(summary.rstrip('.'))}",
        ".SH SYNOPSIS", ".nf", escaped("\n".join(line.strip() for line in usage.split("\n"))), ".fi",
    ]
    if prose:
        lines.append(".SH DESCRIPTION")
        for block in prose:
            indented = all(line.startswith("  ") for line in block.split("\n"))
            lines += [".PP"] + ([".nf", escaped(block), ".fi"] if indented else [escaped(" ".join(block.split()))])
    titles = {"EXAMPLE": "EXAMPLES", "ARGUMENTS": "ARGUMENTS", "OPTIONS": "OPTIONS", "SUBCOMMANDS": "COMMANDS"}
    for label, body in sections.items():
        lines.append(f'.SH "{titles.get(label, label)}"')
        if label in ("OPTIONS", "ARGUMENTS", "SUBCOMMANDS"):
            lines += terms(body)
        else:
            lines += [".nf", escaped(body), ".fi"]
    if name != program:
        lines += [".SH SEE ALSO", f".BR {escaped(name.rsplit('-', 1)[0])} (1)"]
    return "\n".join(lines) + "\n"


def terms(body):
    """Two columns, the second of which goes on below itself, as a list of terms."""
    lines = []
    for line in body.split("\n"):
        match = re.match(r"  (\S.*?)(?:(?:  +|(?<=>) )(\S.*))?$", line)
        if match and not line.startswith("   "):
            lines += [".TP", f"\\fB{escaped(match[1])}\\fR"]
            if match[2]:
                lines.append(escaped(match[2]))
        elif line.strip():
            lines.append(escaped(line.strip()))
    return lines
