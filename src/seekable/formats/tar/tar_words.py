"""The surveyor of tar files, and their words in the index: the numbers of samples and members.

The words of a file with N samples and M members, in this order:

1. where each sample starts, and where the last one ends: N + 1 words;
2. the first member of each sample, and M: N + 1 numbers of 32 bits, two a word, the first one in its low
   half; nothing where all samples have as many members, which the schema says then;
3. the hash of the key of each sample: N words;
4. the members, sample by sample: two words each, the first byte of the payload, then its size in the low 48
   bits and the number of its field in the high 16.

The schema is JSON: the names of the fields, and the number of members of each sample or null.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from seekable._lazy import lazy
from seekable.errors import UnsupportedFormat
from seekable.formats.tar.samples import SampleRule, group_samples
from seekable.index.finder import Survey
from seekable.storage.first_bytes import check_compression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tar.samples import Samples
    from seekable.index.fileset import FileSet
    from seekable.index.offsets import Offsets

    UInt64s = NDArray[np.uint64]
    from seekable.formats.tar import walk
    from seekable.index.finder import ForwardReader
else:
    walk = lazy("seekable.formats.tar.walk")

__all__ = ["OPTIONS", "MemberWords", "TarSchema", "TarSurveyor", "encode_samples", "sample_rule_of"]


_LAST, _KEY, _PAIRS, _CONCATENATED = "last", "key", "pairs", "concatenated"
OPTIONS = (_LAST, _KEY, _PAIRS, _CONCATENATED)
"""The options that decide where samples start, in the order in which a name has them."""


def sample_rule_of(name: str) -> SampleRule:
    """Return the rule by which the members of a file become samples, from the name of the format."""
    options = name.split("-")[1:]
    split: Literal["first", "last"] = "last" if _LAST in options else "first"
    return SampleRule(split=split, adjacent=_KEY not in options, pairs=_PAIRS in options)


@dataclass(frozen=True, slots=True)
class TarSurveyor:
    """Finds the samples of a tar file by the headers of its members.

    Example:
        >>> TarSurveyor("tar-last").rule.split
        'last'
    """

    name: str
    """``"tar"``, and the options that decide where samples start."""

    @property
    def rule(self) -> SampleRule:
        """The rule by which members become samples."""
        return sample_rule_of(self.name)

    def check_head(self, head: bytes, path: str) -> None:
        """Refuse a file that is empty, or is compressed and its name does not say so.

        Raises:
            UnsupportedFormat: it is such a file; the message says what to do.
        """
        if not head:
            message = f"{path!r} has no byte, and a tar file without members has 1,024 zeros: write it again"
            raise UnsupportedFormat(message)
        check_compression(head, path)

    def survey(self, source: ForwardReader) -> Survey:
        """Return the samples of a file.

        Raises:
            UnsupportedFormat: the file is damaged, has members that cannot be read, or samples whose members
                do not follow each other; the message names the place and the way out.
        """
        walked = walk.Walk(source, concatenated=_CONCATENATED in self.name.split("-"))
        samples = group_samples(walked, self.rule, path=source.path)
        words, schema = encode_samples(samples, source.path)
        digest = samples.header_digest.to_bytes(8, "little")
        return Survey(words, len(samples.key_hashes), schema, digest)


_SIZE_BITS = 48
_SIZE_MASK = (1 << _SIZE_BITS) - 1
_MOST_FIELDS = 1 << 16
_MOST_MEMBERS = 1 << 32
_LOW_HALF = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class TarSchema:
    """The fields of the samples of a tar file.

    Example:
        >>> TarSchema.decode(TarSchema(("jpg", "json"), 2).encode())
        TarSchema(fields=('jpg', 'json'), each=2, warnings=())
    """

    fields: tuple[str, ...]
    """The names of the fields, in the order in which they come first in the file."""

    each: int | None
    """The number of members of each sample; None if samples differ in it."""

    warnings: tuple[str, ...] = ()
    """The texts of warnings about the file, such as that it has no end mark."""

    def encode(self) -> bytes:
        """Return the schema as JSON."""
        warnings = {"warnings": list(self.warnings)} if self.warnings else {}
        document = {"fields": list(self.fields), "each": self.each, **warnings}
        # Python's own JSON, because names may have lone surrogates.
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, schema: bytes) -> TarSchema:
        """Return the schema that `encode` made the bytes of."""
        document = json.loads(schema)
        return cls(tuple(document["fields"]), document["each"], tuple(document.get("warnings", ())))


def encode_samples(samples: Samples, path: str) -> tuple[UInt64s, bytes]:
    """Return the words and the schema of a file.

    Args:
        samples: the samples of the file.
        path: the name of the file in error messages.

    Raises:
        UnsupportedFormat: the file has more fields or members, or a larger member, than the words can hold.
    """
    _check_limits(samples, path)
    counts = np.diff(samples.first_members)
    each = int(counts[0]) if counts.size else 0
    # Without the path, because a data set can move.
    warnings = tuple(text.removeprefix(f"{path}: ") for text in samples.warnings)
    schema = TarSchema(tuple(samples.field_names), each if (counts == each).all() else None, warnings)
    members = np.empty((len(samples.payloads), 2), np.uint64)
    members[:, 0] = samples.payloads
    fields = np.asarray(samples.fields, np.uint64)
    members[:, 1] = np.asarray(samples.sizes, np.uint64) | (fields << np.uint64(_SIZE_BITS))
    firsts = np.zeros(0, np.uint64)
    if schema.each is None:
        halves = np.zeros(len(samples.first_members) + 1 & ~1, np.uint32)
        halves[: len(samples.first_members)] = samples.first_members
        firsts = halves.astype("<u4").view("<u8").astype(np.uint64)
    starts = np.asarray(samples.starts, np.uint64)
    hashes = np.asarray(samples.key_hashes, np.uint64)
    return np.concatenate([starts, firsts, hashes, members.reshape(-1)]), schema.encode()


def _check_limits(samples: Samples, path: str) -> None:
    largest = int(samples.sizes.max()) if len(samples.sizes) else 0
    for what, found, most in (
        ("fields", len(samples.field_names), _MOST_FIELDS),
        ("members", len(samples.payloads), _MOST_MEMBERS),
        ("bytes in one member", largest, _SIZE_MASK + 1),
    ):
        if found >= most:
            message = f"{path!r} has {found:,} {what}, and the index holds fewer than {most:,}"
            if what == "fields":
                message += (
                    "; its names seem to have dots in their ids: sk.formats.Tar(splitname='last') takes what "
                    "follows the last dot for the field"
                )
            raise UnsupportedFormat(message)


class MemberWords:
    """The members of the samples of indexed tar files; never changed, safe from threads.

    Files are given by their indices in the set, rows within their files. Nothing is checked.
    """

    __slots__ = ("_each", "_files", "_firsts", "_hashes", "_members", "schema_of", "schemas")

    def __init__(self, files: FileSet) -> None:
        """Compute where the words of each file begin; no data file is opened."""
        schemas, self.schema_of = files.schemas()
        """The index of each file's schema, int64."""
        self.schemas = [TarSchema.decode(schema) for schema in schemas]
        """The distinct schemas of the files."""
        each = np.array([-1 if schema.each is None else schema.each for schema in self.schemas], np.int64)
        self._files = files
        self._each: Int64s = each[self.schema_of]
        self._firsts: Int64s = files.records + 1
        self._hashes: Int64s = self._firsts + np.where(self._each < 0, (files.records + 2) // 2, 0)
        self._members: Int64s = self._hashes + files.records

    def first_members(self, files: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the index of each sample's first member in its file, and that of the next sample."""
        each = self._each[files]
        first, behind = each * rows, each * (rows + 1)
        if (each < 0).any():
            mixed = np.flatnonzero(each < 0)
            first[mixed] = self._numbered(files[mixed], rows[mixed])
            behind[mixed] = self._numbered(files[mixed], rows[mixed] + 1)
        return first, behind

    def members(self, files: Int64s, members: Int64s) -> tuple[UInt64s, UInt64s, Int64s]:
        """Return for each member its first byte, its size and its field's index.

        Args:
            files: the index of each member's file.
            members: its index in that file.
        """
        payloads, packed = self._files.words(files, self._members[files] + 2 * members)
        fields = (packed >> np.uint64(_SIZE_BITS)).astype(np.int64)
        return payloads, packed & np.uint64(_SIZE_MASK), fields

    def key_hashes(self, files: Int64s, rows: Int64s) -> UInt64s:
        """Return the hashes of the keys of samples."""
        return self._files.words(files, self._hashes[files] + rows)[0]

    def key_hashes_of(self, file: int) -> UInt64s:
        """Return the key hashes of all samples in a file; nothing is copied."""
        words, at = self._files.file_words(file)
        start = at + int(self._hashes[file])
        return np.asarray(words.span(start, start + int(self._files.records[file])))

    def key_hash(self, file: int, row: int) -> int:
        """Return the hash of the key of one sample."""
        words, at = self._files.file_words(file)
        return words.number(at + int(self._hashes[file]) + row)

    def of_sample(self, file: int, row: int) -> list[tuple[int, int, int]]:
        """Return for each member of one sample its first byte, its size and its field's index."""
        words, at = self._files.file_words(file)
        each = int(self._each[file])
        first, behind = each * row, each * (row + 1)
        if each < 0:
            first, behind = (_half(words, at + int(self._firsts[file]), number) for number in (row, row + 1))
        base = at + int(self._members[file])
        numbers = words.span(base + 2 * first, base + 2 * behind).tolist()
        return [
            (payload, packed & _SIZE_MASK, packed >> _SIZE_BITS)
            for payload, packed in zip(numbers[::2], numbers[1::2], strict=True)
        ]

    def field_sizes(self) -> dict[str, tuple[int, int]]:
        """Return for each field how many members it has, and their bytes; no data file is read."""
        found: dict[str, tuple[int, int]] = {}
        counts = (self._files.word_counts() - self._members) // 2
        for file, count in enumerate(counts.tolist()):
            of_file = np.full(count, file, np.int64)
            _, sizes, fields = self.members(of_file, np.arange(count, dtype=np.int64))
            names = self.schemas[int(self.schema_of[file])].fields
            members = np.bincount(fields, minlength=len(names)).tolist()
            for number, name in enumerate(names):
                before = found.get(name, (0, 0))
                size = int(sizes[fields == number].sum())
                found[name] = before[0] + members[number], before[1] + size
        return found

    def _numbered(self, files: Int64s, rows: Int64s) -> Int64s:
        words, _ = self._files.words(files, self._firsts[files] + rows // 2)
        halves = np.where(rows % 2, words >> np.uint64(32), words & np.uint64(_LOW_HALF))
        return halves.astype(np.int64)


def _half(words: Offsets, base: int, number: int) -> int:
    word = words.number(base + number // 2)
    return word >> 32 if number % 2 else word & _LOW_HALF
