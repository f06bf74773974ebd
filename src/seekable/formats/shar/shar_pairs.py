"""Reading the pairs of a Shar's tar files: a payload, decoded as asked, in its manifest."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
import numpy as np

from seekable.errors import CorruptRecord, IndexStale, MissingDependency
from seekable.formats.shar.cut import DATA, MANIFEST, NO_DATA, NO_MANIFEST
from seekable.formats.tar.fields.field_decoder import field_decoder
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable._typing import Int64s
    from seekable.formats.tar.sample_source import SampleSource
    from seekable.storage.mapped import MappedFile

    Decode = Callable[[memoryview], Any]
    Members = Sequence[tuple[int, int, int]]

__all__ = ["Failed", "PairReader"]

_PREVIEW_BYTES: Final = 80

_GAP_BYTES: Final = 64 << 10
"""Ranges of a file that are nearer than this are fetched in one go."""

_AS_MANIFEST: Final = msgspec.json.Decoder().decode
_LOOSELY: Final = field_decoder(MANIFEST).decode
"""Decodes what the standard of JSON does not know and Python's module reads, such as NaN."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands for a record that cannot be read."""

    error: CorruptRecord


class _BadPair(Exception):
    """Carries the member that cannot be decoded to where the file and the row are known."""

    def __init__(self, cause: Exception, offset: int, size: int) -> None:
        super().__init__(cause)
        self.cause, self.offset, self.size = cause, offset, size


@final
class PairReader:
    """Reads the pairs of one field; never changed, safe from threads.

    A value is a manifest with the payload in it, None where a cut has no value, or a `Failed`. Rows are
    counted over all files.
    """

    def __init__(self, field: str, source: SampleSource) -> None:
        """Take the source of a field, whose decoders and files are used; nothing is read."""
        self.field = field
        self.source = source
        self._files, self._words = source.files, source.words
        self._activity = DiskActivity()
        self._starts = source.files.starts.data
        self._schema_of: list[int] = source.words.schema_of.tolist()
        self._decoders = [
            tuple(_decoder_of(source, suffix) for suffix in schema.fields) for schema in source.words.schemas
        ]
        self._suffixes = [schema.fields for schema in source.words.schemas]

    def hashes(self, rows: Int64s) -> list[int]:
        """Return for each row the hash of the id of its pair; no data file is read."""
        found: list[int] = self.source.key_hashes(rows).tolist()
        return found

    def one(self, row: int) -> tuple[Any, int]:
        """Return the value of a row, and the hash of the id of its pair.

        Raises:
            IndexStale: the file has changed.
        """
        file = bisect_right(self._starts, row) - 1
        within = row - self._starts[file]
        mapped = self._files.mapped(file)
        mapped.check()
        value = self._value(file, within, mapped, self._words.of_sample(file, within))
        return value, self._words.key_hash(file, within)

    def values(self, rows: Int64s) -> list[Any]:
        """Return the values of some rows, in the order of ``rows``; they are read in the order of the files.

        Raises:
            IndexStale: a file has changed.
        """
        order = np.argsort(rows)
        ordered = rows[order]
        starts = self._files.starts
        files = np.searchsorted(starts, ordered, side="right") - 1
        within = ordered - starts[files]
        first, behind = self._words.first_members(files, within)
        if (behind - first != 2).any():  # noqa: PLR2004 - the members of a pair
            found = {row: self.one(row)[0] for row in set(rows.tolist())}
            return [found[row] for row in rows.tolist()]
        payloads, manifests = (self._words.members(files, first + number) for number in (0, 1))
        before = disk_reads()
        if self._activity.may_wait:
            merged = merge_near(files, payloads[0], manifests[0] + manifests[1], gap=_GAP_BYTES)
            for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
                self._files.mapped(file).advise(start, end)
        members = [
            zip(*(column.tolist() for column in columns), strict=True) for columns in (payloads, manifests)
        ]
        out: list[Any] = [None] * rows.size
        current = -1
        for place, file, row, *pair in zip(
            order.tolist(), files.tolist(), within.tolist(), *members, strict=True
        ):
            if file != current:
                current, mapped = file, self._files.mapped(file)
                mapped.check()
            out[place] = self._value(file, row, mapped, pair)
        self._activity.note(disk_reads() - before)
        return out

    def _value(self, file: int, row: int, mapped: MappedFile, members: Members) -> Any:
        """Return the value of a pair, given the first byte, the size and the suffix of each member."""
        try:
            return self._decoded(self._schema_of[file], mapped.view, members)
        except _BadPair as bad:
            if isinstance(bad.cause, IndexStale | MissingDependency):
                raise bad.cause from None
            preview = bytes(mapped.view[bad.offset : bad.offset + min(bad.size, _PREVIEW_BYTES)])
            error = CorruptRecord(
                mapped.name, row, offset=bad.offset, length=bad.size, preview=preview, cause=bad.cause
            )
            error.__cause__ = bad.cause
            return Failed(error)

    def _decoded(self, schema: int, view: Any, members: Members) -> Any:
        """Return the manifest of a pair with its payload in it; None for a pair that stands for no value.

        Raises:
            _BadPair: a member cannot be decoded, or is another one than a pair has.
        """
        if len(members) != 2:  # noqa: PLR2004 - the members of a pair
            return self._without_value(schema, members)
        (payload, size, number), (start, length, last) = members
        decode = self._decoders[schema][number]
        if decode is None or self._suffixes[schema][last] != MANIFEST:
            return self._without_value(schema, members)
        try:
            manifest = _manifest(view[start : start + length])
        except Exception as error:  # noqa: BLE001 - the cause is kept
            raise _BadPair(error, start, length) from None
        try:
            data = view[payload : payload + size]
            manifest[DATA] = decode.on(data, manifest) if isinstance(decode, _WithFrames) else decode(data)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
            raise _BadPair(error, payload, size) from None
        return manifest

    def _without_value(self, schema: int, members: Members) -> None:
        """Check that a pair stands for no value.

        Raises:
            _BadPair: its members are others than ``.nodata`` and ``.nometa``.
        """
        suffixes = [self._suffixes[schema][number] for _, _, number in members]
        if suffixes == [NO_DATA, NO_MANIFEST]:
            return
        message = (
            f"expected a payload and its manifest, .json, or .nodata and .nometa; found "
            f"{', '.join(f'.{suffix}' for suffix in suffixes) or 'no member'}"
        )
        start, size, _ = members[0] if members else (0, 0, 0)
        raise _BadPair(ValueError(message), start, size)


def _manifest(view: memoryview) -> dict[str, Any]:
    """Return the object of a manifest.

    Raises:
        ValueError: it is no object of JSON.
    """
    try:
        manifest = _AS_MANIFEST(view)
    except (msgspec.DecodeError, UnicodeDecodeError):
        manifest = _LOOSELY(view)
    if not isinstance(manifest, dict):
        message = f"expected the manifest of a value, an object (found {manifest!r:.80})"
        raise ValueError(message)  # noqa: TRY004 - it is the data that is wrong
    return manifest


def _decoder_of(source: SampleSource, suffix: str) -> Decode | _WithFrames | None:
    """Return the decoder of payloads of a suffix; None for members that are no payloads."""
    if suffix in {MANIFEST, NO_DATA, NO_MANIFEST}:
        return None
    decoder = source.decoders.of(suffix)
    return _WithFrames(decoder.decode) if decoder.ranged else decoder.decode


@dataclass(frozen=True, slots=True)
class _WithFrames:
    """A decoder of audio that refuses a payload with fewer frames than its manifest promises."""

    decode: Callable[..., Any]

    def on(self, view: memoryview, manifest: dict[str, Any]) -> Any:
        """Return the audio of a payload."""
        frames, rate = manifest.get("num_samples"), manifest.get("sampling_rate")
        if isinstance(frames, int) and isinstance(rate, int):
            return self.decode(view, frames=frames, rate=rate)
        return self.decode(view)
