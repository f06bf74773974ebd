"""The dtype of token ids in files: as small as holds each id that can occur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["default_dtype", "token_dtype"]

_ALLOWED = ("uint8", "uint16", "uint32", "int32", "int64")

_MEGATRON_SMALL = 65_500
"""Megatron stores ids of smaller vocabularies as uint16, and those of others as int32."""


def token_dtype(dtype: DTypeLike | None, engine: Engine, *, megatron: bool = False) -> np.dtype[Any]:
    """Return the little-endian dtype of the ids of an engine.

    Args:
        dtype: the dtype that the user chose; None for uint16 if every id is at most 65,535, else uint32.
        engine: the engine; where its vocabulary is not known, the default is uint32.
        megatron: True for the dtypes that Megatron chooses: uint16 or int32.

    Raises:
        WrongType: ``dtype`` is no dtype.
        InvalidArgument: it is none for ids, or the vocabulary does not fit.

    Example:
        >>> from seekable.formats.tokens.tokenizing.id_lists import id_lists
        >>> token_dtype(None, id_lists()), token_dtype("uint16", id_lists())
        (dtype('uint32'), dtype('uint16'))
    """
    if dtype is None:
        return np.dtype(default_dtype(engine.vocabulary, megatron=megatron))
    try:
        chosen = np.dtype(np.dtype(dtype).newbyteorder("<").str)
    except (TypeError, ValueError) as error:
        message = f"dtype must be one of {', '.join(_ALLOWED)} (got {dtype!r})"
        raise WrongType(message) from error
    if chosen.name not in _ALLOWED:
        message = f"dtype must be one of {', '.join(_ALLOWED)} (got {chosen.name})"
        raise InvalidArgument(message)
    most = int(np.iinfo(chosen).max)
    if engine.vocabulary is not None and engine.vocabulary - 1 > most:
        message = (
            f"dtype={chosen.name} holds ids up to {most:,}, and the vocabulary has ids up to "
            f"{engine.vocabulary - 1:,}: leave out dtype=, or give a larger one"
        )
        raise InvalidArgument(message)
    return chosen


def default_dtype(vocabulary: int | None, *, megatron: bool) -> str:
    """Return the dtype of the ids of a vocabulary, such as ``"<u2"``, where the user chose none.

    Args:
        vocabulary: the largest id that can occur, plus 1; None where that is not known.
        megatron: True for the dtypes that Megatron chooses.
    """
    if vocabulary is None:
        return "<i4" if megatron else "<u4"
    if megatron:
        return "<u2" if vocabulary < _MEGATRON_SMALL else "<i4"
    return "<u2" if vocabulary <= 1 << 16 else "<u4"
