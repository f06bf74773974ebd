"""Token stores as a format: each part is a file of tokens and the files that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn

import msgspec
import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.file_format import FileFormat, TracedRecords, UnwritableRecord
from seekable.formats.tokens.tokenizing.encoding import EncodedDocuments
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.formats.tokens.tokenizing.store_document import decode_facts
from seekable.formats.tokens.writing.tokens_idx import MOST_INDEXED
from seekable.formats.tokens.writing.tokens_layout import StoreLayout
from seekable.formats.tokens.writing.tokens_part import TokenPart
from seekable.formats.tokens.writing.tokens_types import AskedTypes, compared_engines, settled_types
from seekable.writing.encoded_pieces import EncodedRecords, merge_encoded, write_encoded
from seekable.writing.whole_file import content_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.file_format import Ending, Preview
    from seekable.formats.tokens.tokenizing.encoding import Tokenizing

__all__ = ["Tokens"]

_PART = "part-%06d."

_MOST_TOKENS = (1 << 32) - 1
"""The most tokens of a document: ``.lengths`` has their number in 32 bits."""

_SAMPLED = 8
"""One in so many records is measured: the batches of the engine are cut exactly, later."""

_AT_ONCE, _CHARACTERS = 512, 1 << 20
"""The records that are encoded together, fewer if they have as many characters."""


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
class Tokens(FileFormat):
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

    name: ClassVar[str] = "tokens"
    takes_origins: ClassVar[bool] = True

    @property
    def layout(self) -> StoreLayout:
        """The arrays of the store and their types."""
        aligned = tuple((array.name, array.dtype) for array in self.tokenizing.aligned)
        return StoreLayout(self.tokenizing.dtype, aligned, self.idx)

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
        """The patterns of the names of the files of a part, that of the tokens first."""
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
        """What is written when all parts are whole: ``tokens.json``, or samples in place of the parts."""
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
            types = settled_types(self.tokenizing, self.asked, preview, megatron=self.idx)
            compared = compared_engines(self.tokenizing, preview)
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
        part = TokenPart(self.layout, [file, *beside])
        for chunk in _gathered(chunks):
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

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the documents of one lane to a piece, each after its length."""
        for records in _gathered(chunks):
            for some in self._encoded(records):
                write_encoded(file, self._split(some))

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the documents of pieces, one at a time."""
        return merge_encoded(pieces, turns, _Document)

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of documents of a part, None if one of its files is not as it was written."""
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


def _gathered(chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield chunks of one kind as fewer ones, of up to 575 records or about 1 MB if no record is larger."""
    held: list[Any] = []
    count = size = 0
    for chunk in chunks:
        records = chunk.records if isinstance(chunk, TracedRecords | EncodedRecords) else chunk
        held.append(chunk)
        count += len(records)
        size += _SAMPLED * sum(map(_size, records[::_SAMPLED]))
        if count >= _AT_ONCE or size >= _CHARACTERS:
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
