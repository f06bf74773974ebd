"""Write the sources of Python's standard library as data that looks like a corpus.

    python standard_library.py FOLDER

FOLDER gets passages-*.jsonl (a paragraph of a module a record: path, module, text) and lines-*.txt (a line of
code a record).
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig

SHARDS = 8


def module_paths() -> list[str]:
    """Return the standard library's source files, relative to its folder."""
    root = sysconfig.get_path("stdlib")
    paths = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name != "site-packages"]
        paths += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".py")]
    return sorted(paths)


def read_module(path: str) -> str:
    """Return a module's text, or an empty one where it is not UTF-8, as some of Python's own tests are."""
    try:
        with open(os.path.join(sysconfig.get_path("stdlib"), path), encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        return ""


def passages(path: str, text: str) -> list[str]:
    """Return the JSON lines of a module, one for each run of lines between blank ones."""
    module = path.removesuffix(".py").replace(os.sep, ".").removesuffix(".__init__")
    return [
        json.dumps({"path": path, "module": module, "text": passage.strip("\n")}, ensure_ascii=False)
        for passage in text.split("\n\n")
        if passage.strip()
    ]


def write_lines(path: str, lines: list[str]) -> None:
    """Write a text file of one record a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def main() -> None:
    """Write the shards."""
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    paths = module_paths()
    for shard in range(SHARDS):
        texts = {path: read_module(path) for path in paths[shard::SHARDS]}
        jsonl = [line for path, text in texts.items() for line in passages(path, text)]
        lines = [line for text in texts.values() for line in text.split("\n") if line.strip()]
        write_lines(os.path.join(folder, f"passages-{shard}.jsonl"), jsonl)
        write_lines(os.path.join(folder, f"lines-{shard}.txt"), lines)


if __name__ == "__main__":
    main()
