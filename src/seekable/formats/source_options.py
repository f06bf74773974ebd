"""The arguments of ``sk.open`` that say what becomes of the bytes of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from seekable.errors import CorruptRecord, InvalidArgument, WrongType
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OnError", "Pipes", "SourceOptions"]

Pipes = Literal["refuse", "specifier", "allow"]
"""``"allow"`` runs commands, and ``"refuse"`` raises `PipeRefused` for them. ``"specifier"`` runs a command
of the specifier or extended filename that the caller passes, and refuses those that a script contains."""

OnError = Callable[[CorruptRecord], Any]
"""Returns what to deliver instead of a corrupt record: another record, or ``sk.HOLE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The arguments of ``sk.open`` that say what becomes of the bytes of a record."""

    shown: str
    """The data as the user named it, for ``repr``."""

    decode: Any = None
    """The decoding; None for that of the format."""

    version: str | int | None = None
    """Stands for the code of functions in the fingerprint."""

    errors: OnError | None = None
    """Replaces corrupt records; None raises the error."""

    column: str | None = None
    """Of lines: the name of the only column that records have; None if a record is what the line holds."""

    field: str | None = None
    """Of JSON lines and CSV: the only field to read of each record; None for all fields."""

    columns: Sequence[str] | None = None
    """Of tables: the columns to read, in the order of records; None for all."""

    missing: str | None = None
    """Of samples of tar files: ``"none"`` if a column that a sample lacks is None; else that is an error."""

    group: str | None = None
    """Of tar files: ``"key"`` if members with one key are one sample wherever they are in a file; None if
    they follow each other."""

    splitname: str | None = None
    """Of tar files: ``"last"`` if the key of a member ends at the last dot of its name; ``"first"``, or None,
    for the first dot."""

    concatenated: bool = False
    """Of tar files: True if a file may be several archives, one behind the other."""

    dtype: Any = None
    """Of tokens: the type of a token, as ``"uint16"``; None where files say it."""

    eos: int | None = None
    """Of tokens: the last token of each document; None where files say where documents end."""

    bos: int | None = None
    """Of tokens: the first token of each document; None where files say where documents end."""

    delimiter: str | None = None
    """Of CSV: the character between fields; None for that of the format."""

    quote: str | None = None
    """Of CSV: the character that quotes fields, empty if none does; None for that of the format."""

    encoding: str | None = None
    """Of CSV: the encoding of the text; None for that of the format, which is UTF-8."""

    strict: bool = False
    """Of tables: whether all files must have the same columns of the same types."""

    holder: Any = None
    """Of Kaldi's tables: the holder of the objects, as the user named it; None to find it from the files."""

    pipes: Pipes = "refuse"
    """Of Kaldi's scripts: ``"allow"`` runs the commands of their lines."""

    allow: tuple[str, ...] = ()
    """Of lists of files: the folders and files, besides the folder of the list, that they may name."""

    permissive: bool = False
    """Of Kaldi's tables: True if entries that cannot be read become holes, with a warning."""

    most_open_files: int = MOST_OPEN_FILES
    """Of Kaldi's scripts: the most files with objects that are open at once."""

    def __post_init__(self) -> None:
        """Check what all formats share.

        Raises:
            WrongType: ``errors`` is no function.
        """
        if self.errors is not None and not callable(self.errors):
            message = f"errors must be a function of a CorruptRecord (got {self.errors!r})"
            raise WrongType(message)

    @property
    def has_token_options(self) -> bool:
        """True if there is an option that only tokens have."""
        return any(option is not None for option in (self.dtype, self.eos, self.bos))

    def refuse_those_of_tokens(self, name: str) -> None:
        """Refuse the options that only tokens have.

        Args:
            name: the name of the format.

        Raises:
            InvalidArgument: there is such an option.
        """
        self._refuse(("dtype", "eos", "bos"), name, kind="files of tokens")

    def refuse_those_of_archives(self, name: str) -> None:
        """Refuse the options that only archives of samples have.

        Args:
            name: the name of the format.

        Raises:
            InvalidArgument: there is such an option.
        """
        self._refuse(("missing", "group", "splitname", "concatenated"), name, kind="tar files")

    def refuse_those_of_csv(self, name: str) -> None:
        """Refuse the options that only CSV has.

        Args:
            name: the name of the format.

        Raises:
            InvalidArgument: there is such an option.
        """
        self._refuse(("delimiter", "quote", "encoding"), name, kind="CSV", way=", or say format='csv'")

    def _refuse(self, options: Sequence[str], name: str, *, kind: str, way: str = "") -> None:
        for option in options:
            given = getattr(self, option)
            if given is not None and given is not False:
                message = f"{option}= is for {kind}, and this is {name} (got {given!r}): drop it{way}"
                raise InvalidArgument(message)
