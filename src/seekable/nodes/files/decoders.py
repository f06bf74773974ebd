"""The contract of a decoder, which makes a record from its bytes; and decoders for payloads, by name.

A decoder is given the range of the record as the index has it: of a line also its line end, and blank lines
that may follow. Decoders of lines are in ``formats/lines``, those of Kaldi's entries in ``formats/kaldi``.

A payload is the bytes of one member or object, such as an audio file in a tar file, a Shar or an archive. Its
decoders are found by name, so that no format imports the subject of another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from seekable._lazy import imported
from seekable._typing import Value
from seekable.errors import CorruptRecord, IndexStale, InvalidArgument
from seekable.formats.table import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from seekable.formats.contract import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.columns.decode_column import DecodeTable
    from seekable.nodes.files.leaf import FilesLeaf, OwnKeys
    from seekable.nodes.saving import Loading, Saving

__all__ = [
    "AskedDecoder",
    "ColumnsDecoder",
    "Decode",
    "Decoder",
    "NamedPayload",
    "PayloadDecoder",
    "kind_of_payload",
    "payload_decoder",
    "payload_kinds",
]

Decode = str | Callable[[bytes], Any] | Mapping[str, Any]
"""A decoder as users name it: "json", "text", "bytes", or a function of the bytes of a line; of samples of
tar files and of Shar, also a dict by field."""


class Decoder(ABC):
    """Decodes the bytes of a record. Small, picklable if its function is, and safe from threads."""

    __slots__ = ()

    name: str
    """The name of the decoder, or the qualified name of its function."""

    fast: Callable[[memoryview], Any]
    """Returns the record whose range is given, or raises."""

    recover: Callable[[bytes], Any] | None
    """Returns a record that `fast` raised for, or raises what is wrong with it; None if there
    is no second way."""

    function: Callable[[bytes], Any] | None
    """The function of the user, if it decodes the records; None otherwise."""

    @property
    def many(self) -> Callable[[Sequence[memoryview]], list[Any]] | None:
        """Returns the records of many ranges faster than one by one; None, by default, for no such way.

        It raises any error where a record is not as most are: then they are decoded one by one.
        """
        return None

    @property
    def headed(self) -> bool:
        """True if the head of a file decides how its records are read: then see `for_head`."""
        return False

    @property
    def needs_head_only(self) -> bool:
        """True if records are decoded from their first bytes, so that the rest need not be fetched."""
        return False

    @property
    def reads_objects(self) -> bool:
        """True if records are made of objects that the bytes may name, and not of the bytes alone."""
        return False

    @property
    def names_objects(self) -> bool:
        """True if records are made of objects that their bytes name."""
        return False

    @abstractmethod
    def span(self, view: memoryview) -> int:
        """Return the length of the record at the start of its range, without its line end."""

    @abstractmethod
    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return what the decoder is made of, as a pipeline file has it."""

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> Decoder:
        """Return the decoder that `as_json` wrote, which is one of the format of the node.

        Raises:
            CorruptState: it wrote no such thing.
        """
        said = given.checked(value, dict[str, Any], where)
        made: Decoder = format_named(given.format(where)).decoder_from_json(said, given, where)
        return made

    def described(self, describe: Callable[..., dict[str, Any]], version: str | int | None) -> Any:
        """Return what decides the records, JSON-safe.

        Args:
            describe: returns the description of a function with a version.
            version: what the user says in the place of code.
        """
        return self.name if self.function is None else describe(self.function, version)

    def described_besides(self) -> dict[str, Any]:
        """Return what else decides the records, as further fields of a description."""
        return {}

    def finder(self, form: str) -> Finder:
        """Return the scanner of files of the named format whose records this one decodes."""
        return format_named(form).finder

    def for_head(self, head: bytes) -> Decoder:
        """Return the decoder of the records of one file, if this one is `headed`.

        Args:
            head: the bytes before the file's first record.
        """
        return self

    def fetch_named(self, views: Iterable[memoryview]) -> list[object]:
        """Fetch the objects of stores that records name; return what keeps their bytes in memory.

        Raises:
            Unreachable: a store does not answer.
        """
        return []

    def narrowed(self, columns: frozenset[str]) -> Decoder:
        """Return a decoder for a caller that uses only some columns of records; itself where it makes all."""
        return self

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of records, as of `Node.declared`; None if only records show them."""
        return None

    def beside(self) -> tuple[FileSet, ...]:
        """Return the other indexed files that records are made of."""
        return ()

    def close(self) -> None:  # noqa: B027 - most decoders have no files
        """Close the files that are open for records."""

    def own_keys(self, source: FilesLeaf) -> OwnKeys | None:
        """Return the keys that the records of a source have without being decoded; None if they have none."""
        return None

    def of_key(self, field: str) -> Decoder | None:
        """Return a decoder to objects whose ``key`` is one field alone; None if it would be no faster."""
        return None

    def recovered(
        self, errors: OnError | None, view: memoryview, error: Exception, *, path: str, row: int, offset: int
    ) -> Any:
        """Decode a record that ``fast`` raised for, or return the result of ``errors`` instead.

        Raises:
            CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
            IndexStale: another file that the record is made of was changed.
        """
        if isinstance(error, IndexStale):
            raise error
        record = bytes(view[: self.span(view)])
        try:
            if self.recover is not None:
                return self.recover(record)
        except ValueError as recovering:
            error = recovering
        corrupt = CorruptRecord(path, row, offset=offset, length=len(record), preview=record, cause=error)
        if errors is None:
            raise corrupt from error
        corrupt.__cause__ = error
        return errors(corrupt)


class ColumnsDecoder(Decoder):
    """Decodes records as columns of one schema, many at once; a single record is a row of these columns.

    What is wrong with a record is said by ``fast`` and ``recover`` alone: whoever calls the other methods
    decodes the records one by one where they raise an error, whichever it is.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def form(self) -> DecodeTable:
        """The form of records: numpy's values, or record batches."""

    @abstractmethod
    def for_head(self, head: bytes) -> ColumnsDecoder:
        """Return the decoder of the records of one file, if this one is `headed`."""

    @abstractmethod
    def in_form(self, form: DecodeTable) -> ColumnsDecoder:
        """Return the decoder of the same columns to records of another form."""

    @abstractmethod
    def table(self, views: Sequence[memoryview], may_be_torn: Sequence[int]) -> pa.RecordBatch:
        """Return many records as one record batch.

        Args:
            views: the ranges of the records, all of one file, or of files with the same head.
            may_be_torn: the indices of those that are the last of their files.

        Raises:
            Exception: a record is no row of the columns, or may be none.
        """

    def arrays(self, views: Sequence[memoryview]) -> dict[str, Any] | None:
        """Return many records as a dict of arrays and lists, without a record batch; None for no such way.

        Args:
            views: the ranges of the records.

        Raises:
            Exception: as ``table``.
        """
        return None


_HOMES = MappingProxyType({"audio": "seekable.formats.audio.audio_decoder:audio"})
"""What makes the decoders of each kind, ``module:name``; it is imported when one is used."""

AskedDecoder = str | Callable[[bytes], Any] | None
"""A decoder as users name it for one field: a name, a function of bytes, or None for the default."""


class PayloadDecoder(Protocol):
    """Decodes payloads. A small value, picklable, and safe from threads."""

    kind: ClassVar[str]
    """The name by which formats find it."""

    ranged: ClassVar[bool]
    """True if a payload may be a slice of a file, of which the decoder reads what it needs."""

    @property
    def name(self) -> str:
        """The name with its arguments, which stands for the decoder in fingerprints."""

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the kind and the arguments of `payload_decoder`, for pipeline files."""

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> PayloadDecoder:
        """Return the decoder that `as_json` wrote.

        Raises:
            CorruptState: it wrote no such thing.
        """

    def __call__(self, payload: Any, **promised: Any) -> Any:
        """Return the value of a payload.

        Args:
            payload: its bytes, a binary file, or an object with ``size`` and ``range(start, stop)``.
            promised: what a manifest says of it.

        Raises:
            ValueError: it is damaged, or of another kind.
        """


@final
class NamedPayload(Value, frozen=True):
    """The decoder of a kind without arguments, which is imported when it decodes."""

    kind: str

    def __call__(self, payload: Any, **promised: Any) -> Any:
        """Return the value of a payload; see `PayloadDecoder`."""
        return payload_decoder(self.kind)(payload, **promised)


def payload_kinds() -> tuple[str, ...]:
    """Return the names of all kinds of payloads that are decoded by name."""
    return tuple(_HOMES)


def kind_of_payload(decoder: object) -> str:
    """Return the kind of payloads that a decoder is for; empty for a function of the user and for names.

    Example:
        >>> kind_of_payload(NamedPayload("audio")), kind_of_payload(bytes)
        ('audio', '')
    """
    kind = getattr(decoder, "kind", "") if callable(decoder) else ""
    return kind if kind in _HOMES else ""


@lru_cache(maxsize=64, typed=True)
def payload_decoder(kind: str, **arguments: Any) -> PayloadDecoder:
    """Return the decoder of a kind of payloads.

    Args:
        kind: one of `payload_kinds`.
        arguments: what the decoder takes.

    Raises:
        InvalidArgument: there is no such kind, or an argument breaks a rule.
        TypeError: the decoder takes no such argument.

    Example:
        >>> payload_decoder("audio", offset=1.5).name
        'audio(offset=1.5)'
    """
    if kind not in _HOMES:
        message = f"the kind of a payload must be one of {', '.join(map(repr, _HOMES))} (got {kind!r})"
        raise InvalidArgument(message)
    made: PayloadDecoder = imported(_HOMES[kind])(**arguments)
    return made
