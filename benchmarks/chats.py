"""Conversations: ``sk.tokenize`` against transformers and TRL, and packed samples with a loss mask."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import tempfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.measure import Contestant, Row, Target, missing, one_core, race, relative, shown
from benchmarks.tokenizing import corpus_of, single_threaded, trained_tokenizer

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


_LENGTH, _BATCH = 2048, 256
_DOCUMENTS = 20_000
"""Of about 400 tokens; fewer where there are few records."""


def rows(data: Data) -> Iterator[Row]:
    """Measure tokens and masks of conversations by a chat template, and packed samples with masks."""
    yield from _tokenized(data, "tokenize conversations with a loss mask, one core")
    with one_core():
        yield _packed(data)


def _tokenized(data: Data, name: str) -> Iterator[Row]:
    needed = ("tokenizers", "jinja2", "transformers")
    absent = [package for package in needed if importlib.util.find_spec(package) is None]
    if absent:
        yield missing(name, 0, "MB/s", None, peer=absent[0])
        return
    records, tokenizer = _records(data)
    transformers: Any = importlib.import_module("transformers")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=_TEMPLATE)
    peers = {"transformers in memory": _of_transformers(theirs, records)}
    if importlib.util.find_spec("trl") is not None:
        peers["TRL in memory"] = _of_trl(theirs, records)
    with one_core(), tempfile.TemporaryDirectory(dir=data.folder) as folder, single_threaded():
        path = os.path.join(folder, "chats.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        chat, source = sk.Chat(tokenizer, template=_TEMPLATE), sk.open(path, index=sk.Index(jobs=1))

        def ours() -> sk.Dataset:
            with tempfile.TemporaryDirectory(dir=folder) as to:
                return sk.tokenize(source, to=to, tokenizer=chat, jobs=1, progress=False)

        size = os.path.getsize(path)
        runs = {"ours": ours, **peers}
        jobs = {key: Contestant(run, count=size) for key, run in runs.items()}
        times = race(jobs, rounds=min(data.sizes.rounds, _MOST_ROUNDS))
    speed = 1e-6 / times.median("ours")
    for peer in peers:
        against = f"{peer} {shown(1e-6 / times.median(peer))}"
        yield relative(name, speed, "MB/s", None, against=against, ratio=times.ratio(peer, "ours"))
    if "TRL in memory" not in peers:
        yield missing(name, speed, "MB/s", None, peer="trl")


def _of_transformers(tokenizer: Any, records: list[dict[str, Any]]) -> Callable[[], object]:
    def run() -> None:
        for record in records:
            tokenizer.apply_chat_template(
                record["messages"], return_dict=True, return_assistant_tokens_mask=True
            )

    return run


def _of_trl(tokenizer: Any, records: list[dict[str, Any]]) -> Callable[[], object]:
    """Return TRL's own preparation of a dataset for its trainer, without its model."""
    datasets: Any = importlib.import_module("datasets")
    prepare = importlib.import_module("trl.trainer.sft_trainer").SFTTrainer._prepare_dataset
    datasets.disable_caching()
    datasets.disable_progress_bars()
    trainer = SimpleNamespace(chat_template=None, _tokenizer=tokenizer, completion_only_loss=False)
    options = SimpleNamespace(
        dataset_num_proc=None,
        dataset_text_field="text",
        assistant_only_loss=True,
        max_length=None,
        shuffle_dataset=False,
        use_liger_kernel=False,
    )
    source = datasets.Dataset.from_list(records)

    def run() -> object:
        return prepare(
            trainer, source, tokenizer, options, packing=False, formatting_func=None, dataset_name="train"
        )

    return run


def _packed(data: Data) -> Row:
    """Return the row of packed samples with labels and a loss mask, against those without the mask."""
    store = _store(data)
    plain = store.pack(_LENGTH, seed=7, labels="within")
    masked = store.pack(_LENGTH, seed=7, labels="within", align=["loss_mask"])

    def batches(packed: sk.Dataset) -> None:
        for _ in sk.Loader(packed, batch_size=_BATCH, prefetch=0, end="short"):
            pass

    jobs = {
        "masked": Contestant(lambda: batches(masked), count=len(masked)),
        "plain": Contestant(lambda: batches(plain), count=len(plain)),
    }
    times = race(jobs, rounds=data.sizes.rounds)
    name, figure = f"packed samples with a loss mask, {_BATCH} at a time", 1e6 * times.median("masked")
    against = f"labels alone {shown(1e6 * times.median('plain'))}"
    target = Target("at most", 2)
    return relative(name, figure, "us", target, against=against, ratio=times.ratio("masked", "plain"))


def _store(data: Data) -> sk.Dataset:
    """Return documents of log-normal lengths with a loss mask, written now unless they are there."""
    documents = min(_DOCUMENTS, max(data.sizes.records, 100))
    folder = os.path.join(data.folder, f"masked-tokens-{documents}")
    if not os.path.exists(os.path.join(folder, "tokens.json")):
        draw = np.random.default_rng(0)
        lengths = draw.lognormal(6, 0.5, documents).astype(int) + 1
        records = [
            {
                "tokens": draw.integers(1, 50_000, length, dtype=np.uint16),
                "loss_mask": draw.integers(0, 2, length, dtype=np.uint8),
            }
            for length in lengths.tolist()
        ]
        how = sk.formats.TokenStore(align={"loss_mask": "uint8"}, dtype="uint16")
        sk.from_sequence(records).write_tokens(folder, store=how, jobs=1)
    return sk.open(folder)


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
