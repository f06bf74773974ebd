"""The function ``tokenize``: the texts of data as a store of tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, final

import numpy as np
from msgspec import structs

from seekable._arguments import checked_flag, checked_path, explains_keywords
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.chats.chat import Chat
from seekable.formats.tokens.token_store import FACTS, HIDDEN_DOCUMENT, decode_facts, read_document
from seekable.formats.tokens.token_store_arguments import (
    ChatDocuments,
    checked_store,
    tokenizing,
    tokens_of,
    with_samples,
)
from seekable.formats.tokens.token_store_format import AskedTypes
from seekable.formats.tokens.tokenizing.encoding import PartTexts, TextColumn
from seekable.formats.tokens.tokenizing.parts import described_generator
from seekable.index.index_location import Index
from seekable.nodes.columns.names import must_have
from seekable.nodes.graph import HOLE
from seekable.nodes.node import node_of
from seekable.parallel.progress import progress_or_bar
from seekable.state.functions import describe_function
from seekable.storage.access import Storage, checked_reach
from seekable.storage.listing import has_addresses
from seekable.writing.preview import looked_at
from seekable.writing.write import checked_policy, write
from seekable.writing.write_dataset import dataset_source
from seekable.writing.write_methods import ELSEWHERE_OF_TOKENS

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from seekable.formats.tokens.token_store_format import TokenStoreFormat
    from seekable.formats.tokens.token_store_options import TokenStore
    from seekable.formats.tokens.tokenizing.encoding import Tokenizing
    from seekable.nodes.node import Node
    from seekable.parallel.progress import Progress, ProgressChoice, ProgressHook
    from seekable.storage.listing import Asked

__all__ = ["tokenize", "tokens_in"]

_LEAST_BYTES, _MOST_BYTES = 8 << 20, 64 << 20
_PARTS = 32
"""A part is about this share of the data, within the limits above: enough parts to keep processes at work,
each a second to a minute of work, which a kill loses."""

_MOST_ROWS = 1 << 20
"""The most records of a part."""

_PROBED = 64
"""The number of records among which one that is no hole shows what ``parts`` returns."""


@explains_keywords({name: place for name, place in ELSEWHERE_OF_TOKENS.items() if name != "chat"})
def tokenize(  # noqa: PLR0913 - the one public place that owns these defaults
    source: Asked | Dataset,
    *,
    to: str | os.PathLike[str],
    tokenizer: Any,
    column: str = "text",
    chat: bool = False,
    eos: str | int | None = None,
    store: TokenStore | None = None,
    overwrite: bool = False,
    check_code: bool = True,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
    storage: Storage | None = None,
) -> Dataset:
    """Write the texts of data as a token store, and return the dataset of its documents.

    The work is cut into parts of consecutive records, 8 to 64 MB each, by the source's index alone. Each
    part appears whole or not at all, so the same call goes on where a killed one ended, and the bytes are the
    same for any number of processes. Each record is one document; one that gives no token keeps its row.

    The ids are those of the text alone: special tokens that a tokenizer would add are left out, and one that
    is written out in a text is text like any other. Nothing is put between documents but ``eos``, and the
    ``bos`` of ``store``.

    Args:
        source: what ``sk.open`` takes, or a dataset; records are dicts, or texts themselves.
        to: the folder of the store, which is made if it does not exist; or its address, such as
            ``s3://bucket/tokens``.
        tokenizer: the path of a ``tokenizer.json``, of a folder with one or of a model of SentencePiece, a
            ``tokenizers.Tokenizer``, a fast tokenizer of transformers, a ``tiktoken.Encoding`` or
            ``"tiktoken:NAME"``, or a function of a text that returns ids, or of a list of texts that returns
            a list for each. An object that is called, and a method of one, are recognised by the pickled
            state of the object. For conversations a ``sk.Chat``, or with ``chat`` what that takes.
        column: the column of the texts; of conversations that of the messages, which is found if left out.
        chat: True where the records are conversations: ``sk.Chat(tokenizer)`` runs the chat template of the
            tokenizer, and makes the array "loss_mask" beside the tokens, 1 = said by the assistant.
        eos: the token after each document, as its text or its id; none if left out.
        store: what few calls need, a ``sk.formats.TokenStore``: ``bos``, ``engine``, ``parts`` of documents
            and arrays beside the tokens (``align``), ``dtype``, Megatron's ``idx``, Forager's
            ``sample_size``, ``rows_per_file``.
        overwrite: True to remove what another call wrote to the folder.
        check_code: False to go on even if the code of a function that makes the ids has changed.
        jobs: the number of processes; by default more than this one are started if that pays.
        executor: any ``concurrent.futures.Executor`` whose workers can read the data and write the folder.
        progress: a function that is called with the progress; False for none. By default a bar on a terminal.
        storage: how stores are reached, ``sk.Storage(options=...)``: of the source, and of ``to``.

    Raises:
        WrongType: a record has no text, or an id does not fit the dtype; the message names file and row.
        MissingColumn: the files declare their columns, and there is none of this name.
        InvalidArgument: an argument breaks a rule, the engines differ, or the folder holds other data.
        StateMismatch: the folder was begun with another source, tokenizer or option.
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
        MissingDependency: the package of the tokenizer is not installed.
        OSError: the disk is full; finished parts are kept.

    Example:
        >>> import tempfile, seekable as sk
        >>> texts = sk.from_sequence([{"text": "abc"}, {"text": ""}, {"text": "d"}])
        >>> def bytes_of(text: str) -> list[int]:
        ...     return list(text.encode())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tk = sk.tokenize(texts, to=folder, tokenizer=bytes_of, eos=0, jobs=1)
        ...     [tk[row]["tokens"].tolist() for row in range(3)]
        [[97, 98, 99, 0], [0], [100, 0]]
    """
    if checked_flag("chat", chat) and not isinstance(tokenizer, Chat):
        tokenizer = Chat(tokenizer)
    how = _checked_parts(checked_store(store))
    reach = checked_reach(storage)
    dataset = _opened(source, to, jobs, executor, progress, reach)
    of_target = reach if has_addresses(to) else None
    form, node = _form(node_of(dataset), tokenizer, column, eos, how)
    with progress_or_bar(progress) as shown:
        written = write(
            dataset_source(node, "tokenize()"),
            to,
            form,
            rows_per_file=_rows_per_part(node) if how.rows_per_file is None else how.rows_per_file,
            policy=checked_policy(resume=True, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=_counting_tokens(shown, checked_path(to)),
            storage=of_target,
        )
    if how.sample_size is not None and not written.bytes:
        raise _no_sample(written.rows, how.sample_size)
    return open_dataset(to, progress=progress, storage=of_target)


def _checked_parts(how: TokenStore) -> TokenStore:
    """Return the options, if arrays beside the tokens have generators.

    Raises:
        InvalidArgument: they are columns.
    """
    if how.columns:
        message = (
            f"tokenize() makes ids of texts, and align= names columns beside ids (got {list(how.columns)}): "
            f"give generators, align={{'loss_mask': sk.LossMask()}}, or parts=, a function that returns ids"
        )
        raise InvalidArgument(message)
    return how


def _form(
    node: Node, tokenizer: Any, column: str, eos: str | int | None, how: TokenStore
) -> tuple[TokenStoreFormat, Node]:
    """Return the format of the store, and the dataset that reads its columns of texts alone."""
    given = None if isinstance(tokenizer, Chat) else _arrays_of(how, node)
    made = tokenizing(tokenizer, how, column=column, eos=eos, given=given)
    asked = AskedTypes(
        None if how.dtype is None else made.dtype,
        tuple((array.name, array.dtype if given is None else None) for array in made.aligned),
    )
    form = tokens_of(made, asked, idx=how.idx, given=_options(column, how, made))
    node = _narrowed(node, made)
    return form if how.sample_size is None else with_samples(form, node, how.sample_size), node


def _no_sample(documents: int, sample_size: int) -> InvalidArgument:
    message = (
        f"the {documents:,} documents have fewer tokens than one sample of {sample_size:,}: give a smaller "
        f"sample_size="
    )
    return InvalidArgument(message)


def _opened(
    source: Any,
    to: str | os.PathLike[str],
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressChoice,
    reach: Storage,
) -> Dataset:
    """Return the dataset of the texts.

    Raises:
        WrongType: a stream was given.
        InvalidArgument: the store would lie among the files that are read.
    """
    if isinstance(source, Dataset):
        return source
    if hasattr(source, "write_tokens"):
        message = (
            f"tokenize() takes data or a Dataset (got {source!r}): a stream is written by write_tokens()"
        )
        raise WrongType(message)
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        folder, target = os.path.realpath(source), os.path.realpath(to)
        if os.path.commonpath([folder, target]) == folder:
            message = (
                f"the store {os.fspath(to)!r} would lie in the folder {os.fspath(source)!r}, whose files are "
                f"read: name a folder beside it, or a glob of the files as the source"
            )
            raise InvalidArgument(message)
    return open_dataset(
        source,
        index=Index(jobs=jobs, executor=executor),
        storage=reach if has_addresses(source) else None,
        progress=progress,
    )


def _arrays_of(how: TokenStore, node: Node) -> dict[str, Any] | None:
    """Return the names of the arrays that ``parts`` returns beside ids; None if it returns texts.

    Raises:
        InvalidArgument: it returns ids, and ``align`` has generators for texts.
    """
    if how.parts is None or not node.size:
        return None
    records = (node.record(row) for row in range(min(_PROBED, node.size)))
    for record in islice((each for each in records if each is not HOLE), 1):
        try:
            made = how.parts(record)
        except Exception:  # noqa: BLE001 - the writer names the record that the function fails for
            return None
        if isinstance(made, Mapping) and "tokens" in made:
            if how.generators:
                message = (
                    "the function of parts= returns ids, and generators of align= are for parts with texts: "
                    "leave out one"
                )
                raise InvalidArgument(message)
            return {name: np.uint8 for name in made if name != "tokens"}
    return None


def _options(column: str, how: TokenStore, made: Tokenizing) -> dict[str, Any]:
    """Return the options that decide the tokens, beside those of the format."""
    if isinstance(made.documents, ChatDocuments):
        return {"chat": made.documents.chat.description}
    size = {} if how.sample_size is None else {"sample_size": how.sample_size}
    if isinstance(made.documents, TextColumn):
        spans = {each.name: each.described for each in made.spans}
        return {**size, "column": column, **({"spans": spans} if spans else {})}
    generators = how.generators
    return {
        **size,
        "parts": "parts" if how.parts is None else describe_function(how.parts, None),
        "aux": {name: described_generator(generators[name]) for name in sorted(generators)},
    }


def _narrowed(node: Node, made: Tokenizing) -> Node:
    """Return the dataset for a reader of the columns of texts alone.

    Raises:
        MissingColumn: the files declare their columns, and one of these is not among them.
    """
    documents = made.documents
    if isinstance(documents, TextColumn):
        needed = [documents.column, *documents.beside]
    elif isinstance(documents, PartTexts) and documents.parts is None:
        needed = ["parts"]
    else:
        return node
    must_have(node, "tokenize()", needed)
    return node.narrowed(frozenset(needed))


def _rows_per_part(node: Node) -> int | None:
    """Return the number of records of a part, by the bytes that the index has; None for data in memory."""
    rows = looked_at(node.size or 0)
    size = node.plan(rows).bytes if len(rows) else 0
    if not size:
        return None
    share = size * (node.size or 0) // len(rows) // _PARTS
    part = min(max(share, _LEAST_BYTES), _MOST_BYTES)
    return min(max(part * len(rows) // size, 1), _MOST_ROWS)


def _counting_tokens(hook: ProgressHook | None, folder: str) -> ProgressHook:
    """Return a hook that adds the number of tokens to reports, and passes them on.

    Args:
        hook: is called with the reports; None for no reports.
        folder: the folder of the store.
    """
    return _ignored if hook is None else _TokenCounter(hook, folder)


def _ignored(progress: Progress) -> None:
    """Do nothing with a report."""


def tokens_in(folder: str) -> int:
    """Return how many tokens a store's finished parts or whole samples have; 0 for no folder."""
    if samples := read_document(folder, HIDDEN_DOCUMENT):
        return samples.tokens
    counter = _TokenCounter(_ignored, folder)
    counter.count()
    return counter.tokens


@final
class _TokenCounter:
    """Counts the tokens of finished parts, and estimates those of the records after them by their mean."""

    def __init__(self, hook: ProgressHook, folder: str) -> None:
        self._hook = hook
        self._folder = folder
        self._seen: set[str] = set()
        self._documents = 0
        self.tokens = 0
        """The number of tokens of finished parts."""

    def __call__(self, progress: Progress) -> None:
        self.count()
        mean = self.tokens / max(1, self._documents)
        beyond = max(0, progress.records - self._documents)
        self._hook(structs.replace(progress, task="tokenizing", tokens=self.tokens + int(beyond * mean)))

    def count(self) -> None:
        """Count the parts that were finished since the last report."""
        try:
            names = {name for name in os.listdir(self._folder) if _is_facts(name)}
        except (FileNotFoundError, NotADirectoryError):  # The writer makes the folder, or refuses it.
            return
        for name in names - self._seen:
            try:
                with open(os.path.join(self._folder, name), "rb") as file:
                    facts = decode_facts(file.read())
            except (OSError, ValueError):  # It is removed, as a part of another call; the writer checks it.
                continue
            self._seen.add(name)
            self._documents += facts.documents
            self.tokens += facts.tokens


def _is_facts(name: str) -> bool:
    return name.endswith(f".{FACTS}") and not name.startswith(".")
