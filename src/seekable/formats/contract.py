"""The contract of a format: a value with its options, which recognises, indexes and reads its files.

A format whose records are lines overrides little: ``card``, ``finder`` and ``leaf``; all else has a default.
Nodes are made by formats and are no business of this module, so they have no type here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import msgspec

from seekable._arguments import checked_version, checked_word
from seekable._lazy import imported
from seekable._typing import Value
from seekable.errors import CorruptRecord, CorruptState, InvalidArgument, WrongType
from seekable.storage.compression import COMPRESSED, compression_of
from seekable.storage.listing import FoundFiles  # noqa: TC001 - the signature of Claim has it
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    import os

    from seekable.formats.file_format import FileFormat
    from seekable.formats.look import Folder, Look, OtherTool
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.index.verification import Verification
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import Asked

__all__ = [
    "BeforeIndex",
    "Card",
    "Checking",
    "Claim",
    "Format",
    "Hive",
    "OnError",
    "Opening",
    "Pipes",
    "Reading",
    "check_partitions",
]

Hive = Literal["hive"]
"""Folders ``year=2024/lang=de/`` are columns."""

Pipes = Literal["refuse", "specifier", "allow"]
"""``"allow"`` runs commands, and ``"refuse"`` raises `PipeRefused` for them. ``"specifier"`` runs a command
of the specifier or extended filename that the caller passes, and refuses those that a script contains."""

OnError = Callable[[CorruptRecord], Any]
"""Returns what to deliver instead of a corrupt record: another record, or ``sk.HOLE``."""


class Reading(Value, frozen=True, kw_only=True):
    """The arguments of ``sk.open`` that mean the same for every format."""

    shown: str
    """The source as the user named it, for ``repr``."""

    decode: Any = None
    """The decoding; None for that of the format."""

    columns: Sequence[str] | None = None
    """The columns to read, in the order of records; None for all."""

    errors: OnError | None = None
    """Replaces corrupt records; None raises the error."""

    version: str | int | None = None
    """Stands for the code of functions in the fingerprint."""

    allow: tuple[str, ...] = ()
    """The folders and files, besides the folder of a list, that lists of files may name."""

    most_open_files: int = MOST_OPEN_FILES
    """The most files that are open at once."""

    def __post_init__(self) -> None:
        """Check what needs no format.

        Raises:
            WrongType: ``errors`` is not a function, or ``version`` neither a text nor an integer.
        """
        checked_version(self.version)
        if self.errors is not None and not callable(self.errors):
            message = f"errors must be a function of a CorruptRecord (got {self.errors!r})"
            raise WrongType(message)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a format, or another subject, before its code is loaded; literals alone."""

    name: str
    """The name that users write, ``format="jsonl"``, and the first word of its names in the index."""

    home: str
    """Where its code is, ``module:class`` of a `Format`; of another subject a module."""

    suffixes: tuple[str, ...] = ()
    """The ends of the names of its files, in lower case, in folders too."""

    named_suffixes: tuple[str, ...] = ()
    """The ends of names, in lower case, that decide the format of a file that the user names. In folders they
    decide nothing, because files of other data may have them too."""

    lists: tuple[str, ...] = ()
    """The ends of the names of files that name the files of a dataset."""

    specs: tuple[str, ...] = ()
    """The words before the colon of specs: ``energon:DIR:SPLIT``."""

    fields: tuple[str, ...] = ()
    """Keys of which a dict of sources has one; ``"*"`` for any, which is asked last."""

    marks: tuple[str, ...] = ()
    """Names in a folder at which the format is asked about it; a ``*`` may stand at one end."""

    compressible: bool = False
    """True if files of it may be compressed as a whole, and end with ``.gz`` or ``.zst``."""

    variants: bool = False
    """True if its name in the index may have options, as ``tar-key``."""

    by_name: bool = True
    """True if ``format=`` takes its name for files of any name."""

    key: str = ""
    """The field that is the key of records without being asked for."""

    kinds: tuple[tuple[str, str], ...] = ()
    """The kinds of nodes that it brings, each with its class, ``module:class``."""

    indexes: tuple[str, ...] = ()
    """What finds indexes of other tools over its files, ``module:function`` each, in order of trust; of Shar,
    over files of JSON lines that a pack names."""

    writer: str = ""
    """The function that makes what writes the format, ``module:function``; empty if none does."""

    @property
    def ends(self) -> tuple[str, ...]:
        """The ends that its file names have, compressed or not, in lower case."""
        kinds = [f".{kind}" for kind in COMPRESSED] if self.compressible else []
        return tuple(
            suffix + more
            for suffix in self.suffixes
            for more in ("", *(() if compression_of(suffix) else kinds))
        )


class BeforeIndex(Protocol):
    """Fetches what the index of files needs, before they are indexed."""

    def __call__(
        self,
        found: Sequence[FoundFiles],
        finder: Finder,
        *,
        index_dir: str | os.PathLike[str] | None,
        progress: ProgressHook | None,
    ) -> None:
        """Fetch it.

        Raises:
            AccessDenied, DataNotFound, Unreachable, IndexStale: bytes cannot be fetched.
        """


class Claim(Value, frozen=True, kw_only=True):
    """A source that a format has recognised."""

    format: Format
    """The format, with what the source says itself: a column, a dialect, a type of tokens."""

    found: tuple[FoundFiles, ...] = ()
    """Its files, in the order of their records."""

    together: bool = True
    """True if the files belong together, so that a sample of them is not a dataset."""

    columns: tuple[str, ...] | None = None
    """The only columns, if the source names them itself."""

    detail: Any = None
    """What else the format has found, for its own ``open`` and ``verified``."""

    before_index: BeforeIndex | None = None


class Opening(Protocol):
    """The part of ``sk.open`` that a format calls which opens a claim of its own."""

    reading: Reading
    key: Any
    """The argument ``key`` of the user: a field, a function of records, or None."""

    def records(self, claim: Claim) -> Any:
        """Index the claimed files, and return their source, with keys and with columns from folder names.

        Raises:
            SeekableError: as ``sk.open``.
        """

    def indexed(self, found: Sequence[FoundFiles], finder: Finder) -> FileSet:
        """Return indexed files. The progress of several calls is counted on."""

    def keyed(self, leaf: Any, key: Any) -> Any:
        """Return a source with the index of its keys; itself where ``key`` is None.

        Raises:
            BadKey: a record has no key.
        """

    def side(self, source: Asked, given: str | Format | None) -> Any:
        """Return the node of one of several sources that belong together, whose payloads stay bytes.

        Args:
            source: the source.
            given: its format; None to find it.
        """


class Checking(Protocol):
    """The part of ``sk.verify`` that a format calls which verifies a claim of its own."""

    def files(self, found: Sequence[FoundFiles], finder: Finder) -> Verification:
        """Return what is wrong with files and their index."""

    def records(self, claim: Claim) -> Verification:
        """Return what is wrong with the files of a claim, and with their records if those are asked for."""

    def decoded(self, verified: Verification, source: Callable[[Reading], Any]) -> Verification:
        """Return a verification with the records that cannot be decoded, if those are asked for.

        Args:
            verified: what is known of the files.
            source: returns the source of the records.
        """


class Format(ABC):
    """A format with its options: a frozen dataclass, small, picklable and without handles.

    The formats are ``Jsonl``, ``Text``, ``Csv``, ``Tables``, ``Tar``, ``Shar``, ``Kaldi`` and ``Tokens``.
    """

    __slots__ = ()

    card: ClassVar[Card]
    """What is known of the format before its code is loaded; of several names, that of the first."""

    raw: ClassVar[Any] = "bytes"
    """The ``decode=`` that makes nothing of a record."""

    # Recognition.

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the files of a source that is this format by more than the suffix of its name; else None.

        Raises:
            UnsupportedFormat: it is, but cannot be read; the message says what to do.
        """
        return None

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return what a folder is that another tool wrote, and how it is opened as a whole; None for others.

        Such a folder is refused as a plain one, also as a part of another folder.
        """
        return None

    @classmethod
    def never_data(cls, folder: str, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return those of the files in a folder that belong to an index, and are never data.

        Args:
            folder: the last name of the folder.
            names: the names of all files in it.
        """
        return frozenset()

    # The index.

    @property
    def name(self) -> str:
        """The name in the index and in descriptions, with all options that decide where records start."""
        return self.card.name

    def with_name(self, name: str) -> Self:
        """Return the format with what its name in the index says besides; options of the value come first.

        Args:
            name: the name of a card of the format, perhaps with options.

        Raises:
            InvalidArgument: the name has an unknown option, or an option of the value is wrong.
            WrongType: an option of the value is of the wrong type.
        """
        if name != self.card.name:
            message = f"format {name!r} is not known; there is {self.card.name!r}"
            raise InvalidArgument(message)
        return self

    def settled(self, found: Sequence[FoundFiles]) -> Self:
        """Return the format with what the first records of its files decide.

        Raises:
            InvalidArgument: they can be of several kinds.
        """
        return self

    @property
    @abstractmethod
    def finder(self) -> Finder:
        """The Scanner, TableIndexer or Surveyor that finds the records in its files; its name is ``name``."""

    # Reading.

    def check(self, reading: Reading) -> None:  # noqa: B027 - a format without options of reading has none
        """Check the arguments of reading, before a file is indexed.

        Raises:
            InvalidArgument: one is not known, or is for other formats.
            WrongType: one is of the wrong type.
        """

    @abstractmethod
    def leaf(self, files: FileSet, reading: Reading) -> Any:
        """Return the source of indexed files, a ``FilesLeaf``.

        Raises:
            InvalidArgument: the files lack a column.
            UnsupportedFormat: the files do not go together.
        """

    def key(self, asked: Any, reading: Reading) -> Any:
        """Return what the key of a record is; None for no keys.

        Args:
            asked: a field or a function of records that the user named, or None.
            reading: the arguments of reading.

        Raises:
            InvalidArgument: the keys of the format cannot be chosen.
        """
        return asked

    def open(self, claim: Claim, opening: Opening) -> Any:
        """Return the node of a claim."""
        return opening.records(claim)

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> Any:
        """Return the source of a described one whose files were found, for the places of its records.

        Args:
            files: the files, as their index has them.
            described: the description of the source.
            shown: the data as the user names it.
        """
        return self.leaf(files, Reading(shown=shown, decode=self.raw))

    def decoder_from_json(self, said: Mapping[str, Any], given: Any, where: str) -> Any:
        """Return the decoder that a pipeline file has; see ``Decoder.from_json``.

        Raises:
            CorruptState: the format has no such decoder.
        """
        decode = given.named(said.get("decode"), f"{where}.decode")
        try:
            return self.leaf(given.arguments["files"], Reading(shown="", decode=decode)).decoder
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None

    # Writing.

    @classmethod
    def writer(cls, **options: Any) -> FileFormat:
        """Return what writes the format with some options, for ``ds.write(folder, format)``.

        Args:
            options: those that ``ds.write_parquet`` and its neighbours have for the format alone.

        Raises:
            InvalidArgument: the format is not written, or an option breaks a rule.
            MissingDependency: the code that writes it is not installed.

        Example:
            >>> import seekable as sk
            >>> sk.formats.Jsonl.writer(compression="gz").suffix
            '.jsonl.gz'
        """
        if not cls.card.writer:
            message = f"{cls.card.name} is read and not written: give ds.write another format"
            raise InvalidArgument(message)
        made: FileFormat = imported(cls.card.writer)(**options)
        return made

    # Looking.

    def verified(self, claim: Claim, checking: Checking) -> Verification:
        """Return what is wrong with the files of a claim."""
        return checking.records(claim)


def check_partitions(partitions: object) -> None:
    """Check the option of all formats whose records are dicts.

    Raises:
        InvalidArgument: it is another word than ``"hive"``.
    """
    checked_word("partitions", partitions, ("hive",))
