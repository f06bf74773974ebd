"""Tokenising conversations: whole calls of ``sk.tokenize``, against transformers on records in memory."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Contestant, Row, missing, one_core, race, relative, shown
from benchmarks.tokenizing import corpus_of, single_threaded, trained_tokenizer

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_MOST_BYTES = 4_000_000
"""Of the texts: transformers takes some seconds for them."""

_TURNS, _CHARACTERS = 6, 400
_MOST_ROUNDS = 3

_TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}
{% else %}{{ message.content }}<|im_end|>
{% endif %}{% endfor %}"""


def rows(data: Data) -> Iterator[Row]:
    """Measure tokens and masks of conversations by a chat template."""
    name = "tokenize conversations with a loss mask, one core"
    needed = ("tokenizers", "jinja2", "transformers")
    absent = [package for package in needed if importlib.util.find_spec(package) is None]
    if absent:
        yield missing(name, 0, "MB/s", None, peer=absent[0])
        return
    with one_core():
        yield _against_transformers(data, name)


def _against_transformers(data: Data, name: str) -> Row:
    records, tokenizer = _records(data)
    transformers: Any = importlib.import_module("transformers")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=_TEMPLATE)
    with tempfile.TemporaryDirectory(dir=data.folder) as folder:
        path = os.path.join(folder, "chats.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        chat, source = sk.Chat(tokenizer, template=_TEMPLATE), sk.open(path, index=sk.Index(jobs=1))

        def ours() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as to:
                sk.tokenize(source, to=to, tokenizer=chat, jobs=1, progress=False)

        def peer() -> None:
            for record in records:
                theirs.apply_chat_template(
                    record["messages"], return_dict=True, return_assistant_tokens_mask=True
                )

        size = os.path.getsize(path)
        with single_threaded():
            jobs = {"ours": Contestant(ours, count=size), "transformers": Contestant(peer, count=size)}
            times = race(jobs, rounds=min(data.sizes.rounds, _MOST_ROUNDS))
    speed, other = 1e-6 / times.median("ours"), 1e-6 / times.median("transformers")
    against, ratio = f"transformers in memory {shown(other)}", times.ratio("transformers", "ours")
    return relative(name, speed, "MB/s", None, against=against, ratio=ratio)


def _records(data: Data) -> tuple[list[dict[str, Any]], Any]:
    """Return conversations of pieces of source code, and a tokenizer with the marks of turns."""
    folder = corpus_of(data)
    with open(os.path.join(folder, "0.jsonl"), encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(trained_tokenizer(folder, texts))
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    whole = "".join(texts)[:_MOST_BYTES]
    pieces = [whole[start : start + _CHARACTERS] for start in range(0, len(whole), _CHARACTERS)]
    turns = [
        {"role": "assistant" if place % 2 else "user", "content": piece} for place, piece in enumerate(pieces)
    ]
    return [{"messages": turns[at : at + _TURNS]} for at in range(0, len(turns), _TURNS)], tokenizer
