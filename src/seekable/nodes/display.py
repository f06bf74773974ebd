"""Text about datasets for people: the tree of nodes, lists, and the place of a record in an error message."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.errors import SeekableError
from seekable.index.location import Location

if TYPE_CHECKING:
    import html
    from collections.abc import Callable, Iterator, Sequence

    from seekable.nodes.node import Node
else:
    html = lazy("html")

__all__ = [
    "MOST_CHARACTERS",
    "add_place",
    "data_size",
    "describe_place",
    "describe_row",
    "explained",
    "listed",
    "preformatted",
]

_MOST_FILES = 3
_MOST_LISTED = 4
_MOST_CHILDREN = 10
_MOST_CHARACTERS = 60
_MOST_LINES = 1000


def explained(node: Node) -> list[str]:
    """Return the lines of a dataset's tree: each node with its arguments, number of records, and files.

    There are at most 1,000: one node may stand at millions of places.
    """
    lines = list(islice(_tree(node, ""), _MOST_LINES + 1))
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], "... and so on"]


def _tree(node: Node, indent: str) -> Iterator[str]:
    arguments = node.arguments(None)
    files = arguments.pop("files", [])
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    records = "endless" if node.size is None else f"{node.size:,} records"
    order = "" if node.steady else ", another order each epoch"
    yield f"{indent}{node.kind}({given}): {records}{order}{node.remark()}"
    below = indent + "  "
    for number, file in enumerate(files[:_MOST_FILES]):
        yield f"{below}{file['name']}: {file['records']:,} records{_in_bytes(data_size(node, number))}"
    if len(files) > _MOST_FILES:
        yield f"{below}and {len(files) - _MOST_FILES:,} more files"
    for child in node.children[:_MOST_CHILDREN]:
        yield from _tree(child, below)
    if len(node.children) > _MOST_CHILDREN:
        yield f"{below}and {len(node.children) - _MOST_CHILDREN:,} more sources"


def data_size(leaf: Any, file: int) -> int | None:
    """Return the size of a source's file; for a file on the Hub, what is there of it; None if unknown."""
    # What stands for a source of a description has the source itself, if its files were found.
    files = getattr(leaf.files, "files", leaf.files)
    return None if files is None else int(files.data_size(file))


def _in_bytes(size: int | None) -> str:
    return "" if size is None else f", {size:,} bytes"


def listed(items: Sequence[str]) -> str:
    """Return the first four of some texts, with commas between them.

    Example:
        >>> listed(["a", "b"]), listed(["a"] * 9)
        ('a, b', 'a, a, a, a, ...')
    """
    return ", ".join([*items[:_MOST_LISTED], "..."] if len(items) > _MOST_LISTED else items)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def describe_place(node: Node, position: int) -> str:
    """Return the file and the row of the record at a position, as error messages name them.

    Example:
        >>> import seekable as sk
        >>> describe_place(sk.from_sequence("ab").take(2)._node, 1)
        '<builtins.str> row 1'
    """
    location = _location(node, position)
    return (
        f"{location.path} row {location.row}"
        if isinstance(location, Location)
        else f"the record at {location}"
    )


def describe_row(node: Node, row: int) -> str:
    """Return the number of a row, and the file, row and byte offset of its record in parentheses.

    Example:
        >>> import seekable as sk
        >>> describe_row(sk.from_sequence("ab").take(2)._node, 1)
        "row 1 (at Location(path='<builtins.str>', row=1, offset=0, length=0))"
    """
    location = _location(node, row)
    if isinstance(location, Location) and not location.path.startswith("<"):
        return f"row {row:,} (record {location.row:,} of {location.path}, at byte {location.offset:,})"
    return f"row {row:,} (at {location})"


def add_place(error: Exception, function: str, dataset: Node, position: int) -> None:
    """Add a note to the error of a user's function, with the function's name and its record's place.

    Args:
        error: the exception that the function raised; changed in place.
        function: the name of the function, as the note gives it.
        dataset: the node whose record the function was called with.
        position: the position of the record in ``dataset``.
    """
    place = _location(dataset, position)
    error.add_note(f"in {function}, called with the record at {place} (position {position})")


def _location(node: Node, position: int) -> Any:
    try:
        return node.plan(np.array([position], dtype=np.int64)).locate()[0]
    except SeekableError as lost:
        # The user needs the error whose message names this place, not this one.
        return f"a place that cannot be told: {lost}"


MOST_CHARACTERS = 5_000

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def preformatted(make: Callable[[], str], shown: object) -> str:
    """Return the first characters of a text as HTML, without script and style; never raise.

    Characters that cannot be seen stand as their codes.

    Args:
        make: makes the text. Where it raises, the ``repr`` of the object takes its place.
        shown: the object.

    Example:
        >>> preformatted(lambda: "a < b", None)
        '<pre>a &lt; b</pre>'
        >>> preformatted(lambda: 1 / 0, [3])
        '<pre>[3]</pre>'
    """
    try:
        text = make()
    except Exception:  # noqa: BLE001 - a cell must not fail because its result cannot be shown
        try:
            text = repr(shown)
        except Exception:  # noqa: BLE001 - a repr of parts that are the user's may raise anything
            text = f"<{type(shown).__name__}>"
    cut = text[:MOST_CHARACTERS] + " ..." * (len(text) > MOST_CHARACTERS)
    return f"<pre>{html.escape(_UNSEEN.sub(lambda found: f'[U+{ord(found[0]):04X}]', cut))}</pre>"
