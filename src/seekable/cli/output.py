"""Output on stdout: JSON documents, records, and tables for people."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from seekable.viewer.facts.documents import document, json_safe, text_bytes


def write_document(fields: Mapping[str, Any]) -> None:
    """Print a JSON document on a line of its own."""
    write(document(fields))


def write_line(text: str) -> None:
    """Print a line; names that are not UTF-8 are printed as their bytes."""
    write(text_bytes(text) + b"\n")


def printable(text: str) -> str:
    r"""Return a text in which control characters are escaped: the name of a file must not steer a terminal.

    Example:
        >>> print(printable("a\x1b[2J.txt"))
        a\x1b[2J.txt
    """
    return "".join(
        repr(character)[1:-1] if unicodedata.category(character) == "Cc" else character for character in text
    )


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
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(value) for value in column[1:]) for column in columns]
    return [
        "  ".join(
            f"{value:>{width}}" if is_right else f"{value:{width}}"
            for value, width, is_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in (header, *rows)
    ]


def _is_number(value: str) -> bool:
    return value.strip("-").replace(",", "").replace(".", "").isdigit() or value == "-"


def write(data: bytes) -> None:
    """Print bytes as they are."""
    sys.stdout.buffer.write(data)


def _write_facts_on_terminal(facts: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        # rich.Text, because rich reads the brackets of a glob as markup.
        table.add_row(Text(name, style="cyan"), Text(json_safe(value)))
    Console(highlight=False).print(table)
