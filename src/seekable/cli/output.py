"""Output: JSON documents, records and tables on stdout; messages and progress on stderr."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, final

from seekable.parallel.progress import Progress, terminal_progress
from seekable.viewer.facts.json_documents import document, json_safe, text_bytes

if TYPE_CHECKING:
    from seekable.parallel.progress import ProgressHook


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


_ERASE_LINE = "\r\x1b[2K"


@final
class BuildWatch:
    """Counts the files of index builds and, unless ``shown`` is False, shows their progress.

    On a terminal a bar appears when a build takes longer than a second; elsewhere only notices are printed,
    such as where an index goes when the data's folder cannot be written.
    """

    def __init__(self, *, shown: bool, hook: ProgressHook | None = None) -> None:
        self.files_indexed = 0
        """The number of files that were new or changed."""
        self._bar = terminal_progress() if shown else None
        self._shown = shown
        self._hook = hook

    def __call__(self, progress: Progress) -> None:
        """Count the files of a build, and draw its progress."""
        if self._hook is not None:
            self._hook(progress)
        # Other work than an index build reports no bytes.
        if progress.bytes:
            self.files_indexed = max(self.files_indexed, progress.files_done)
        if self._bar is not None:
            self._bar(progress)
        elif self._shown and progress.notice:
            tell(progress.notice)

    def close(self) -> None:
        """Erase the bar, also after a build that failed."""
        if self._bar is not None:
            self._bar.close()


@final
class StatusLine:
    """One line on a terminal that shows the present work, and is erased at the end; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and terminal_progress() is not None
        self._drawn = False

    def show(self, what: str) -> None:
        """Replace the line by ``what``, cut to the width of the terminal."""
        if self._shown:
            # Before it is drawn, because an interrupt may come as soon as it can be seen.
            self._drawn = True
            sys.stderr.write(
                f"{_ERASE_LINE}{printable(what)}"[: len(_ERASE_LINE) + shutil.get_terminal_size().columns - 1]
            )
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Erase the line, also after an error."""
        if self._drawn:
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()
