"""Output on stdout: JSON documents, records, and tables for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from seekable.viewer.facts.documents import document, json_safe, text_bytes


def write_document(fields: Mapping[str, Any]) -> None:
    """Print a JSON document on a line of its own."""
    write(document(fields))


_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udc9f]")
"""What moves the cursor of a terminal, or turns the direction of a text around."""

_OF_TEXTS = "\n\t"
"""What of it stays in texts for people."""


def write_line(text: str) -> None:
    """Print a text of one line or of several; names that are not UTF-8 are printed as their bytes."""
    write(text_bytes(printable(text, keep=_OF_TEXTS)) + b"\n")


def tell(message: str) -> None:
    """Print a message for people on stderr."""
    print(f"seekable: {printable(message, keep=_OF_TEXTS)}", file=sys.stderr)


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text in which control characters are escaped: the name of a file must not steer a terminal.

    Args:
        text: the text.
        keep: the control characters that stay.

    Example:
        >>> print(printable("a\x1b[2J.txt"), printable("\u202e\r.txt", keep="\r") == "\\u202e\r.txt")
        a\x1b[2J.txt True
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    """Return a control character as Python and JSON write it."""
    return repr(character)[1:-1] if character < "\x7f" else f"\\u{ord(character):04x}"


def write_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, in two columns."""
    if sys.stdout.isatty():
        _write_facts_on_terminal(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        write_line(f"{name:{width}}  {value}")


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, in columns; columns of numbers are aligned to the right."""
    for line in table_lines(header, rows):
        write_line(line)


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows under a header as lines.

    Example:
        >>> table_lines(["file", "bytes"], [["a", "12"], ["long", "1,234"]])
        ['file  bytes', 'a        12', 'long  1,234']
    """
    cells = [[printable(value) for value in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(value) for value in column[1:]) for column in columns]
    return [
        "  ".join(
            f"{value:>{width}}" if is_right else f"{value:{width}}"
            for value, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in (header, *cells)
    ]


def _is_number(value: str) -> bool:
    return value.strip("-").replace(",", "").replace(".", "").isdigit() or value == "-"


def write(data: bytes) -> None:
    """Print bytes as they are; on a terminal, control characters in them are escaped."""
    if sys.stdout.isatty():
        data = text_bytes(printable(data.decode("utf-8", "surrogateescape"), keep=_OF_TEXTS))
    sys.stdout.buffer.write(data)


def _write_facts_on_terminal(facts: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        # rich.Text, because rich reads the brackets of a glob as markup.
        table.add_row(Text(name, style="cyan"), Text(printable(json_safe(value))))
    Console(highlight=False).print(table)
