"""Tokenising: whole calls of ``sk.tokenize``, against the engine alone on texts that are in memory."""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.util
import json
import os
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Contestant, Row, Target, absolute, missing, one_core, race, relative, shown

import seekable as sk
from seekable.formats.tokens.tokenizing.engines import engine_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.data import Data

_CHARACTERS = 1860
"""The most characters of a text: pages of source code, as documents of the web are long."""

_BYTES = 31_500_000
_BYTES_A_RECORD = 160
"""The corpus is smaller where there are few records."""

_VOCABULARY = 32_000
_AT_ONCE = 500
_MOST_ROUNDS = 3

_END = "<|endoftext|>"

_ENGINES = {"hf": "tokenizers", "tiktoken": "tiktoken", "gigatoken": "gigatoken"}
_COPIES = {"hf": 1, "tiktoken": 4, "gigatoken": 24}
"""How often the corpus is tokenised in a run: what is done once a store, the comparison of two engines above
all, takes half a second, and a fast engine is done with the corpus before that."""

_TARGETS = {"hf": 0.9, "tiktoken": 0.9, "gigatoken": 0.6}
_MEGABYTES_A_SECOND = 100
"""The least speed of the fastest engine, in JSON lines a core."""


def rows(data: Data) -> Iterator[Row]:
    """Measure each engine that is installed."""
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    corpus = corpus_of(data)
    for engine, package in _ENGINES.items():
        name = f"tokenize with {package}, one core"
        if importlib.util.find_spec("tokenizers") is None or importlib.util.find_spec(package) is None:
            yield missing(name, 0, "MB/s", Target("at least", _TARGETS[engine]), peer=package)
            continue
        with one_core():
            yield from _engine(corpus, engine, name, rounds)


def corpus_of(data: Data) -> str:
    """Return a folder with the standard library as JSON lines, written now unless it is there."""
    most = min(_BYTES, data.sizes.records * _BYTES_A_RECORD)
    folder = os.path.join(data.folder, f"source-code-{most}")
    if os.path.exists(folder):
        return folder
    new = f"{folder}.new"
    os.makedirs(new, exist_ok=True)
    with open(os.path.join(new, "0.jsonl"), "w", encoding="utf-8") as file:
        size = 0
        for text in _texts():
            file.write(json.dumps({"text": text}) + "\n")
            size += len(text)
            if size >= most:
                break
    for copy in range(1, max(_COPIES.values())):
        os.link(os.path.join(new, "0.jsonl"), os.path.join(new, f"{copy}.jsonl"))
    os.rename(new, folder)
    return folder


def _texts() -> Iterator[str]:
    root = sysconfig.get_paths()["stdlib"]
    for path in sorted(glob.glob(f"{root}/**/*.py", recursive=True)):
        if "site-packages" in path:
            continue
        with contextlib.suppress(UnicodeDecodeError), open(path, encoding="utf-8") as file:
            whole = file.read()
            for start in range(0, len(whole), _CHARACTERS):
                yield whole[start : start + _CHARACTERS]


def trained_tokenizer(folder: str, texts: list[str]) -> str:
    """Return the path of a byte-level BPE that is trained on texts, now unless it is there."""
    path = os.path.join(folder, "tokenizer.json")
    if os.path.exists(path):
        return path
    tokenizers = importlib.import_module("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=_VOCABULARY, special_tokens=[_END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.save(path)
    return path


def _engine(folder: str, engine: str, name: str, rounds: int) -> Iterator[Row]:
    copies = _COPIES[engine]
    paths = [os.path.join(folder, f"{copy}.jsonl") for copy in range(copies)]
    with open(paths[0], encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    path = trained_tokenizer(folder, texts)
    batches = [texts[first : first + _AT_ONCE] for first in range(0, len(texts), _AT_ONCE)] * copies
    encode = _alone(engine, path)
    size = copies * os.path.getsize(paths[0])

    def ours() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as to:
            sk.tokenize(
                sk.open(paths, index=sk.Index(jobs=1)),
                to=to,
                tokenizer=path,
                eos=_END,
                jobs=1,
                progress=_without_bar,
                store=sk.formats.TokenStore(engine=engine),
            )

    def alone() -> None:
        for batch in batches:
            encode(batch)

    with single_threaded():
        jobs = {"ours": Contestant(ours, count=size), "alone": Contestant(alone, count=size)}
        if engine == "gigatoken":
            jobs["reader"] = Contestant(lambda: _read_by_gigatoken(path, paths), count=size)
        times = race(jobs, rounds=rounds)
    speed, other = 1e-6 / times.median("ours"), 1e-6 / times.median("alone")
    against = f"{_ENGINES[engine]} alone {shown(other)}"
    target = Target("at least", _TARGETS[engine])
    yield relative(name, speed, "MB/s", target, against=against, ratio=times.ratio("alone", "ours"))
    if engine == "gigatoken":
        against = f"gigatoken's own reader {shown(1e-6 / times.median('reader'))}"
        yield relative(name, speed, "MB/s", None, against=against, ratio=times.ratio("reader", "ours"))
        yield absolute(f"{name}: JSON lines", speed, "MB/s", Target("at least", _MEGABYTES_A_SECOND))


def _read_by_gigatoken(path: str, paths: list[str]) -> None:
    """Encode files of JSON lines by the package's own reader, which writes nothing."""
    gigatoken: Any = importlib.import_module("gigatoken")
    tokenizer = gigatoken.Tokenizer(path)
    for each in paths:
        tokenizer.encode_files(gigatoken.JsonlFileSource([each], "text"), parallel=False)


def _without_bar(progress: object) -> None:
    """Take the place of the progress bar."""


def _alone(engine: str, path: str) -> Callable[[list[str]], object]:
    """Return the call of an engine that makes the ids of texts, as its package has it."""
    if engine == "hf":
        batch = importlib.import_module("tokenizers").Tokenizer.from_file(path).encode_batch_fast
        return lambda texts: [each.ids for each in batch(texts, add_special_tokens=False)]
    loaded: Any = engine_of(path, engine)._loaded()  # type: ignore[attr-defined]
    if engine == "gigatoken":
        return lambda texts: loaded.encode_batch(texts, parallel=False)
    encode = loaded.encoding.encode_to_numpy
    return lambda texts: [encode(text, disallowed_special=()) for text in texts]


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Keep the package tokenizers from starting threads."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before
