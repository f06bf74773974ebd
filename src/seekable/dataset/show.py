"""Datasets as text: one expression, or a tree."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.contract import Node

__all__ = ["explained", "expression", "listed", "remark"]

_MOST_FILES = 3
_MOST_LISTED = 4
_MOST_CHILDREN = 10
_MOST_CHARACTERS = 60


def expression(node: Node) -> str:
    """Return the expression that makes a dataset.

    Example:
        >>> import seekable as sk
        >>> expression(sk.from_sequence("abc").shuffle(seed=7)[:2])
        'from_sequence(<builtins.str of 3>).shuffle(seed=7)[0:2]'
    """
    return node.shown([expression(child) for child in node.children])


def explained(node: Node, *, indent: str = "") -> list[str]:
    """Return a dataset as the lines of a tree: each node with its arguments, records and files."""
    arguments = node.arguments(None)
    files = arguments.pop("files", [])
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    records = "endless" if node.size is None else f"{node.size:,} records"
    order = "" if node.steady else ", another order each epoch"
    lines = [f"{indent}{node.kind}({given}): {records}{order}{remark(node)}"]
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


@singledispatch
def remark(_node: Node) -> str:
    """Return what else is worth knowing of a node; each class may register its own."""
    return ""


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
