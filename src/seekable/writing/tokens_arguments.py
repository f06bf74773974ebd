"""The format of a token store of the arguments of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType
from seekable.tokens.aligned import GivenValues
from seekable.tokens.document_texts import IdColumn, TextColumn
from seekable.tokens.encoding import Tokenizing
from seekable.tokens.engines import engine_of
from seekable.tokens.gigatoken_engine import Gigatoken
from seekable.tokens.huggingface import HuggingFace
from seekable.tokens.id_lists import IdLists
from seekable.tokens.store_document import SourceFacts
from seekable.tokens.token_dtype import token_dtype
from seekable.writing.pipeline_code import origin_paths
from seekable.writing.tokens import Tokens
from seekable.writing.tokens_ending import StoreEnding
from seekable.writing.tokens_idx import INDEX_DTYPES
from seekable.writing.tokens_types import AskedTypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.contract import Node
    from seekable.tokens.document_texts import DocumentTexts
    from seekable.tokens.engine import Engine
    from seekable.writing.laned_items import LanedItems

__all__ = ["ending_of_dataset", "ending_of_stream", "tokens", "tokens_of"]

_RESERVED = frozenset({"tokens", "segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen"})
"""The names of arrays that packed samples have besides the aligned ones."""

_SUFFIXES = frozenset({"bin", "lengths", "sources", "idx", "facts", "json", "tmp"})
"""The suffixes of the other files of a store."""


def tokens(  # noqa: PLR0913 - the arguments of the public methods
    tokenizer: Any,
    *,
    column: str,
    key: str,
    align: Sequence[str] | Mapping[str, Any],
    eos: str | int | None,
    bos: str | int | None,
    engine: str | None,
    dtype: Any,
    idx: bool,
) -> Tokens:
    """Return the format of a token store; see ``Dataset.write_tokens``.

    Raises:
        WrongType: an argument is of a wrong type.
        InvalidArgument: an argument breaks a rule, or two of them contradict each other.
        DataNotFound, AccessDenied, MissingDependency: the tokenizer cannot be loaded.
    """
    types = _checked_align(align)
    if tokenizer is None:
        if engine is not None:
            message = f"engine= is for texts, and without tokenizer= records have ids (got engine={engine!r})"
            raise InvalidArgument(message)
        made: Engine = IdLists()
        documents: DocumentTexts = IdColumn(_checked_name("key", key), tuple(types))
    else:
        if types:
            message = (
                f"align= is for records that have ids, and tokenizer= makes ids of texts (got {list(types)}): "
                f"give sk.tokenize(aux=...), or a dataset of ids"
            )
            raise InvalidArgument(message)
        made, documents = engine_of(tokenizer, engine), TextColumn(_checked_name("column", column))
    ends = {"eos": None if eos is None else made.id_of(eos), "bos": None if bos is None else made.id_of(bos)}
    aligned = tuple(
        GivenValues(name, np.dtype(np.uint8) if chosen is None else chosen) for name, chosen in types.items()
    )
    made = made.keeping_as_text(tuple(sorted({each for each in ends.values() if each is not None})))
    provisional = token_dtype(dtype, made, megatron=idx)
    tokenizing = Tokenizing(made, documents, provisional, ends["eos"], ends["bos"], aligned)
    return tokens_of(
        tokenizing,
        AskedTypes(None if dtype is None else provisional, tuple(types.items())),
        idx=idx,
        given={"key": key} if tokenizer is None else {"column": column},
    )


def tokens_of(tokenizing: Tokenizing, asked: AskedTypes, *, idx: object, given: Mapping[str, Any]) -> Tokens:
    """Return the format of a token store.

    Args:
        tokenizing: what makes tokens of records; its dtypes count only where ``asked`` has them.
        asked: the dtypes that the user chose.
        idx: True for Megatron's index beside the tokens.
        given: the further options that decide the tokens, JSON-safe.

    Raises:
        WrongType: ``idx`` is neither True nor False.
        InvalidArgument: Megatron's index does not have the dtype, or an array cannot have its name.
    """
    for array in tokenizing.aligned:
        _check_array_name(array.name)
    has_index = checked_flag("idx", idx)
    if has_index and asked.dtype is not None and asked.dtype not in INDEX_DTYPES:
        message = (
            f"Megatron's index has no {asked.dtype.name}: leave out dtype=, which then is uint16 or int32, or "
            f"leave out idx=True"
        )
        raise InvalidArgument(message)
    return Tokens(tokenizing, asked, has_index, tuple(given.items()))


def ending_of_dataset(form: Tokens, dataset: Node) -> StoreEnding:
    """Return the last step of the writing of a dataset to a token store.

    Args:
        form: the format.
        dataset: the dataset.
    """
    source = SourceFacts(dataset.fingerprint, dataset.size, origin_paths(dataset))
    return StoreEnding(source, _tokenizer_file(form.tokenizing.engine))


def ending_of_stream(form: Tokens, items: LanedItems) -> StoreEnding:
    """Return the last step of the writing of a stream to a token store; see `ending_of_dataset`."""
    source = SourceFacts(items.fingerprint, None, [])
    return StoreEnding(source, _tokenizer_file(form.tokenizing.engine))


def _tokenizer_file(engine: Engine) -> str | None:
    """Return the content of the file that the tokenizer can be loaded from; None for no file."""
    whole = engine.reference if isinstance(engine, Gigatoken) else engine
    return whole.json if isinstance(whole, HuggingFace) else None


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
        message = f"the name of an array beside the tokens is an identifier such as 'loss_mask' (got {name!r})"
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


def _checked_name(argument: str, name: object) -> str:
    if isinstance(name, str) and name:
        return name
    message = f"{argument} must be the name of a column (got {name!r})"
    raise WrongType(message)
