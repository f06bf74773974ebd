"""The rows of a dataset of Ray by number, fetched block by block from the object store of its cluster."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, final

import numpy as np
import ray
import xxhash
from ray.data.block import BlockAccessor

from seekable.errors import ForkUnsafe, InvalidArgument
from seekable.parallel.pickling import deserialized

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["RayRows", "rows_of"]

_KEPT_BLOCKS = 4
"""The number of blocks that stay open; they lie in memory that the processes of a node share."""


@final
class RayRows:
    """The rows of materialized blocks: row ``r`` in constant time. Picklable, for the workers of the cluster.

    Blocks are references. A process fetches a block when it reads a row of it.
    """

    def __init__(self, refs: Sequence[Any], counts: Sequence[int]) -> None:
        """Take references of blocks, and the number of rows of each."""
        self._refs: Sequence[Any] | None = refs
        self._sent: bytes | None = None
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._open: OrderedDict[int, Any] = OrderedDict()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, row: int) -> Any:
        """Return a row as a dict."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> list[Any]:
        """Return some rows, in the order of ``rows``."""
        wanted = np.asarray(rows, dtype=np.int64)
        block_of = np.searchsorted(self._starts, wanted, side="right") - 1
        found: list[Any] = [None] * wanted.size
        for block in np.unique(block_of).tolist():
            at = np.flatnonzero(block_of == block)
            table = self._rows_of(block, wanted[at] - self._starts[block])
            for place, row in zip(at.tolist(), table.to_pylist(), strict=True):
                found[place] = row
        return found

    def _rows_of(self, block: int, rows: NDArray[np.int64]) -> pa.Table:
        accessor = self._block(block)
        first, last = int(rows[0]), int(rows[-1])
        if last - first == rows.size - 1 and bool((np.diff(rows) == 1).all()):
            chosen = accessor.slice(first, last + 1, copy=False)
        else:
            chosen = accessor.take(rows.tolist())
        return BlockAccessor.for_block(chosen).to_arrow()

    def _block(self, number: int) -> Any:
        """Return a block, which is fetched unless it is open."""
        if os.getpid() != self._pid:
            message = (
                "rows of Ray Data cannot be read in a process that was forked: read them in this process, or "
                "by the workers of executor=RayExecutor()"
            )
            raise ForkUnsafe(message)
        found = self._open.pop(number, None)
        if found is None:
            found = BlockAccessor.for_block(ray.get(self._reference(number)))
        self._open[number] = found
        while len(self._open) > _KEPT_BLOCKS:
            self._open.popitem(last=False)
        return found

    def _reference(self, number: int) -> Any:
        if self._refs is None:
            if not ray.is_initialized():
                message = (
                    "rows of Ray Data are in its cluster, which this process has not joined: give jobs=1, "
                    "workers=0 or executor=RayExecutor(), whose workers are in the cluster"
                )
                raise InvalidArgument(message)
            assert self._sent is not None
            self._refs = deserialized(self._sent)
        return self._refs[number]

    def __getstate__(self) -> dict[str, Any]:
        """Return the references and the numbers of rows."""
        # References have their owner's address only in what Ray's own pickler writes.
        sent = self._sent if self._refs is None else ray.cloudpickle.dumps(self._refs)
        return {"sent": sent, "starts": self._starts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state; the references are read with the first row, which shows if Ray is there."""
        self._refs, self._sent, self._starts = None, state["sent"], state["starts"]
        self._begin()


def rows_of(ray_dataset: ray.data.Dataset) -> tuple[RayRows, str]:
    """Return the rows of a dataset of Ray, which is executed, and a digest of the blocks that were made."""
    refs, counts = [], []
    for bundle in ray_dataset.materialize().iter_internal_ref_bundles():
        for block in bundle.blocks:
            if rows := block.metadata.num_rows:
                refs.append(block.ref)
                counts.append(rows)
    digest = xxhash.xxh3_128(repr(counts).encode())
    for ref in refs:
        digest.update(ref.binary())
    return RayRows(tuple(refs), counts), digest.hexdigest()
