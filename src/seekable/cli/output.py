"""Output on stdout: JSON documents, records, and tables for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

SCHEMA = 1
"""The version of all printed JSON: it grows when a field is removed or changes its meaning."""


def document(fields: Mapping[str, Any]) -> bytes:
    r"""Return a JSON document on a line of its own: keys sorted, the schema's version among them.

    Example:
        >>> document({"records": 3, "files": 1})
        b'{"files":1,"records":3,"schema":1}\n'
    """
    return msgspec.json.encode({"schema": SCHEMA, **fields}, order="sorted") + b"\n"


def write_document(fields: Mapping[str, Any]) -> None:
    """Print a JSON document on a line of its own."""
    write(document(fields))


def write_line(text: str) -> None:
    """Print a line; names that are not UTF-8 are printed as their bytes."""
    write(text.encode("utf-8", "surrogateescape") + b"\n")


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


def json_safe(path: str) -> str:
    r"""Return a path as JSON can hold it: bytes that are no UTF-8 become ``\xNN``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def place_as_json(place: Any) -> Any:
    """Return a location, or a row whose bytes are not known, as JSON; a list of them as a list.

    Of a document of a token store it says, as ``source``, where the record lies that it was made of.
    """
    if isinstance(place, list | tuple):
        return [place_as_json(part) for part in place]
    has_bytes = hasattr(place, "offset") and not place.path.startswith("<")
    source = getattr(place, "source", None)
    return {
        "path": json_safe(place.path),
        "row": place.row,
        "offset": place.offset if has_bytes else None,
        "length": place.length if has_bytes else None,
        **({} if source is None else {"source": place_as_json(source)}),
    }


def in_words(count: int, noun: str) -> str:
    """Return a count with its noun.

    Example:
        >>> in_words(1, "file"), in_words(12345, "record")
        ('1 file', '12,345 records')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _write_facts_on_terminal(facts: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        # rich.Text, because rich reads the brackets of a glob as markup.
        table.add_row(Text(name, style="cyan"), Text(json_safe(value)))
    Console(highlight=False).print(table)
