"""Objects of Kaldi tables as JSON, in both directions."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

from seekable.cli.kaldi.conversion import plain
from seekable.errors import InvalidArgument
from seekable.kaldi import HtkMatrix, SparseMatrix, SparseVector, Wave, WaveInfo

__all__ = ["from_json", "to_json"]

_NOT_FINITE = frozenset({"nan", "inf", "-inf"})


def to_json(value: Any) -> Any:
    """Return an object in the types of JSON, so that `from_json` returns an equal one.

    Arrays become lists, with ``"nan"``, ``"inf"`` and ``"-inf"`` for the numbers that JSON lacks. Bytes
    become text in base64. Objects of several parts become dicts of them.

    Example:
        >>> to_json(SparseVector(3, [1], [0.5])), to_json([(1, float("inf"))])
        ({'dim': 3, 'indices': [1], 'values': [0.5]}, [[1, 'inf']])
    """
    if (form := _FORMS.get(type(value))) is not None:
        return form(value)
    array = plain(value)
    if not isinstance(array, np.ndarray):
        return array
    numbers = array.tolist()
    return numbers if array.dtype.kind != "f" or np.isfinite(array).all() else to_json(numbers)


def _whole_numbers(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return samples as integers, where all are; those of more than 16 bits have fractions."""
    whole = data.astype(np.int32)
    return whole if (whole == data).all() else data


def _list(values: Any) -> list[Any]:
    return [to_json(each) for each in values]


_FORMS: dict[type, Callable[[Any], Any]] = {
    list: _list,
    tuple: _list,
    float: lambda value: value if np.isfinite(value) else str(value),
    bytes: lambda value: base64.b64encode(value).decode(),
    HtkMatrix: lambda value: {"data": to_json(value.data), "period": value.period, "kind": value.kind},
    Wave: lambda value: {"rate": value.rate, "data": to_json(_whole_numbers(value.data))},
    WaveInfo: lambda value: {"rate": value.rate, "channels": value.channels, "samples": value.samples},
    SparseVector: lambda value: {
        "dim": value.dim,
        "indices": to_json(value.indices),
        "values": to_json(value.values),
    },
    SparseMatrix: lambda value: {"rows": _list(value.rows)},
}
"""The functions for the types that are no arrays and not of JSON already."""


def from_json(document: Any, holder: str) -> Any:
    """Return the object that a holder writes, from its form in JSON.

    Raises:
        InvalidArgument: the JSON has not the form that `to_json` returns for the holder.

    Example:
        >>> from_json({"dim": 3, "indices": [1], "values": [0.5]}, "sparse-vector").toarray().tolist()
        [0.0, 0.5, 0.0]
    """
    read = _READERS.get(holder, _numbers)
    try:
        return read(document)
    except (TypeError, KeyError, ValueError) as error:
        message = f"value must have the form of a {holder} in JSON (got {str(document)[:80]!r}): {error}"
        raise InvalidArgument(message) from None


def _numbers(document: Any) -> Any:
    """Return lists and numbers, with numbers in place of the texts for those that JSON lacks."""
    if isinstance(document, list):
        return [_numbers(each) for each in document]
    return float(document) if isinstance(document, str) and document in _NOT_FINITE else document


def _with_array(document: Any) -> dict[str, Any]:
    """Return the fields of an object whose field ``data`` is an array."""
    return {**document, "data": np.asarray(_numbers(document["data"]), np.float32)}


def _sparse_vector(document: Any) -> SparseVector:
    return SparseVector(*(_numbers(document[name]) for name in ("dim", "indices", "values")))


def _sparse_matrix(document: Any) -> SparseMatrix:
    return SparseMatrix(tuple(map(_sparse_vector, document["rows"])))


_READERS: dict[str, Callable[[Any], Any]] = {
    "token": lambda document: document,
    "token-vector": lambda document: document,
    "blob": lambda document: base64.b64decode(document, validate=True),
    "numpy-array": lambda document: np.asarray(_numbers(document), np.float64),
    "htk-matrix": lambda document: HtkMatrix(**_with_array(document)),
    "wave": lambda document: Wave(**_with_array(document)),
    "sparse-vector": _sparse_vector,
    "sparse-matrix": _sparse_matrix,
    "general-matrix": lambda document: (
        _sparse_matrix(document) if isinstance(document, dict) else _numbers(document)
    ),
}
"""The functions for the holders whose objects are neither numbers nor lists of them."""
