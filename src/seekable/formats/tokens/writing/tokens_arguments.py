"""The format of a token store of the arguments of a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.tokenizing.settings import tokenizing
from seekable.formats.tokens.writing.tokens_ending import StoreEnding, tokenizer_file
from seekable.formats.tokens.writing.tokens_forager import forager_ending
from seekable.formats.tokens.writing.tokens_format import Tokens
from seekable.formats.tokens.writing.tokens_idx import INDEX_DTYPES
from seekable.formats.tokens.writing.tokens_types import AskedTypes
from seekable.writing.pipeline_code import origin_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tokens.tokenizing.encoding import Tokenizing
    from seekable.nodes.node import Node

__all__ = ["tokens", "tokens_of", "with_samples"]

_RESERVED = frozenset({"tokens", "segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen"})
"""The names of arrays that packed samples have besides the aligned ones."""

_SUFFIXES = frozenset({"bin", "lengths", "sources", "idx", "facts", "json", "tmp"})
"""The suffixes of the other files of a store."""


def tokens(  # noqa: PLR0913 - the arguments of the public methods
    *,
    tokenizer: Any = None,
    column: str = "text",
    key: str = "tokens",
    align: Sequence[str] | Mapping[str, Any] = (),
    eos: str | int | None = None,
    bos: str | int | None = None,
    engine: str | None = None,
    dtype: Any = None,
    idx: bool = False,
) -> Tokens:
    """Return the format of a token store; see ``Dataset.write_tokens``.

    Raises:
        WrongType: an argument is of a wrong type.
        InvalidArgument: an argument breaks a rule, or two of them contradict each other.
        DataNotFound, AccessDenied, MissingDependency: the tokenizer cannot be loaded.
    """
    types = _checked_align(align)
    if tokenizer is None and engine is not None:
        message = f"engine= is for texts, and without tokenizer= records have ids (got engine={engine!r})"
        raise InvalidArgument(message)
    if tokenizer is not None and types:
        message = (
            f"align= is for records that have ids, and tokenizer= makes ids of texts (got {list(types)}): "
            f"give sk.tokenize(aux=...), or a dataset of ids"
        )
        raise InvalidArgument(message)
    made = tokenizing(
        tokenizer,
        column=key if tokenizer is None else column,
        engine=engine,
        eos=eos,
        bos=bos,
        dtype=dtype,
        parts=None,
        aux=None,
        given={name: chosen or np.uint8 for name, chosen in types.items()} if tokenizer is None else None,
        forager=False,
        megatron=checked_flag("idx", idx),
    )
    return tokens_of(
        made,
        AskedTypes(None if dtype is None else made.dtype, tuple(sorted(types.items()))),
        idx=idx,
        given={"key": key} if tokenizer is None else {"column": column},
    )


def tokens_of(made: Tokenizing, asked: AskedTypes, *, idx: object, given: Mapping[str, Any]) -> Tokens:
    """Return the format of a token store.

    Args:
        made: makes tokens of records; its dtypes count only where ``asked`` has them.
        asked: the dtypes that the user chose.
        idx: True for Megatron's index beside the tokens.
        given: the further options that decide the tokens, JSON-safe.

    Raises:
        WrongType: ``idx`` is neither True nor False.
        InvalidArgument: Megatron's index does not have the dtype, or an array cannot have its name.
    """
    for array in made.aligned:
        _check_array_name(array.name)
    has_index = checked_flag("idx", idx)
    if has_index and asked.dtype is not None and asked.dtype not in INDEX_DTYPES:
        message = (
            f"Megatron's index has no {asked.dtype.name}: leave out dtype=, for uint16 or int32, or leave "
            f"out idx=True"
        )
        raise InvalidArgument(message)
    return Tokens(made, asked, has_index, tuple(given.items()), StoreEnding(tokenizer_file(made.engine)))


def with_samples(form: Tokens, dataset: Node, sample_size: int) -> Tokens:
    """Return the format whose parts become samples of Forager of a dataset's documents.

    Args:
        form: the format.
        dataset: the dataset.
        sample_size: the number of tokens of a sample.

    Raises:
        InvalidArgument: as of `forager_ending`.
    """
    return replace(form, last_step=forager_ending(form, origin_paths(dataset), sample_size))


def _checked_align(align: object) -> dict[str, np.dtype[Any] | None]:
    """Return the names of the arrays beside the tokens, each with the dtype that the user chose.

    Raises:
        WrongType: ``align`` holds no names, or no dtypes.
        InvalidArgument: an array cannot have the name, or is named twice.
    """
    if isinstance(align, str) or not isinstance(align, list | tuple | Mapping):
        message = f"align must be a list of names such as ['loss_mask'], or a dict of dtypes (got {align!r})"
        raise WrongType(message)
    if isinstance(align, Mapping):
        return {name: _checked_dtype(name, dtype) for name, dtype in align.items()}
    if len(set(align)) < len(align):
        message = f"align names an array twice (got {list(align)})"
        raise InvalidArgument(message)
    return dict.fromkeys(align)


def _check_array_name(name: object) -> None:
    """Raise an error for a name that no array beside the tokens can have."""
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier():
        message = f"an array beside the tokens has an identifier as its name, 'loss_mask' say (got {name!r})"
        raise InvalidArgument(message)
    if name in _RESERVED | _SUFFIXES:
        taken = ", ".join(sorted(_RESERVED | _SUFFIXES))
        message = f"an array beside the tokens cannot be named {name!r}; other names that are taken: {taken}"
        raise InvalidArgument(message)


def _checked_dtype(name: object, dtype: object) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype).newbyteorder("<")  # type: ignore[call-overload]
    except TypeError:
        message = f"align[{name!r}] must be a dtype such as 'uint8' (got {dtype!r})"
        raise WrongType(message) from None
    if dtype is None or found.kind not in "biuf" or found.itemsize > 8:  # noqa: PLR2004 - 64 bits
        message = f"align[{name!r}] must be a dtype of numbers such as 'uint8' (got {dtype!r})"
        raise InvalidArgument(message)
    return found
