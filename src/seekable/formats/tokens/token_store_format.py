"""Token stores as a format: each part is a file of tokens and the files that belong to it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn, final

import msgspec
import numpy as np
import xxhash

from seekable._spans import is_spans, type_text
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.file_format import USUAL_ROWS, TracedRecords, UnwritableRecord
from seekable.formats.tokens.families.indexed_dataset import MOST_INDEXED, index_bytes
from seekable.formats.tokens.token_store import (
    EDGE_BYTES,
    SOURCE_RUN,
    PartFacts,
    decode_facts,
    edges_digest,
    encode_facts,
)
from seekable.formats.tokens.tokenizing.encoding import LOSS_MASK, EncodedDocuments
from seekable.formats.tokens.tokenizing.engine import UnfitDocument, default_dtype, token_dtype
from seekable.nodes.graph import HOLE
from seekable.writing.encoded_pieces import EncodedFormat, EncodedRecords
from seekable.writing.target import content_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.file_format import Ending, FileFormat, Preview
    from seekable.formats.tokens.tokenizing.encoding import Taken, Tokenizing
    from seekable.formats.tokens.tokenizing.parts import DocumentSpans

__all__ = ["AskedTypes", "StoreLayout", "TokenStoreFormat"]


def _part_suffixes(aligned: Iterable[str], *, idx: bool) -> tuple[str, ...]:
    """Return the suffixes of a part's files without their dots, the tokens first.

    Args:
        aligned: the names of the arrays beside the tokens.
        idx: True for Megatron's index.

    Example:
        >>> _part_suffixes(["loss_mask"], idx=True)
        ('bin', 'lengths', 'sources', 'loss_mask', 'idx', 'facts')
    """
    return ("bin", "lengths", "sources", *aligned, *(["idx"] if idx else []), "facts")


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The arrays of a token store, and their types."""

    dtype: np.dtype[Any]
    """The type of a token, little-endian."""

    aligned: tuple[tuple[str, np.dtype[Any]], ...]
    """The name of each array beside the tokens, and the type of an element, little-endian; spans are last."""

    idx: bool
    """True for Megatron's index beside the tokens of each part."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of a part's files without their dots, the tokens first."""
        return _part_suffixes([name for name, _ in self.aligned], idx=self.idx)


@final
class _TokenPart:
    """Writes the files of one part; the caller syncs and closes them."""

    def __init__(self, layout: StoreLayout, files: Sequence[BinaryIO]) -> None:
        """Begin the files.

        Args:
            layout: the arrays and their types.
            files: the files in the order of ``layout.suffixes``.
        """
        *sinks, self._facts = files
        self._sinks = dict(zip(layout.suffixes, map(_HashedFile, sinks), strict=False))
        self._layout = layout
        self._runs = _Runs()
        self._lengths = array("q")
        self._counts = {name: array("Q") for name, dtype in layout.aligned if is_spans(dtype)}
        self._lost = dict.fromkeys(self._counts, 0)
        self._documents = self._tokens = self._empty = self._trained = 0
        self._largest = -1

    def add(
        self, documents: EncodedDocuments, files: Int64s | None = None, rows: Int64s | None = None
    ) -> None:
        """Write further documents.

        Args:
            documents: the documents.
            files: the index of the file that each comes from, -1 for none; None if all come from none.
            rows: the row of each in that file.
        """
        count = len(documents.lengths)
        self._sinks["bin"].write(documents.ids.astype(self._layout.dtype, copy=False))
        for name, dtype in self._layout.aligned:
            if name in self._counts:
                self._add_spans(name, documents.spans[name])
                continue
            values = documents.aligned[name].astype(dtype, copy=False)
            self._sinks[name].write(values)
            if name == LOSS_MASK:
                self._trained += int(np.count_nonzero(values))
        self._sinks["lengths"].write(documents.lengths.astype("<u4"))
        if files is None or rows is None:
            files, rows = np.full(count, -1), np.zeros(count, dtype=np.int64)
        self._runs.add(files, rows)
        if self._layout.idx:
            self._lengths.frombytes(documents.lengths.tobytes())
        self._tokens += len(documents.ids)
        self._empty += documents.empty
        self._documents += count
        if len(documents.ids):
            self._largest = max(self._largest, int(documents.ids.max()))

    def _add_spans(self, name: str, spans: DocumentSpans) -> None:
        self._sinks[name].write(spans.values)
        self._counts[name].frombytes(spans.counts.astype(np.uint64).tobytes())
        self._lost[name] += spans.lost

    def end(self) -> None:
        """Write what describes all documents of the part."""
        spans: dict[str, tuple[int, int]] = {}
        for name, counts in self._counts.items():
            ends = np.zeros(len(counts) + 1, "<u8")
            np.cumsum(np.frombuffer(counts, np.uint64), out=ends[1:])
            self._sinks[name].write(ends)
            spans[name] = int(ends[-1]), self._lost[name]
        self._sinks["sources"].write(self._runs.end())
        if self._layout.idx:
            lengths = np.frombuffer(self._lengths, dtype=np.int64)
            self._sinks["idx"].write(np.frombuffer(index_bytes(lengths, self._layout.dtype), np.uint8))
        contents = ("bin", *(name for name, _ in self._layout.aligned))
        facts = PartFacts(
            documents=self._documents,
            tokens=self._tokens,
            empty=self._empty,
            largest=self._largest,
            digests={suffix: sink.digest.hexdigest() for suffix, sink in self._sinks.items()},
            edges={suffix: self._sinks[suffix].edges for suffix in contents},
            dtype=self._layout.dtype.str,
            aligned={name: type_text(dtype) for name, dtype in self._layout.aligned},
            spans=spans,
            trained=self._trained if LOSS_MASK in self._sinks else None,
        )
        self._facts.write(encode_facts(facts))


class _HashedFile:
    """A file, and the digest of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = xxhash.xxh3_128()
        self._head = self._tail = b""

    def write(self, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values).view(np.uint8).data
        self._file.write(data)
        self.digest.update(data)
        missing = EDGE_BYTES - len(self._head)
        if missing:
            self._head += data[:missing]
            data = data[missing:]
        if len(data):
            self._tail = (self._tail + data[-EDGE_BYTES:])[-EDGE_BYTES:]

    @property
    def edges(self) -> str:
        """The digest of the ends of what was written."""
        return edges_digest(self._head, self._tail)


class _Runs:
    """Joins documents that come from consecutive rows of one file to runs."""

    def __init__(self) -> None:
        self._made: list[NDArray[Any]] = []
        self._next: tuple[int, int] | None = None

    def add(self, files: Int64s, rows: Int64s) -> None:
        """Add documents; those of file -1 come from no row."""
        if not files.size:
            return
        breaks = (files[1:] != files[:-1]) | ((rows[1:] != rows[:-1] + 1) & (files[1:] >= 0))
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        runs = np.zeros(starts.size, dtype=SOURCE_RUN)
        runs["file"] = files[starts].astype(np.uint32)
        runs["row"] = rows[starts]
        runs["count"] = np.diff(starts, append=files.size)
        first, file = int(rows[0]), int(files[0])
        if self._next == (file, first if file >= 0 else 0):
            self._made[-1]["count"][-1] += runs["count"][0]
            runs = runs[1:]
        if runs.size:
            self._made.append(runs)
        last = int(files[-1])
        self._next = last, int(rows[-1]) + 1 if last >= 0 else 0

    def end(self) -> NDArray[Any]:
        """Return all runs: an array of `SOURCE_RUN`."""
        return np.concatenate([np.zeros(0, dtype=SOURCE_RUN), *self._made])


@dataclass(frozen=True, slots=True)
class AskedTypes:
    """The dtypes that a user chose, little-endian; None where the records decide."""

    dtype: np.dtype[Any] | None
    """That of the tokens."""

    aligned: tuple[tuple[str, np.dtype[Any] | None], ...] = ()
    """That of each array beside the tokens, in their order."""

    @property
    def options(self) -> dict[str, Any]:
        """The dtypes as options, JSON-safe."""
        aligned = [name if dtype is None else f"{name}: {dtype.name}" for name, dtype in self.aligned]
        return {"dtype": None if self.dtype is None else self.dtype.name, "align": aligned}


def _settled_types(
    tokenizing: Tokenizing, asked: AskedTypes, preview: Preview, *, megatron: bool
) -> list[np.dtype[Any]]:
    """Return the dtype of the tokens, then those of the arrays beside them, little-endian.

    Args:
        tokenizing: what makes tokens of records.
        asked: the dtypes that the user chose.
        preview: some of the records; they are read only if something depends on them.
        megatron: True for the dtypes that Megatron chooses.

    Raises:
        WrongType: a record is no document, or an array beside its tokens is none of numbers.
    """
    has_ids = tokenizing.engine.name == "ids" and tokenizing.engine.vocabulary is None
    depends = (asked.dtype is None and has_ids) or any(dtype is None for _, dtype in asked.aligned)
    taken = [each for each, _ in _taken(tokenizing, preview)] if depends else []
    dtype = asked.dtype
    if dtype is None and has_ids:
        lists = [ids for each in taken for ids in each.texts]
        dtype = np.dtype(_ids_dtype(lists, preview, megatron=megatron))
    elif dtype is None:
        dtype = token_dtype(None, tokenizing.engine, megatron=megatron)
    others = []
    for name, chosen in asked.aligned:
        values = () if chosen is not None else (value for each in taken for value in each.values[name])
        others.append(_values_dtype(name, values) if chosen is None else chosen)
    return [dtype, *others]


def _compared_engines(tokenizing: Tokenizing, preview: Preview) -> dict[str, Any] | None:
    """Return the result of the comparison of an engine with another one; None if none is required.

    Raises:
        WrongType: a record is no document.
        InvalidArgument: the engines do not agree.
    """
    if tokenizing.engine.compared([]) is None:
        return None
    texts: list[str] = []
    names: list[Callable[[], str]] = []
    for taken, named in _taken(tokenizing, preview):
        texts += taken.texts
        names += [partial(named, taken.document_of(text)) for text in range(len(taken.texts))]
    try:
        return tokenizing.engine.compared(texts)
    except UnfitDocument as error:
        message = f"{names[error.index]()} cannot be written as tokens: {error.why}"
        raise WrongType(message) from error


def _taken(tokenizing: Tokenizing, preview: Preview) -> Iterator[tuple[Taken, Callable[[int], str]]]:
    """Yield the texts of some documents, and the function that names one of them by its place."""
    for records, named in preview.read():
        places = [place for place, record in enumerate(records) if record is not HOLE]

        def name(document: int, named: Callable[[int], str] = named, places: Sequence[int] = places) -> str:
            return named(places[document])

        try:
            yield tokenizing.documents.take([records[place] for place in places]), name
        except UnfitDocument as error:
            message = f"{name(error.index)} cannot be written as tokens: {error.why}"
            raise WrongType(message) from error


def _ids_dtype(lists: Sequence[Any], preview: Preview, *, megatron: bool) -> str:
    """Return the dtype of ids without a tokenizer: uint16 if that is certain to hold all of them."""
    wide = default_dtype(None, megatron=megatron)
    if not preview.is_all:
        small = (np.uint8, np.uint16)
        narrow = bool(lists) and all(isinstance(ids, np.ndarray) and ids.dtype in small for ids in lists)
        return "<u2" if narrow and not megatron else wide
    try:
        largest = max((int(np.max(ids)) for ids in lists if len(ids)), default=0)
    except (TypeError, ValueError):  # The writer names the record that is no list of ids.
        return wide
    return default_dtype(largest + 1, megatron=megatron)


def _values_dtype(name: str, values: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype of an array beside the tokens, by the arrays or lists in records.

    Raises:
        WrongType: it has something else than numbers.
    """
    found: set[np.dtype[Any]] = set()
    for value in values:
        array = np.asarray(value)
        if array.size and not isinstance(value, np.ndarray):
            found.add(_list_dtype(array))
        elif array.size or isinstance(value, np.ndarray):
            found.add(array.dtype)
    dtype = np.result_type(*found) if found else np.dtype(np.int32)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:  # noqa: PLR2004 - 64 bits
        message = f"the array {name!r} has values of type {dtype}: one number a token is needed"
        raise WrongType(message)
    return dtype.newbyteorder("<")


def _list_dtype(array: np.ndarray[Any, Any]) -> np.dtype[Any]:
    """Return a dtype for the numbers of a list: uint8 for 0 and 1, else 32 bits if that is enough."""
    if array.dtype.kind == "f":
        return np.dtype(np.float32)
    found: np.dtype[Any] = array.dtype
    if found.kind != "i":
        return found
    low, high = int(array.min()), int(array.max())
    if low >= 0 and high <= 1:
        return np.dtype(np.uint8)
    return np.dtype(np.int32 if max(-low - 1, high) < 1 << 31 else np.int64)


_PART = "part-%06d."

_MOST_TOKENS = (1 << 32) - 1
"""The most tokens of a document: ``.lengths`` has their number in 32 bits."""

_SAMPLED = 8
"""One in so many records is measured: the batches of the engine are cut exactly, later."""

_AT_ONCE = 512
"""The most records that are encoded together, for each million characters that the engine takes together."""


_SIZED = frozenset({str, bytes, list, np.ndarray})


class _Settled(msgspec.Struct, frozen=True):
    """The types and the comparison of the first call, which the manifest keeps for later ones."""

    types: list[str]
    """The dtype of the tokens, then those of the arrays beside them."""

    compared: dict[str, Any] | None


class _Document(msgspec.Struct, frozen=True, array_like=True):
    """A document in a piece of a stream."""

    ids: bytes

    aligned: list[bytes]


@dataclass(frozen=True, slots=True)
class TokenStoreFormat(EncodedFormat):
    """The format of token stores."""

    tokenizing: Tokenizing
    """Makes tokens of records; its dtypes are those of the files once they are settled."""

    asked: AskedTypes
    """The dtypes that the user chose."""

    idx: bool
    """True for Megatron's index beside the tokens of each part."""

    given: tuple[tuple[str, Any], ...]
    """The further options that decide the tokens, as the user gave them, JSON-safe."""

    last_step: Ending
    """What is written when all parts are whole."""

    compared: dict[str, Any] | None = None
    """The result of the comparison of the engine with another one; None if none was required."""

    rows: int = USUAL_ROWS
    """The records of a part, where the call that writes says nothing else."""

    name: ClassVar[str] = "tokens"
    record: ClassVar[type[msgspec.Struct]] = _Document
    takes_origins: ClassVar[bool] = True

    @property
    def rows_per_file(self) -> int:
        """The records of a part."""
        return self.rows

    @property
    def layout(self) -> StoreLayout:
        """The arrays of the store and their types."""
        return StoreLayout(self.tokenizing.dtype, self.tokenizing.arrays, self.idx)

    @property
    def way_out(self) -> str:
        """The advice for a record that is no document."""
        return "make it fit first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix of the files of tokens: ``.bin``."""
        return ".bin"

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns that name a part's files, the tokens first."""
        return tuple(_PART + suffix for suffix in self.layout.suffixes)

    @property
    def options(self) -> dict[str, Any]:
        """The tokenizer, the ids of ends, the dtypes that the user chose, and the further options."""
        engine = self.tokenizing.engine
        return {
            "tokenizer": engine.digest,
            "engine": engine.name,
            "eos": self.tokenizing.eos,
            "bos": self.tokenizing.bos,
            **self.asked.options,
            "idx": self.idx,
            **dict(self.given),
        }

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """The functions of the user that make the tokens."""
        return self.tokenizing.functions

    @property
    def ending(self) -> Ending:
        """The files written when all parts are whole: ``tokens.json``, or samples in place of parts."""
        return self.last_step

    def of_one_file(self, name: str) -> NoReturn:
        """Raise an error, as a token store is no file."""
        message = (
            f"a token store has several files: name a folder, without the suffix of a file (got {name!r})"
        )
        raise InvalidArgument(message)

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format with the dtypes of all arrays: those of the files there, or as some records are.

        Engines that must agree with another one are compared with it here.

        Raises:
            WrongType: a record is no document.
            InvalidArgument: the engines do not agree.
        """
        if kept is None:
            types = _settled_types(self.tokenizing, self.asked, preview, megatron=self.idx)
            compared = _compared_engines(self.tokenizing, preview)
            kept = msgspec.json.encode(_Settled([each.str for each in types], compared)).decode()
        found = msgspec.json.decode(kept, type=_Settled)
        dtype, *others = map(np.dtype, found.types)
        aligned = tuple(
            replace(array, dtype=each)  # type: ignore[type-var]  # every array that can be made is a dataclass
            for array, each in zip(self.tokenizing.aligned, others, strict=True)
        )
        tokenizing = replace(self.tokenizing, dtype=dtype, aligned=aligned)
        return replace(self, tokenizing=tokenizing, compared=found.compared), kept

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the documents of one part, and what belongs to them beside."""
        part = _TokenPart(self.layout, [file, *beside])
        for chunk in _gathered(chunks, self.tokenizing.engine.together):
            if isinstance(chunk, TracedRecords):
                at = 0
                for some in self._encoded(chunk.records):
                    until = at + len(some.lengths)
                    part.add(some, chunk.files[at:until], chunk.rows[at:until])
                    at = until
            elif isinstance(chunk, EncodedRecords):
                part.add(self._joined(chunk.records))
            else:
                for some in self._encoded(chunk):
                    part.add(some)
        part.end()

    def encoded(self, chunks: Iterator[Any]) -> Iterator[_Document]:
        """Yield the documents of one lane."""
        for records in _gathered(chunks, self.tokenizing.engine.together):
            for some in self._encoded(records):
                yield from self._split(some)

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return how many documents a part has; None if one of its files is not as it was written."""
        *others, facts_path = beside
        try:
            with open(facts_path, "rb") as file:
                facts = decode_facts(file.read())
        except ValueError:
            return None
        paths = zip(self.layout.suffixes, (path, *others), strict=False)
        is_whole = all(content_digest(each) == facts.digests.get(suffix) for suffix, each in paths)
        return facts.documents if is_whole else None

    def _encoded(self, records: Sequence[Any]) -> Iterator[EncodedDocuments]:
        """Yield the documents of some records.

        Raises:
            UnwritableRecord: a record is no document, or has too many tokens.
        """
        done, most = 0, MOST_INDEXED if self.idx else _MOST_TOKENS
        try:
            for some in self.tokenizing.encoded(records):
                _check_lengths(some.lengths, most, done)
                yield some
                done += len(some.lengths)
        except UnfitDocument as error:
            raise UnwritableRecord(len(records) - error.index, error.why) from error.__cause__

    def _split(self, documents: EncodedDocuments) -> Iterator[_Document]:
        ends = np.cumsum(documents.lengths)
        for start, end in zip((ends - documents.lengths).tolist(), ends.tolist(), strict=True):
            aligned = [documents.aligned[name][start:end].tobytes() for name, _ in self.layout.aligned]
            yield _Document(documents.ids[start:end].tobytes(), aligned)

    def _joined(self, documents: Sequence[_Document]) -> EncodedDocuments:
        dtype = self.tokenizing.dtype
        lengths = np.array([len(each.ids) // dtype.itemsize for each in documents], dtype=np.int64)
        added = (self.tokenizing.eos is not None) + (self.tokenizing.bos is not None)
        return EncodedDocuments(
            np.frombuffer(b"".join([each.ids for each in documents]), dtype),
            lengths,
            {
                name: np.frombuffer(b"".join([each.aligned[number] for each in documents]), each_dtype)
                for number, (name, each_dtype) in enumerate(self.layout.aligned)
            },
            empty=int(np.count_nonzero(lengths == added)),
        )


def _check_lengths(lengths: Int64s, most: int, before: int) -> None:
    """Check that no document is too long.

    Args:
        lengths: the number of tokens of each document.
        most: the most tokens of a document.
        before: the number of documents before these.

    Raises:
        UnfitDocument: a document is too long.
    """
    if len(lengths) and lengths.max() > most:
        place = int(lengths.argmax())
        why = f"it has {lengths[place]:,} tokens, and a document of a token store has at most {most:,}"
        raise UnfitDocument(before + place, why)


def _gathered(chunks: Iterator[Any], together: int) -> Iterator[Any]:
    """Yield chunks of one kind as fewer ones.

    Args:
        chunks: lists of at most 64 records.
        together: about the characters of a chunk, if no record is larger. It has at most 512 records for each
            million of them, and the rest of the last list.
    """
    held: list[Any] = []
    count = size = 0
    for chunk in chunks:
        records = chunk.records if isinstance(chunk, TracedRecords | EncodedRecords) else chunk
        held.append(chunk)
        count += len(records)
        size += _SAMPLED * sum(map(_size, records[::_SAMPLED]))
        if count >= _AT_ONCE * (together >> 20) or size >= together:
            yield _as_one(held)
            held, count, size = [], 0, 0
    if held:
        yield _as_one(held)


def _as_one(chunks: Sequence[Any]) -> Any:
    first, *others = chunks
    if not others:
        return first
    if isinstance(first, TracedRecords):
        return TracedRecords(
            [record for chunk in chunks for record in chunk.records],
            np.concatenate([chunk.files for chunk in chunks]),
            np.concatenate([chunk.rows for chunk in chunks]),
        )
    if isinstance(first, EncodedRecords):
        return EncodedRecords([record for chunk in chunks for record in chunk.records])
    return [record for chunk in chunks for record in chunk]


def _size(record: Any) -> int:
    """Return about the number of characters or ids of a record."""
    if type(record) is dict:
        return sum([_length(value) for value in record.values() if type(value) in _SIZED])
    if type(record) is _Document:
        return len(record.ids)
    return _length(record) if type(record) in _SIZED else 1


def _length(value: Any) -> int:
    return value.size if type(value) is np.ndarray else len(value)
