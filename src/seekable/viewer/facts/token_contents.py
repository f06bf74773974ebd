"""What data of tokens holds: lengths of documents, what packing makes of them, the tokenizer, texts."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable._spans import type_name
from seekable.errors import InvalidArgument, StateMismatch
from seekable.formats.tokens.token_store import HIDDEN_DOCUMENT, document_of, read_document
from seekable.packing.order.best_fit import best_fit_patterns, piece_table
from seekable.packing.order.length_order import length_classes, merged
from seekable.viewer.facts.histogram import counted_percentiles
from seekable.viewer.facts.json_documents import in_words, json_safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.formats.tokens.token_source import TokenSource
    from seekable.formats.tokens.token_store import StoreDocument, TokenizerFacts
    from seekable.formats.tokens.tokenizing import engines
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.packing.order.length_order import LengthClasses
else:
    engines = lazy("seekable.formats.tokens.tokenizing.engines")

_DOCUMENTS_AT_ONCE = 1 << 20
_WAY_OUT = "name a tokenizer.json, a folder with one, or tiktoken:NAME with --tokenizer"

_MOST_OF_CHARACTER = 4
"""A character of UTF-8 has at most four bytes, and so at most four tokens."""


def token_contents(source: TokenSource, length: int) -> dict[str, Any]:
    """Return the facts on documents of tokens, JSON-safe; no data file is read for them.

    Memory does not grow with the number of documents, only with that of distinct lengths.

    Args:
        source: the documents.
        length: the tokens in a packed sample, whose waste is computed.
    """
    classes = merged(length_classes(chunk) for chunk in _chunks(source))
    types = {name: type_name(dtype) for name, dtype in source.dtypes.items()}
    empty = int(classes.counts[classes.lengths == 0].sum())
    trained = source.trained
    return {
        "documents": source.size,
        "empty_documents": empty,
        "tokens": classes.tokens,
        **({} if trained is None else {"trained_tokens": trained}),
        "dtype": types.pop("tokens", None),
        "aligned": types,
        **({"spans": spans} if (spans := _spans(source)) else {}),
        "store": _store(source),
        "document_tokens": _lengths(classes),
        "histogram": _histogram(classes),
        "packing": _packing(lambda: _chunks(source), classes, length),
    }


def packing_of(lengths: Int64s, length: int) -> dict[str, Any]:
    """Count documents and tokens, and say what either way to pack makes of them.

    Args:
        lengths: the tokens of each document.
        length: the tokens in a packed sample.

    Example:
        >>> found = packing_of(np.array([3, 5, 2]), 4)
        >>> found["concat"], found["best_fit"]["padding"]
        ({'samples': 2, 'tail': 2, 'documents_cut': 1}, 2)
    """
    classes = length_classes(lengths)
    counted = {"documents": lengths.size, "tokens": classes.tokens}
    return counted | _packing(lambda: iter([lengths] if lengths.size else []), classes, length)


def _packing(chunks: Callable[[], Iterator[Int64s]], classes: LengthClasses, length: int) -> dict[str, Any]:
    concat = _concat(chunks(), classes.tokens, length)
    return {"length": length, "concat": concat, "best_fit": _best_fit(classes, length)}


def _chunks(source: TokenSource) -> Iterator[Int64s]:
    """Yield the lengths of all documents, chunk by chunk."""
    for first in range(0, source.size, _DOCUMENTS_AT_ONCE):
        yield source.lengths_between(first, min(first + _DOCUMENTS_AT_ONCE, source.size))


def _spans(source: TokenSource) -> dict[str, Any]:
    """Return what the stores of documents say of the spans beside these, by name."""
    folders = {os.path.dirname(source.files.path(file)) for file in range(len(source.files))}
    found: dict[str, Any] = {}
    for document in filter(None, map(document_of, sorted(folders))):
        for name, facts in document.spans.items():
            known = found.setdefault(name, {"spans": 0, "without_token": 0, "labels": facts.labels})
            known["spans"] += facts.spans
            known["without_token"] += facts.without_token
    return found


def _store(source: TokenSource) -> dict[str, Any] | None:
    """Return what the document of a token store says; None for other files and for several stores."""
    folders = {os.path.dirname(source.files.path(file)) for file in range(len(source.files))}
    document = store_document_of(folders.pop()) if len(folders) == 1 else None
    if document is None:
        return None
    tokenizer = document.tokenizer
    return {
        "tokenizer": None
        if tokenizer is None
        else {
            "engine": tokenizer.engine,
            "library": tokenizer.library or None,
            "name": tokenizer.name or None,
            "file": tokenizer.file,
            "digest": tokenizer.digest,
        },
        "vocabulary": document.vocabulary,
        "eos": document.eos,
        "bos": document.bos,
        "column": document.column,
        "source_files": [json_safe(path) for path in document.source.files],
    }


def store_document_of(folder: str) -> StoreDocument | None:
    """Return the document of a token store, or of Forager's samples; None for other folders.

    Args:
        folder: the folder of the token files; the document of Forager's samples lies above it.

    Raises:
        CorruptState: the document is damaged.
    """
    return document_of(folder) or read_document(os.path.dirname(folder), HIDDEN_DOCUMENT)


def _lengths(classes: LengthClasses) -> dict[str, Any] | None:
    """Return the mean, the extremes and percentiles of the lengths; None without a document."""
    documents, lengths = classes.documents, classes.lengths
    if not documents:
        return None
    percentiles = counted_percentiles(lengths, classes.counts)
    return {
        "mean": classes.tokens / documents,
        "min": int(lengths[0]),
        "max": int(lengths[-1]),
        **{f"p{percent}": length for percent, length in percentiles.items()},
    }


def _histogram(classes: LengthClasses) -> list[dict[str, int | float]]:
    """Return the documents and tokens for each power of two that lengths reach, the shortest first."""
    _, bits = np.frexp(classes.lengths.astype(np.float64))
    found = []
    for bit in range(int(bits.min()), int(bits.max()) + 1) if bits.size else ():
        here = bits == bit
        counts = classes.counts[here]
        tokens = int((classes.lengths[here] * counts).sum())
        found.append(
            {
                "from": 1 << (bit - 1) if bit else 0,
                "to": (1 << bit) - 1,
                "documents": int(counts.sum()),
                "tokens": tokens,
                "share_of_tokens": tokens / max(classes.tokens, 1),
            }
        )
    return found


def _concat(chunks: Iterator[Int64s], tokens: int, length: int) -> dict[str, int]:
    """Return the samples, the tail and the cut documents where all documents are joined in natural order."""
    cut = before = 0
    for lengths in chunks:
        ends = before + np.cumsum(lengths)
        starts = ends - lengths
        cut += int(np.count_nonzero((starts // length + 1) * length < ends))
        before = int(ends[-1])
    return {"samples": tokens // length, "tail": tokens % length, "documents_cut": cut}


def _best_fit(classes: LengthClasses, length: int) -> dict[str, int]:
    """Return the bins, the padding and the patterns of best fit, and the documents longer than a sample."""
    table = piece_table(classes, length, "split")
    patterns = best_fit_patterns(table.distinct, table.counts, capacity=length)
    return {
        "samples": patterns.bins,
        "padding": patterns.bins * length - table.packed,
        "documents_cut": int(classes.counts[classes.lengths > length].sum()),
        "pieces": int(table.counts.sum()),
        "patterns": int(patterns.times.size),
    }


def token_contents_in_words(found: dict[str, Any]) -> dict[str, str]:
    """Return the result of ``token_contents``, but for the histogram, as names and texts for people."""
    types = [found["dtype"] or "of no type", *(f"{name} {kind}" for name, kind in found["aligned"].items())]
    empty = f", {found['empty_documents']:,} of them empty" if found["empty_documents"] else ""
    facts = {
        "documents": f"{found['documents']:,}{empty}",
        "tokens": f"{found['tokens']:,} ({', '.join(types)})",
    }
    if "trained_tokens" in found:
        trained = found["trained_tokens"]
        facts["trained tokens"] = f"{trained:,} ({percent(trained, found['tokens'])} % of all)"
    for name, spans in found.get("spans", {}).items():
        out = f", and {spans['without_token']:,} that had no token" if spans["without_token"] else ""
        labels = f" ({', '.join(spans['labels'])})" if spans["labels"] else ""
        facts[f"spans in {name}"] = f"{spans['spans']:,}{labels}{out}"
    if found["store"] is not None:
        facts |= _store_in_words(found["store"])
    lengths = found["document_tokens"]
    if lengths is None:
        return facts
    shown = ", ".join(f"{name} {lengths[name]:,}" for name in ("min", "p50", "p95", "p99", "max"))
    return {**facts, "tokens of a document": f"mean {lengths['mean']:,.1f}, {shown}"}


def packing_in_words(found: dict[str, Any]) -> dict[str, str]:
    """Return what packing makes of data, as names and texts for people.

    Args:
        found: the facts on the data, with those on packing.
    """
    packing: dict[str, Any] = found["packing"]
    tokens: int = packing["tokens"] if "tokens" in packing else found["tokens"]
    concat, best = packing["concat"], packing["best_fit"]
    places = best["samples"] * packing["length"]
    facts: dict[str, str] = {}
    if "documents" in packing:
        facts["token ids"] = f"{tokens:,} in {in_words(packing['documents'], 'document')}"
    if "trained_tokens" in packing:
        trained = packing["trained_tokens"]
        facts["trained tokens"] = f"{trained:,} ({percent(trained, tokens)} % of all)"
    facts[f"concat at {packing['length']:,}"] = (
        f"{in_words(concat['samples'], 'sample')}; {in_words(concat['tail'], 'token')} "
        f"({percent(concat['tail'], tokens)} %) in the tail; "
        f"{in_words(concat['documents_cut'], 'document')} cut"
    )
    facts[f"best fit at {packing['length']:,}"] = (
        f"{in_words(best['samples'], 'sample')}; {best['padding']:,} of {places:,} places "
        f"({percent(best['padding'], places)} %) padded; {in_words(best['documents_cut'], 'document')} cut; "
        f"{in_words(best['patterns'], 'pattern')}"
    )
    return {**facts, "in Python": packing["python"]}


def _store_in_words(store: dict[str, Any]) -> dict[str, str]:
    tokenizer = store["tokenizer"]
    ends = f"eos {_or_none(store['eos'])}, bos {_or_none(store['bos'])}"
    if tokenizer is None:
        return {"tokenizer": f"none, the records had ids; {ends}"}
    parts = [tokenizer["engine"], tokenizer["name"], tokenizer["file"], tokenizer["library"]]
    return {
        "tokenizer": ", ".join(part for part in parts if part),
        "vocabulary": f"{_or_none(store['vocabulary'])}; {ends}",
    }


def _or_none(number: int | None) -> str:
    return "none" if number is None else f"{number:,}"


def histogram_rows(found: dict[str, Any]) -> list[list[str]]:
    """Return the histogram of ``token_contents`` as rows of texts, with shares in percent."""
    return [
        [
            f"{each['from']:,}" if each["from"] == each["to"] else f"{each['from']:,} to {each['to']:,}",
            f"{each['documents']:,}",
            percent(each["documents"], found["documents"]),
            f"{each['tokens']:,}",
            percent(each["tokens"], found["tokens"]),
        ]
        for each in found["histogram"]
    ]


def percent(part: int, whole: int) -> str:
    """Return a share in percent.

    Example:
        >>> percent(1, 8), percent(0, 0)
        ('12.5', '0.0')
    """
    return f"{100 * part / max(whole, 1):.1f}"


@cache
def engine_of_store(folder: str) -> Engine:
    """Return the tokenizer of a token store.

    Raises:
        InvalidArgument: the folder is not a token store, or has no tokenizer that makes texts.
        StateMismatch: the tokenizer that is there is not the one that made the ids.
    """
    store = store_document_of(folder)
    if store is None:
        message = (
            f"{folder!r} is not a token store, so it does not say which tokenizer its ids are of: {_WAY_OUT}"
        )
        raise InvalidArgument(message)
    tokenizer = store.tokenizer
    if tokenizer is not None and tokenizer.file is not None:
        path = os.path.join(folder, tokenizer.file)
        return _checked(engines.engine_of(path), tokenizer, repr(path), folder)
    if tokenizer is not None and tokenizer.engine == "tiktoken" and tokenizer.name:
        name = f"tiktoken:{tokenizer.name}"
        try:
            engine = engines.engine_of(name)
        except InvalidArgument as error:
            message = f"the tokenizer of the store {folder!r} is not at hand: {error}; {_WAY_OUT}"
            raise InvalidArgument(message) from error
        return _checked(engine, tokenizer, name, folder)
    message = f"the token store {folder!r} has no copy of its tokenizer: {_WAY_OUT}"
    raise InvalidArgument(message)


def _checked(engine: Engine, tokenizer: TokenizerFacts, name: str, folder: str) -> Engine:
    """Return an engine after comparing its digest with that in a store's document.

    Raises:
        StateMismatch: the digests differ.
    """
    if engine.digest != tokenizer.digest:
        message = (
            f"{name} is not the tokenizer that made the ids of the token store {folder!r}: expected the "
            f"digest {tokenizer.digest}, found {engine.digest}; copy the store again, or {_WAY_OUT}"
        )
        raise StateMismatch(message)
    return engine


def token_texts(engine: Engine, ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds to those before it.

    A character of several tokens is the text of its last one, and the others have an empty text. So has an id
    for which the tokenizer has no token. Tokens are decoded together with those just before them, because
    tokenizers may drop the space at the start of a text.

    Args:
        engine: the tokenizer.
        ids: tokens of one document that follow each other.

    Raises:
        InvalidArgument: the engine cannot make texts of ids.
    """
    texts: list[str] = []
    # The tokens from ``begun`` on have no text yet; those from ``before`` on are decoded with them.
    before, begun = 0, 0
    for stop in range(1, len(ids) + 1):
        known, text = _text(engine, ids[before:begun]), _text(engine, ids[before:stop])
        may_grow = stop < len(ids) and stop - begun < _MOST_OF_CHARACTER
        if text.endswith("\ufffd") and may_grow:
            texts.append("")
            continue
        texts.append(text[len(known) :] if text.startswith(known) else _text(engine, ids[begun:stop]))
        before, begun = begun, stop
    return texts


def _text(engine: Engine, ids: Sequence[int]) -> str:
    """Return the text of the ids that can be tokens."""
    most = engine.vocabulary
    return engine.decode([number for number in ids if number >= 0 and (most is None or number < most)])
