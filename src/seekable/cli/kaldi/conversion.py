"""The conversion of objects from the type of one holder to the type of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from seekable.kaldi import CompressedMatrix, HtkMatrix, SparseMatrix, SparseVector, Wave

__all__ = ["converted", "plain"]


def converted(value: Any, holder: str) -> Any:
    """Return an object in the form in which a holder writes it; an object that needs no change as it is.

    Matrices change between the forms dense, compressed, sparse and HTK, and a wave becomes the matrix of its
    channels. Numbers are converted by the holder itself, which also refuses what it cannot write.

    Example:
        >>> converted(SparseVector(3, [1], [0.5]), "vector").tolist()
        [0.0, 0.5, 0.0]
        >>> converted(np.float32([0, 0.5]), "sparse-vector").indices.tolist()
        [1]
    """
    if holder == "general-matrix" or (holder == "compressed-matrix" and isinstance(value, CompressedMatrix)):
        return value.data if isinstance(value, HtkMatrix | Wave) else value
    if holder == "sparse-vector":
        return value if isinstance(value, SparseVector) else _sparse_vector(plain(value))
    if holder == "sparse-matrix":
        return value if isinstance(value, SparseMatrix) else _sparse_matrix(plain(value))
    if holder == "htk-matrix":
        return value if isinstance(value, HtkMatrix) else HtkMatrix(plain(value))
    return value if holder == "wave" else plain(value)


def plain(value: Any) -> Any:
    """Return the array of an object that holds one array; all other objects as they are."""
    if isinstance(value, CompressedMatrix):
        return value.decode()
    if isinstance(value, SparseMatrix | SparseVector):
        return value.toarray()
    return value.data if isinstance(value, HtkMatrix | Wave) else value


def _sparse_vector(value: Any) -> SparseVector:
    array = np.asarray(value)
    indices = np.flatnonzero(array)
    return SparseVector(len(array), indices.astype(np.int32), array[indices])


def _sparse_matrix(value: Any) -> SparseMatrix:
    return SparseMatrix(tuple(_sparse_vector(row) for row in value))
