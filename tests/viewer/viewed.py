"""The data that tests of pages open: two sources, their mixture, a run with states, and its losses."""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seekable as sk
from seekable.formats.audio.wave_file import wave_file
from seekable.viewer.facts.loss_log import read_loss_log
from seekable.viewer.media import media_roots
from seekable.viewer.opened import OpeningPart, OpenPipeline, opened_of
from seekable.viewer.pages.files_pages import verification_work

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from seekable.viewer.opened import Opened

WORDS = ("the", "committee", "met", "on", "monday")
RANKS, BATCH = 2, 8


def record(number: int) -> dict[str, Any]:
    """Return one record of the corpus."""
    text = " ".join(WORDS[(number * 7 + place) % 5] for place in range(3 + number % 40))
    return {
        "id": f"k{number}",
        "text": text,
        "meta": {"lang": ("en", "de", "fr")[number % 3], "score": number / 100},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "<b>hello</b>"}],
    }


def make_data(folder: Path) -> None:
    """Write the corpus, the code, the states of a run on two ranks, and its losses."""
    for source, files in (("corpus", 3), ("code", 2)):
        (folder / source).mkdir()
        for file in range(files):
            lines = [json.dumps(record(100 * file + row)) for row in range(100)]
            (folder / source / f"part-{file}.jsonl").write_text("\n".join(lines) + "\n")
    make_sounds(folder)
    make_tokens(folder)
    for rank in range(RANKS):
        loader = sk.Loader(pipeline(folder), global_batch_size=BATCH, rank=rank, world_size=RANKS, prefetch=0)
        for steps in (5, 10):
            loader.skip_batches(steps)
            sk.save_state(folder / "checkpoints", loader)
    losses = [{"step": step, "loss": 3 - step / 100 + 2 * (step == 61) + step % 3 / 50} for step in range(70)]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, losses)))


def tone(seconds: float) -> bytes:
    """Return a WAV file that swells."""
    times = np.arange(int(seconds * 4000)) / 4000
    swell = np.sin(np.pi * times / seconds) * (1 + np.sin(5 * times)) / 2
    return wave_file((swell * np.sin(400 * np.pi * times) * 30_000).astype(np.int16), 4000)


def picture(red: int) -> bytes:
    """Return a PNG file of 32 by 24 pixels of one colour."""
    rows = (b"\0" + bytes([red, 90, 160]) * 32) * 24
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", 32, 24, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts.items()
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def make_sounds(folder: Path) -> None:
    """Write sounds and pictures, within records and as files that they name."""
    (folder / "media").mkdir()
    (folder / "media" / "tone.wav").write_bytes(tone(2))
    (folder / "secret.wav").write_bytes(tone(1))
    (folder / "sounds").mkdir()
    rows = [
        {"audio": {"bytes": tone(3 + 17 * (row == 1)), "path": f"{row}.wav"}, "image": picture(80 * row)}
        | {"page": b"<html><script>window.pwned = 1</script>", "broken": b"ID3" + bytes(40)}
        | {"audio_filepath": ("tone.wav", "../secret.wav", "/etc/passwd")[row]}
        for row in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "sounds" / "part-0.parquet")


def pipeline(folder: Path) -> sk.Dataset:
    """Return the mixture that the run is trained on."""
    web, code = sk.open(folder / "corpus", key="id"), sk.open(folder / "code")
    sources = {"web": web.shuffle(seed=1), "code": code.shuffle(seed=2)}
    return sk.mix(sources, weights={"web": 7, "code": 3}, seed=0)


def make_tokens(folder: Path) -> None:
    """Write a tokenizer, and the ids of the code."""
    make_tokenizer(folder)
    sk.tokenize(folder / "code", to=folder / "tokens", tokenizer=folder / "tokenizer.json")


def make_tokenizer(folder: Path) -> None:
    """Write a tokenizer that has a token for each word."""
    vocabulary = {word: number for number, word in enumerate(("?", *WORDS))}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def is_even(record: dict[str, Any]) -> bool:
    """Return True for every other record of the corpus."""
    return int(record["id"][1:]) % 2 == 0


def opened(folder: Path) -> Opened:
    """Return all of it, open."""
    loader = sk.Loader(pipeline(folder), global_batch_size=BATCH, rank=0, world_size=RANKS, prefetch=0)
    other = sk.Loader(pipeline(folder).skip(3), batch_size=4, prefetch=0)
    packed = sk.open(folder / "tokens").pack(64, seed=3, method="best_fit", labels="within")
    targets = {
        "corpus": sk.open(folder / "corpus", key="id"),
        "sounds": sk.open(folder / "sounds"),
        "train": OpenPipeline(loader),
        "other": OpenPipeline(other),
        "packed": sk.Loader(packed, batch_size=4, prefetch=0),
        "stream": pipeline(folder).stream(lanes=2, epochs=1).filter(bool),
        "even": sk.Loader(pipeline(folder).stream(lanes=2).filter(is_even), batch_size=4, prefetch=0),
        "checkpoints": str(folder / "checkpoints"),
    }
    logs = dict.fromkeys(("train", "stream", "even"), read_loss_log(folder / "train.jsonl"))
    found = opened_of(targets, logs=logs, media=media_roots([folder / "media"]))
    node = found.dataset("corpus")._node
    job = found.jobs.start(
        "verify", "first", verification_work(node, "corpus", deep=True, decode=True, index_dir=None)
    )
    assert job.wait(60)
    found.opening["growing"] = found.jobs.start("index", "growing", iter_parts())
    return found


def iter_parts() -> Generator[OpeningPart]:
    """Yield the progress of an index that ends before it is complete."""
    yield OpeningPart(done=5_000_000, of=20_000_000, files_done=1, files=4, records=20_000)
