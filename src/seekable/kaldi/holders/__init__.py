"""Holders: how the objects of each type are read from Kaldi tables and files, and written.

`find_holder` returns the holder of a name, `register_holder` adds one; `holder.py` has the contract.
"""

from seekable.kaldi.holders.feature_files import HtkMatrix
from seekable.kaldi.holders.holder import Holder, SupportsRange
from seekable.kaldi.holders.matrix_coding import CompressedMatrix, compress
from seekable.kaldi.holders.ranges import Range, parse_range
from seekable.kaldi.holders.registry import find_holder, holder_names, register_holder
from seekable.kaldi.holders.sparse import SparseMatrix, SparseVector
from seekable.kaldi.holders.wave import Wave, WaveInfo

__all__ = [
    "CompressedMatrix",
    "Holder",
    "HtkMatrix",
    "Range",
    "SparseMatrix",
    "SparseVector",
    "SupportsRange",
    "Wave",
    "WaveInfo",
    "compress",
    "find_holder",
    "holder_names",
    "parse_range",
    "register_holder",
]
