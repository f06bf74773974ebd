"""Lines as formats: ``sk.formats.Jsonl``, ``sk.formats.Text`` and ``sk.formats.Csv``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from seekable.formats.contract import Format, check_partitions

if TYPE_CHECKING:
    from seekable.formats.contract import Hive

__all__ = ["Csv", "Jsonl", "Text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jsonl(Format):
    r"""JSON lines.

    Args:
        partitions: ``"hive"`` if folders ``year=2024/lang=de/`` are columns of the records below them: int64
            where all values of a key are integers, else str; None for ``__HIVE_DEFAULT_PARTITION__``, and in
            a file that lies in no folder of the key. ``filter(where=)`` opens no file that they rule out. A
            record with another value than its folder's in a column of that name raises ``BadValue``.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     part = pathlib.Path(folder, "year=2024")
        ...     part.mkdir()
        ...     _ = (part / "a.jsonl").write_text('{"id": 0}\n')
        ...     sk.open(folder, format=sk.formats.Jsonl(partitions="hive"))[0]
        {'id': 0, 'year': 2024}
    """

    names: ClassVar[tuple[str, ...]] = ("jsonl",)

    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_partitions(self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Format):
    r"""Lines of text, each a str; by ``txt:PATH:COLUMN`` each a dict of one column.

    Args:
        partitions: ``"hive"`` if folders are columns, for ``txt:PATH:COLUMN``; see ``Jsonl``.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.log").write_text("one\ntwo\n")
        ...     sk.open(f"{folder}/a.log", format=sk.formats.Text())[1]
        'two'
    """

    names: ClassVar[tuple[str, ...]] = ("text",)

    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_partitions(self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv(Format):
    r"""CSV and TSV, whose records are dicts of str by the names of the first line.

    Args:
        delimiter: the character between fields: by default a comma, in ``.tsv`` a tab.
        quote: the character that quotes fields, ``""`` if quotes are characters like others. By default
            ``'"'``; in files with tabs a record of several lines is refused then, if a line of it could be a
            record.
        encoding: the encoding of the text, as ``"cp1252"``; by default UTF-8.
        partitions: ``"hive"`` if folders are columns; see ``Jsonl``.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.csv").write_text("id|text\n7|a,b\n")
        ...     sk.open(folder, format=sk.formats.Csv(delimiter="|"))[0]
        {'id': '7', 'text': 'a,b'}
    """

    names: ClassVar[tuple[str, ...]] = ("csv", "tsv", "csv-semicolon")

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the option of folders; those of the dialect are checked with the name of the format."""
        check_partitions(self.partitions)
