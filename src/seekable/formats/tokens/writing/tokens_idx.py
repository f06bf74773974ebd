"""Megatron's index of a file of tokens, ``PREFIX.idx`` beside ``PREFIX.bin``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from seekable._typing import Int64s

__all__ = ["INDEX_DTYPES", "MOST_INDEXED", "index_bytes"]

_HEAD = struct.Struct("<9sQBQQ")
_MAGIC, _VERSION = b"MMIDIDX\0\0", 1

INDEX_DTYPES = {np.dtype("<u2"): 8, np.dtype("<i4"): 4, np.dtype("<u1"): 1, np.dtype("<i8"): 5}
"""The codes of the dtypes that the index has; uint32 is none of them."""

MOST_INDEXED = (1 << 31) - 1
"""The most tokens of a document: the index has their number in 32 bits with a sign."""


def index_bytes(lengths: Int64s, dtype: np.dtype[Any]) -> bytes:
    r"""Return the index of documents of one sequence each, as Megatron's ``IndexedDatasetBuilder`` writes it.

    Args:
        lengths: the number of tokens of each document, at most `MOST_INDEXED`.
        dtype: the dtype of the tokens, one of `INDEX_DTYPES`.

    Example:
        >>> index = index_bytes(np.array([3, 1]), np.dtype("<u2"))
        >>> index[:9], len(index) == 34 + 2 * (4 + 8) + 3 * 8
        (b'MMIDIDX\x00\x00', True)
    """
    ends = np.cumsum(lengths) * dtype.itemsize
    starts = (ends - lengths * dtype.itemsize).astype("<i8")
    documents = np.arange(len(lengths) + 1, dtype="<i8")
    head = _HEAD.pack(_MAGIC, _VERSION, INDEX_DTYPES[dtype], len(lengths), len(documents))
    return b"".join([head, lengths.astype("<i4").tobytes(), starts.tobytes(), documents.tobytes()])
