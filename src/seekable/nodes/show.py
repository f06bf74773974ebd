"""Datasets as text: one expression, or a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.contract import Node

__all__ = ["explained", "listed"]

_MOST_FILES = 3
_MOST_LISTED = 4
_MOST_CHILDREN = 10
_MOST_CHARACTERS = 60


def explained(node: Node, *, indent: str = "") -> list[str]:
    """Return a dataset as the lines of a tree: each node with its arguments, records and files."""
    arguments = node.arguments(None)
    files = arguments.pop("files", [])
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    records = "endless" if node.size is None else f"{node.size:,} records"
    order = "" if node.steady else ", another order each epoch"
    lines = [f"{indent}{node.kind}({given}): {records}{order}{node.remark()}"]
    below = indent + "  "
    lines += [
        f"{below}{file['name']}: {file['records']:,} records, {file['size']:,} bytes"
        for file in files[:_MOST_FILES]
    ]
    if len(files) > _MOST_FILES:
        lines.append(f"{below}and {len(files) - _MOST_FILES:,} more files")
    for child in node.children[:_MOST_CHILDREN]:
        lines += explained(child, indent=below)
    if len(node.children) > _MOST_CHILDREN:
        lines.append(f"{below}and {len(node.children) - _MOST_CHILDREN:,} more sources")
    return lines


def listed(items: Sequence[str]) -> str:
    """Return the first few of some texts with commas between them.

    Example:
        >>> listed(["a", "b"]), listed(["a"] * 9)
        ('a, b', 'a, a, a, a, ...')
    """
    return ", ".join([*items[:_MOST_LISTED], "..."] if len(items) > _MOST_LISTED else items)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
