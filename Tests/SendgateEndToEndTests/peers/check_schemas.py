#!/usr/bin/env python3
"""Checks every page of a policy bundle against its JSON Schema, with readers that were not written here.

    check_schemas.py FOLDER     needs PyYAML and jsonschema (>= 4) from PyPI

PyYAML reads YAML 1.1, the gateway reads YAML 1.2. That both give the same document is what quoting "NO" and
"21:00" is for, so a page that only one of them understands fails here too: its value has another type.
Exit status: 0 every page fits, 1 some do not, 64 usage.
"""

import json
import pathlib
import sys

import jsonschema
import yaml


class StrictLoader(yaml.SafeLoader):
    """SafeLoader, except that a key may not occur twice."""


def mapping_without_duplicates(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} twice", node.start_mark)
    return loader.construct_mapping(node, deep=True)


StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping_without_duplicates)

IN_FOLDERS = {"types": "type", "messages": "messages", "reasons": "reasons", "cases": "cases"}


def main(folder: pathlib.Path) -> int:
    schemas = {}
    for path in sorted((folder / "schema").glob("*.schema.json")):
        schema = json.loads(path.read_text("utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        schemas[path.name.removesuffix(".schema.json")] = jsonschema.Draft202012Validator(schema)
    used, failures, pages = set(), 0, 0
    for path in sorted(folder.rglob("*.yaml")):
        relative = path.relative_to(folder)
        name = IN_FOLDERS[relative.parts[0]] if len(relative.parts) > 1 else relative.stem
        used.add(name)
        pages += 1
        text = path.read_text("utf-8")
        expected = "../" * (len(relative.parts) - 1) + f"schema/{name}.schema.json"
        if text.split("\n", 1)[0] != f"# yaml-language-server: $schema={expected}":
            failures += 1
            print(f"{relative}:1: the first line does not name {expected} for editors")
        for error in schemas[name].iter_errors(yaml.load(text, StrictLoader)):
            failures += 1
            print(f"{relative}: /{'/'.join(map(str, error.absolute_path))}: {error.message}")
    for name in sorted(set(schemas) - used):
        failures += 1
        print(f"schema/{name}.schema.json: no page uses it")
    print(f"{pages} pages, {len(schemas)} schemas, {failures} failures", file=sys.stderr)
    return 1 if failures or pages == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    sys.exit(main(pathlib.Path(sys.argv[1])))
