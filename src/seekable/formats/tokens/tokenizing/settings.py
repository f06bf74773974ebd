"""The arguments of functions that make tokens of records, checked and made into a `Tokenizing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.tokenizing.aligned import AlignedArray, GivenValues, ValuesOfParts
from seekable.formats.tokens.tokenizing.document_texts import DocumentTexts, IdColumn, PartTexts, TextColumn
from seekable.formats.tokens.tokenizing.encoding import Tokenizing
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.formats.tokens.tokenizing.id_lists import id_lists
from seekable.formats.tokens.tokenizing.parts import checked_generators, checked_name, is_mask, marks_left_out
from seekable.formats.tokens.tokenizing.token_dtype import token_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import DTypeLike

    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.formats.tokens.tokenizing.parts import AuxGenerator

__all__ = ["TOKENS", "tokenizing"]

TOKENS = "tokens"
"""The name of the ids in records."""


def tokenizing(  # noqa: PLR0913 - the arguments of the public functions
    tokenizer: Any,
    *,
    column: str,
    engine: str | None,
    eos: str | int | None,
    bos: str | int | None,
    dtype: DTypeLike | None,
    parts: Callable[[Any], Any] | None,
    aux: Mapping[str, AuxGenerator] | None,
    given: Mapping[str, DTypeLike] | None,
    forager: bool,
    megatron: bool,
) -> Tokenizing:
    """Return what makes tokens of records.

    Args:
        tokenizer: see `engine_of`; None where the column holds ids.
        column: the column of the texts, or of the ids.
        engine: the package that makes the ids; None for the package of the tokenizer.
        eos: the token after each document, None for none.
        bos: the token before each document, None for none.
        dtype: the dtype of the ids; None for the smallest that holds the vocabulary.
        parts: a function of a record that returns its parts; None for its column "parts" if ``aux`` is given,
            else for the text of ``column``.
        aux: the generators of the arrays beside the tokens, by name.
        given: the dtypes of the arrays that stand beside ids already, by name; with ``parts``, that function
            returns dicts with the ids under "tokens" and with these arrays. None where texts are tokenized.
        forager: True for masks as data-forager has them: 1 = left out of the loss.
        megatron: True for the dtypes that Megatron would choose.

    Raises:
        WrongType, InvalidArgument, DataNotFound, AccessDenied, MissingDependency: an argument is wrong.
    """
    if not isinstance(column, str):
        message = f"column must be the name of a column (got {column!r})"
        raise WrongType(message)
    if parts is not None and not callable(parts):
        message = f"parts must be a function of a record (got {parts!r})"
        raise WrongType(message)
    made = _engine(tokenizer, engine, ids_are_given=given is not None)
    documents: DocumentTexts
    aligned: list[AlignedArray]
    if given is not None:
        aligned = [GivenValues(name, np.dtype(given[name])) for name in sorted(map(checked_name, given))]
        names = tuple(array.name for array in aligned)
        documents = IdColumn(column if parts is None else TOKENS, names, parts)
    else:
        generators = checked_generators(aux or {})
        aligned = [_of_parts(name, generators[name], forager=forager) for name in sorted(generators)]
        documents = TextColumn(column) if parts is None and not generators else PartTexts(parts)
    after, before = _end(made, eos, "eos"), _end(made, bos, "bos")
    made = made.keeping_as_text(tuple(number for number in (after, before) if number is not None))
    chosen = token_dtype(dtype, made, megatron=megatron)
    for number in (after, before):
        if number is not None and number > np.iinfo(chosen).max:
            message = f"the id {number} of eos= or bos= does not fit {chosen.name}: give a larger dtype="
            raise InvalidArgument(message)
    return Tokenizing(made, documents, chosen, after, before, tuple(aligned))


def _engine(tokenizer: Any, engine: str | None, *, ids_are_given: bool) -> Engine:
    if tokenizer is not None:
        found = engine_of(tokenizer, engine)
        return id_lists(found) if ids_are_given else found
    if not ids_are_given or engine is not None:
        message = "a tokenizer is needed to make ids of texts: give tokenizer="
        raise InvalidArgument(message)
    return id_lists()


def _end(engine: Engine, token: object, name: str) -> int | None:
    if token is None:
        return None
    if isinstance(token, bool) or not isinstance(token, str | int | np.integer):
        message = f"{name} must be a token of the vocabulary or its id (got {token!r})"
        raise WrongType(message)
    return engine.id_of(token if isinstance(token, str) else int(token))


def _of_parts(name: str, generator: AuxGenerator, *, forager: bool) -> ValuesOfParts:
    return ValuesOfParts(
        name,
        np.dtype(generator.dtype),
        generator,
        is_reversed=is_mask(generator) and marks_left_out(generator) is not forager,
    )
