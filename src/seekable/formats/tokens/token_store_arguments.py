"""Makes the format for a token store from what a user has given, also for conversations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.chats.chat import Chat
from seekable.formats.tokens.families.indexed_dataset import INDEX_DTYPES
from seekable.formats.tokens.token_store_ending import StoreEnding, forager_ending, tokenizer_file
from seekable.formats.tokens.token_store_format import AskedTypes, TokenStoreFormat
from seekable.formats.tokens.token_store_options import TokenStore, check_array_name, checked_end
from seekable.formats.tokens.tokenizing.encoding import (
    LOSS_MASK,
    AlignedArray,
    DocumentTexts,
    GivenValues,
    IdColumn,
    PartTexts,
    Taken,
    TextColumn,
    Tokenizing,
    ValuesOfParts,
)
from seekable.formats.tokens.tokenizing.engine import LocatingEngine, id_lists, token_dtype
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.formats.tokens.tokenizing.parts import SpanColumn, is_mask, marks_left_out
from seekable.writing.pipeline_code import origin_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import DTypeLike

    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.formats.tokens.tokenizing.parts import AuxGenerator
    from seekable.nodes.node import Node

__all__ = ["ChatDocuments", "checked_store", "tokenizing", "tokens", "tokens_of", "with_samples"]


_TEXTS = "text"
"""The name of the column of texts where the user names none."""

_TOKENS = "tokens"
"""The name of the ids in records."""


def tokenizing(
    tokenizer: Any,
    how: TokenStore,
    *,
    column: str,
    eos: str | int | None,
    given: Mapping[str, DTypeLike] | None,
) -> Tokenizing:
    """Return what makes tokens of records.

    Args:
        tokenizer: see `engine_of`, or a ``sk.Chat``; None where the column holds ids.
        how: the options of the store. With ``sample_size`` masks are as data-forager has them: 1 = left out
            of the loss. With ``idx`` dtypes are those that Megatron would choose.
        column: the column of the texts, or of the ids.
        eos: the token after each document, None for none.
        given: the dtypes of the arrays that stand beside ids already, by name; with ``parts``, that function
            returns dicts with the ids under "tokens" and with these arrays. None where texts are tokenized.

    Raises:
        WrongType, InvalidArgument, DataNotFound, AccessDenied, MissingDependency: an argument is wrong.
    """
    if isinstance(tokenizer, Chat):
        ends = [_end(tokenizer.engine, token, name) for token, name in ((eos, "eos"), (how.bos, "bos"))]
        named = None if column in (None, _TEXTS) else column
        return _fitting(_tokenizing_chats(tokenizer, how, column=named, eos=ends[0], bos=ends[1]))
    if not isinstance(column, str):
        message = f"column must be the name of a column (got {column!r})"
        raise WrongType(message)
    parts = how.parts
    made = _engine_given(tokenizer, how.engine, ids_are_given=given is not None)
    documents: DocumentTexts
    aligned: list[AlignedArray]
    spans = _span_columns(how, made)
    if given is not None:
        for name in given:  # A function of the user may have returned any.
            check_array_name(name)
        aligned = [GivenValues(name, np.dtype(given[name])) for name in sorted(given)]
        names = tuple(array.name for array in aligned)
        documents = IdColumn(column if parts is None else _TOKENS, names, parts)
    else:
        generators, forager = how.generators, how.sample_size is not None
        aligned = [_of_parts(name, generators[name], forager=forager) for name in sorted(generators)]
        beside = tuple(each.name for each in spans)
        documents = TextColumn(column, beside) if parts is None and not generators else PartTexts(parts)
    after, before = _end(made, eos, "eos"), _end(made, how.bos, "bos")
    made = made.keeping_as_text(tuple(number for number in (after, before) if number is not None))
    chosen = token_dtype(how.dtype, made, megatron=how.idx)
    return _fitting(Tokenizing(made, documents, chosen, after, before, tuple(aligned), spans))


def _span_columns(how: TokenStore, engine: Engine) -> tuple[SpanColumn, ...]:
    """Return the columns of spans.

    Raises:
        InvalidArgument: they are in characters, and the tokenizer does not say which of these a token has.
    """
    spans = tuple(SpanColumn(name, how.spans[name]) for name in sorted(how.spans))
    for column in spans:
        if column.counts_characters and not isinstance(engine, LocatingEngine):
            message = (
                f"align[{column.name!r}] has spans of characters, and the engine {engine.name!r} does not "
                f"say which characters a token has: take a tokenizer.json without engine=, or a "
                f"tiktoken.Encoding; or give spans of tokens, sk.formats.Spans(units='tokens')"
            )
            raise InvalidArgument(message)
    return spans


def _fitting(made: Tokenizing) -> Tokenizing:
    """Return what makes tokens, whose dtype holds the ids of the ends.

    Raises:
        InvalidArgument: it does not.
    """
    for number in (made.eos, made.bos):
        if number is not None and number > np.iinfo(made.dtype).max:
            message = f"the id {number} of eos= or bos= does not fit {made.dtype.name}: give a larger dtype="
            raise InvalidArgument(message)
    return made


def _engine_given(tokenizer: Any, engine: str | None, *, ids_are_given: bool) -> Engine:
    if tokenizer is not None:
        found = engine_of(tokenizer, engine)
        return id_lists(found) if ids_are_given else found
    if not ids_are_given or engine is not None:
        message = "a tokenizer is needed to make ids of texts: give tokenizer="
        raise InvalidArgument(message)
    return id_lists()


def _end(engine: Engine, token: object, name: str) -> int | None:
    known = checked_end(name, token)
    return None if known is None else engine.id_of(known)


def _of_parts(name: str, generator: AuxGenerator, *, forager: bool) -> ValuesOfParts:
    return ValuesOfParts(
        name,
        np.dtype(generator.dtype),
        generator,
        is_reversed=is_mask(generator) and marks_left_out(generator) is not forager,
    )


def tokens(
    *,
    tokenizer: Any = None,
    column: str | None = None,
    eos: str | int | None = None,
    store: TokenStore | None = None,
) -> TokenStoreFormat:
    """Return the format of a token store; see ``Dataset.write_tokens``.

    Raises:
        WrongType: an argument is of a wrong type.
        InvalidArgument: an argument breaks a rule, or two of them contradict each other.
        DataNotFound, AccessDenied, MissingDependency: the tokenizer cannot be loaded.
    """
    how = checked_store(store)
    _check_written(how, has_tokenizer=tokenizer is not None)
    columns = how.columns
    if tokenizer is None:
        column = _TOKENS if column is None else column
        given = {name: chosen or np.uint8 for name, chosen in columns.items()}
    else:
        column, given = _TEXTS if column is None else column, None
    made = tokenizing(tokenizer, how, column=column, eos=eos, given=given)
    form = tokens_of(
        made,
        AskedTypes(None if how.dtype is None else made.dtype, tuple(sorted(columns.items()))),
        idx=how.idx,
        given={"key": column} if tokenizer is None else {"column": column},
    )
    return form if how.rows_per_file is None else replace(form, rows=how.rows_per_file)


def checked_store(store: object) -> TokenStore:
    """Return the argument ``store=``; the defaults for None.

    Raises:
        WrongType: it is something else.
    """
    if store is None:
        return TokenStore()
    if not isinstance(store, TokenStore):
        message = f"store must be a sk.formats.TokenStore (got {store!r} of type {type(store).__name__})"
        raise WrongType(message)
    return store


def _check_written(how: TokenStore, *, has_tokenizer: bool) -> None:
    """Check that ``write_tokens`` can make a store.

    Raises:
        InvalidArgument: it cannot.
    """
    for name in ("parts", "sample_size"):
        if getattr(how, name) is not None:
            message = (
                f"sk.formats.TokenStore({name}=) is for sk.tokenize (got {getattr(how, name)!r}): write the "
                f"texts of a dataset with sk.tokenize(ds, to=..., tokenizer=..., store=...)"
            )
            raise InvalidArgument(message)
    if not has_tokenizer and how.engine is not None:
        message = f"engine= is for texts, and without tokenizer= records have ids (got engine={how.engine!r})"
        raise InvalidArgument(message)
    if has_tokenizer and how.columns:
        message = (
            f"align= names columns beside ids, and tokenizer= makes ids of texts (got {list(how.columns)}): "
            f"give sk.tokenize generators, align={{'loss_mask': sk.LossMask()}}, or write a dataset of ids"
        )
        raise InvalidArgument(message)
    if how.spans:
        message = (
            f"align= has spans beside texts (got {list(how.spans)}): that is sk.tokenize, which writes texts "
            f"of a dataset"
        )
        raise InvalidArgument(message)
    if how.generators:
        message = (
            f"align= has generators, which make arrays of typed parts (got {list(how.generators)}): that is "
            f"sk.tokenize; of records that have ids name the columns"
        )
        raise InvalidArgument(message)


def tokens_of(
    made: Tokenizing, asked: AskedTypes, *, idx: object, given: Mapping[str, Any]
) -> TokenStoreFormat:
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
    for name, _ in made.arrays:
        check_array_name(name)
    has_index = checked_flag("idx", idx)
    if has_index and asked.dtype is not None and asked.dtype not in INDEX_DTYPES:
        message = (
            f"Megatron's index has no {asked.dtype.name}: leave out dtype=, for uint16 or int32, or leave "
            f"out idx=True"
        )
        raise InvalidArgument(message)
    return TokenStoreFormat(
        made, asked, has_index, tuple(given.items()), StoreEnding(tokenizer_file(made.engine))
    )


def with_samples(form: TokenStoreFormat, dataset: Node, sample_size: int) -> TokenStoreFormat:
    """Return the format whose parts become samples of Forager of a dataset's documents.

    Args:
        form: the format.
        dataset: the dataset.
        sample_size: the number of tokens of a sample.

    Raises:
        InvalidArgument: see `forager_ending`.
    """
    return replace(form, last_step=forager_ending(form, origin_paths(dataset), sample_size))


@dataclass(frozen=True, slots=True)
class ChatDocuments(DocumentTexts):
    """The ids of conversations, and their loss masks."""

    chat: Chat

    @property
    def column(self) -> str | None:
        """The column of the conversations; None where each record decides."""
        return next(iter(self.chat.columns), None)

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """Return the user's function of the mask, if there is one."""
        return self.chat.functions

    def take(self, records: Sequence[Any]) -> Taken:
        """Return the ids of one conversation a record; see `DocumentTexts.take`."""
        made = [each for (each,) in self.chat.encoded(records)]
        return Taken([each.ids for each in made], values={LOSS_MASK: [each.mask for each in made]})


def _tokenizing_chats(
    chat: Chat, how: TokenStore, *, column: str | None, eos: int | None, bos: int | None
) -> Tokenizing:
    """Return what makes tokens of conversations.

    Args:
        chat: makes the tokens of a record.
        how: the options of the store.
        column: the column of the conversations; None for that of ``chat``.
        eos: the id after each document, None for none.
        bos: the id before each document, None for none.

    Raises:
        InvalidArgument: an option of the store is for texts.
    """
    if column is not None:
        chat = chat.of_column(column)
    if len(chat.columns) > 1:
        message = (
            f"a document of a store is one sequence, and sk.Chat(column={chat.columns!r}) makes two of a "
            f"record: write a store of each column, and sk.zip() them"
        )
        raise InvalidArgument(message)
    for name in ("engine", "parts", "align", "sample_size"):
        if getattr(how, name):
            message = (
                f"sk.formats.TokenStore({name}=) is for texts, and a sk.Chat makes the tokens: leave it out"
            )
            raise InvalidArgument(message)
    engine = id_lists(chat.engine)
    mask = GivenValues(LOSS_MASK, np.dtype(np.uint8))
    dtype = token_dtype(how.dtype, engine, megatron=how.idx)
    return Tokenizing(engine, ChatDocuments(chat), dtype, eos, bos, (mask,))
