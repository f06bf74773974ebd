"""CSV and TSV as a format: ``sk.formats.Csv``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from msgspec import structs

from seekable._arguments import (
    checked_text,
    explains_fields,
)
from seekable.formats.contract import check_partitions
from seekable.formats.lines.csv import CsvScanner, Dialect, checked_dialect, dialect_of
from seekable.formats.lines.line_source import Lines
from seekable.formats.table import card_named

if TYPE_CHECKING:
    from typing import Self

    from seekable.formats.contract import Card, Hive, Reading
    from seekable.formats.lines.line_source import LineDecoder

__all__ = ["Csv"]


@explains_fields("sk.formats.Csv")
@dataclass(frozen=True, slots=True, kw_only=True)
class Csv(Lines):
    r"""CSV and TSV, whose records are dicts of str by the names of the first line.

    Args:
        delimiter: the character between fields: by default a comma, in ``.tsv`` a tab.
        quote: the character that quotes fields, ``""`` if quotes are characters like others. By default
            ``'"'``; in files with tabs a record of several lines is refused then, if a line of it could be a
            record.
        encoding: the encoding of the text, as ``"cp1252"``; by default UTF-8.
        partitions: ``"hive"`` if folders are columns; see ``Jsonl``.
        field: the only field to read of each record, as in ``hf:REPO:SPLIT:COLUMN``.

    Raises:
        InvalidArgument: an option is no such character, encoding or word.
        WrongType: an option is not a text.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.csv").write_text("id|text\n7|a,b\n")
        ...     sk.open(folder, format=sk.formats.Csv(delimiter="|"))[0]
        {'id': '7', 'text': 'a,b'}
    """

    card: ClassVar[Card] = card_named("csv")

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    partitions: Hive | None = None
    field: str | None = None

    def __post_init__(self) -> None:
        """Check each option, and that records can be found by them."""
        for name in ("delimiter", "quote", "encoding", "field"):
            checked_text(name, getattr(self, name))
        check_partitions(self.partitions)
        if self.delimiter is None and self.quote == ",":
            replace(self, delimiter="\t")  # The delimiter of .tsv, which no option says.
        else:
            _ = self.dialect

    @property
    def name(self) -> str:
        """The name of the format in its dialect."""
        return self.dialect.name

    @property
    def dialect(self) -> Dialect:
        """The dialect that the options say; a comma, quotes and UTF-8 where they say nothing."""
        return checked_dialect(
            Dialect(
                "," if self.delimiter is None else self.delimiter,
                '"' if self.quote is None else self.quote,
                "utf-8" if self.encoding is None else self.encoding,
                bool(self.quote),
            )
        )

    def with_name(self, name: str) -> Self:
        """Return the format with the dialect of a name; options of the value come first.

        Raises:
            InvalidArgument: the options and the name do not go together.
        """
        named = dialect_of(name)
        quote = named.quote if named.quote != '"' or named.is_sure else None
        encoding = None if named.encoding == "utf-8" else named.encoding
        made = replace(
            self,
            delimiter=named.delimiter if self.delimiter is None else self.delimiter,
            quote=quote if self.quote is None else self.quote,
            encoding=encoding if self.encoding is None else self.encoding,
        )
        encoding = made.dialect.encoding
        return replace(made, encoding=None if encoding == "utf-8" else encoding)

    @property
    def decoding(self) -> str:
        """The dialect."""
        return self.name

    @property
    def only_field(self) -> str | None:
        """The only field to read of each record; None for all fields."""
        return self.field

    def decoder(self, reading: Reading) -> LineDecoder:
        """Return the decoder of records; ``"csv"`` names it for any CSV, ``"tsv"`` for any TSV."""
        is_own = reading.decode == self.name.partition("-")[0]
        return super(Csv, self).decoder(structs.replace(reading, decode=None) if is_own else reading)

    @property
    def finder(self) -> CsvScanner:
        """The scanner of records."""
        return CsvScanner(self.name)
