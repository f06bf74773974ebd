"""The shapes of the objects of Kaldi's tables, from their headers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.entry_decoder import EntryDecoder
from seekable.nodes.bases import with_leaves
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import known_size
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import read_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.nodes.contract import Leaf, Node

__all__ = ["shapes_of"]

_PLANNED = 1 << 16


def shapes_of(node: Node) -> NDArray[np.int64] | list[tuple[int, ...] | None]:
    """Return the shapes of the objects of epoch 0 of a dataset of Kaldi's tables.

    Returns:
        An int64 array of shape (records, dimensions); a list of tuples if objects have different numbers of
        dimensions, or some record is a hole, for which it has None.

    Raises:
        InvalidArgument: records are not the entries of Kaldi's tables.
        EndlessDataset: the dataset has no end.
        CorruptRecord: an entry cannot be read.
    """
    size = known_size(node, "shapes()")
    shapes = with_leaves(node, _shapes_of_leaf, past_records=False)
    if shapes is None:
        message = f"shapes() is for entries of Kaldi's tables in some order, and {node!r} makes other records"
        raise InvalidArgument(message)
    arrays: list[NDArray[np.int64]] = []
    several: list[tuple[int, ...] | None] | None = None
    for start in range(0, size, _PLANNED):
        rows = np.arange(start, min(start + _PLANNED, size), dtype=np.int64)
        some = [None if pair is HOLE else pair[1] for _, found in read_rows(shapes, rows) for pair in found]
        dims = {None if shape is None else len(shape) for shape in some}
        if several is None and (None in dims or len(dims) > 1 or (arrays and dims != {arrays[0].shape[1]})):
            several = [tuple(shape) for array in arrays for shape in array.tolist()]
        if several is None:
            arrays.append(np.array(some, dtype=np.int64))
        else:
            several += some
    if several is not None:
        return several
    return np.concatenate(arrays) if arrays else np.empty((0, 0), dtype=np.int64)


def _shapes_of_leaf(leaf: Leaf) -> Any:
    if isinstance(leaf, FileSource) and isinstance(leaf.decoder, EntryDecoder):
        return replace(leaf, decoder=leaf.decoder.wanting("shape"))
    message = f"shapes() is for entries of Kaldi's tables, and {leaf!r} is none: sk.open('scp:...') opens one"
    raise InvalidArgument(message)
