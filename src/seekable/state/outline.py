"""A pipeline's description as a tree that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["outline"]

_MOST_CHILDREN = 10
_MOST_CHARACTERS = 60


def outline(description: Mapping[str, Any], *, indent: str = "") -> list[str]:
    r"""Return the lines of the tree: each node with its arguments, each source with its files and records.

    Example:
        >>> file = {"name": "a.jsonl", "records": 3, "size": 40}
        >>> source = {"kind": "files", "format": "jsonl", "decode": "json", "files": [file]}
        >>> print("\n".join(outline({"kind": "shuffle", "seed": 1, "of": [source]})))
        shuffle(seed=1)
          files(format='jsonl', decode='json'): 3 records in 1 file, 40 bytes
    """
    arguments = {key: value for key, value in description.items() if key not in ("kind", "of", "files")}
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    lines = [f"{indent}{description['kind']}({given}){_contents(description)}"]
    below = description.get("of", [])
    for child in below[:_MOST_CHILDREN]:
        lines += outline(child, indent=f"{indent}  ")
    if len(below) > _MOST_CHILDREN:
        lines.append(f"{indent}  and {len(below) - _MOST_CHILDREN:,} more sources")
    return lines


def _contents(description: Mapping[str, Any]) -> str:
    files = description.get("files")
    if files is None:
        return ""
    records, size = (sum(file[key] for file in files) for key in ("records", "size"))
    return f": {records:,} records in {len(files):,} file{'s' * (len(files) != 1)}, {size:,} bytes"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
