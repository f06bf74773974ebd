"""The pieces of the lanes of a stream as Arrow streams, and the merging of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from seekable.writing.encoded_pieces import open_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["merged_batches", "write_tables"]

_CODEC = "lz4"
"""A piece is written and read once: this codec costs little time, and halves the bytes on disk."""


def write_tables(file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables as an Arrow stream, which can hold dictionaries that differ from table to table."""
    import pyarrow as pa

    codec = _CODEC if pa.Codec.is_available(_CODEC) else None
    with pa.ipc.new_stream(file, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for table in tables:
            writer.write_table(table)


def merged_batches(pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces as record batches.

    Args:
        pieces: the paths of Arrow streams of one schema.
        turns: arrays, one for each record batch, with the number of the piece whose next row comes next.
    """
    import pyarrow as pa

    with open_pieces(pieces) as files:
        rows = [_Rows(file) for file in files]
        for turn in turns:
            counts = np.bincount(turn, minlength=len(pieces)).tolist()
            found = [batch for own, count in zip(rows, counts, strict=True) for batch in own.take(count)]
            by_piece = pa.Table.from_batches(found).unify_dictionaries()
            places = np.empty(len(turn), dtype=np.int64)
            places[np.argsort(turn, kind="stable")] = np.arange(len(turn))
            yield from by_piece.take(pa.array(places)).combine_chunks().to_batches()


class _Rows:
    """The rows of an Arrow stream, taken some at a time."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa

        self._batches = iter(pa.ipc.open_stream(file))
        self._left: pa.RecordBatch | None = None

    def take(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield record batches of the next ``count`` rows."""
        while count:
            batch = next(self._batches) if self._left is None else self._left
            yield batch.slice(0, count)
            self._left = batch.slice(count) if batch.num_rows > count else None
            count -= min(count, batch.num_rows)
