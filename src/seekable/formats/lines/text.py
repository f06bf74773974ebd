"""Lines of text: every line is a record, blank ones too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from seekable._arguments import (
    checked_text,
    explains_fields,
)
from seekable.errors import InvalidArgument
from seekable.formats.classify import files_of_card, format_of_spec
from seekable.formats.contract import Claim, check_partitions
from seekable.formats.lines.line_bounds import scan_lines
from seekable.formats.lines.line_source import Lines
from seekable.formats.table import card_named
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.contract import Card, Hive
    from seekable.formats.look import Look
    from seekable.index.finder import ByteSource


@explains_fields("sk.formats.Text")
@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Lines):
    r"""Lines of text, each a str; by ``txt:PATH:COLUMN`` each a dict of one column.

    Args:
        partitions: ``"hive"`` if folders are columns, for ``txt:PATH:COLUMN``; see ``Jsonl``.
        column: the name of the only column of records, whose value is the line; None if a record is the line.

    Raises:
        InvalidArgument: ``partitions`` is another word.
        WrongType: an option is not a text.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.log").write_text("one\ntwo\n")
        ...     sk.open(f"{folder}/a.log", format=sk.formats.Text())[1]
        'two'
    """

    card: ClassVar[Card] = card_named("text")

    partitions: Hive | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        """Check each option."""
        check_partitions(self.partitions)
        checked_text("column", self.column)

    @property
    def only_column(self) -> str | None:
        """The name of the only column that records have; None if a record is what the line holds."""
        return self.column

    @property
    def finder(self) -> TextScanner:
        """The scanner of lines."""
        return TextScanner()

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the files of ``txt:PATH:COLUMN``: each line is the value of the column.

        Raises:
            InvalidArgument: the spec is incomplete, or the user gave another format.
            DataNotFound: there is no such file.
        """
        if look.spec != "txt":
            return None
        path, colon, column = look.rest.rpartition(":")
        if not colon or not path or not column or "/" in column:
            form_of_spec = "txt:PATH:COLUMN, where COLUMN is the name of the column of lines"
            message = f"{look.path!r} is not complete: {form_of_spec}"
            raise InvalidArgument(message)
        form = cast("Self", format_of_spec(look, "text"))
        return Claim(format=replace(form, column=column), found=files_of_card(path, cls.card))


@dataclass(frozen=True, slots=True)
class TextScanner:
    """Finds the lines of a text file."""

    name: str = "text"
    splittable: bool = True

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are not text in UTF-8.
        """
        check_is_text(head, path)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets at which lines start, uint64."""
        return scan_lines(source, keep_blank=True)
