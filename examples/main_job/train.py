"""Train a small language model on two sources, mixed 70:30, and resume exactly after any interruption.

    python train.py RUN SOURCE [SOURCE]

RUN is the folder of the run: its states, its models, and the log of each process that worked on it. Start the
same command again after an interruption, and it goes on from the newest state. A single SOURCE is cut into
halves.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import time
import zlib
from itertools import chain
from typing import Any

import numpy as np

import seekable as sk

LONGEST = 2000
"""Bytes of a record that are trained on."""

LOSSES = "losses.jsonl"
"""The losses of a run, in its folder."""

LEARNING_RATE = 3.0
"""High, because the gradients of most bytes, which are rare, are small."""


def open_sources(paths: list[str], index_dir: str | None) -> list[sk.Dataset]:
    """Return the two sources; from here on, any record of them is there in constant time."""
    sources = [sk.open(path, index=sk.Index(folder=index_dir)) for path in paths]
    if len(sources) == 1:
        middle = len(sources[0]) // 2
        sources = [sources[0][:middle], sources[0][middle:]]
    return sources


def pipeline(first: sk.Dataset, second: sk.Dataset) -> sk.Dataset:
    """Return what is trained on, in its order. Nothing is read yet, and nothing is held in memory."""
    sources = {"first": first.shuffle(seed=1), "second": second.shuffle(seed=2)}
    mixed = sk.mix(sources, weights={"first": 0.7, "second": 0.3}, seed=3)
    return mixed.map(as_bytes)


def as_bytes(record: Any) -> bytes:
    """Return the text of a record: a line, the "text" of a JSON record, or else all of its JSON."""
    text = record.get("text", record) if isinstance(record, dict) else record
    if not isinstance(text, str):
        text = json.dumps(text)
    return text.encode(errors="replace")[:LONGEST]


class Bigram:
    """A softmax over the next byte, given the byte before; trained by plain gradient descent."""

    def __init__(self) -> None:
        self.logits = np.zeros((256, 256))

    def step(self, texts: list[bytes]) -> float:
        """Learn from a batch and return its loss, in nats a byte."""
        stream = np.frombuffer(b"\n" + b"\n".join(texts) + b"\n", dtype=np.uint8).astype(np.int64)
        pairs = np.bincount(stream[:-1] * 256 + stream[1:], minlength=256 * 256).reshape(256, 256)
        shifted = self.logits - self.logits.max(axis=1, keepdims=True)
        log_odds = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        gradient = np.exp(log_odds) * pairs.sum(axis=1, keepdims=True) - pairs
        self.logits -= LEARNING_RATE * gradient / pairs.sum()
        return float(-(pairs * log_odds).sum() / pairs.sum())


def model_path(run: str, step: int) -> str:
    """Return where the model is that belongs to the state of a step."""
    return os.path.join(run, f"model-{step:012d}.npz")


def save(run: str, loader: sk.Loader, model: Bigram) -> None:
    """Save the model and then the state: a state is only ever found with its model there."""
    path = model_path(run, loader.step)
    with open(path + ".part", "wb") as file:
        np.savez(file, logits=model.logits)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)
    sk.save_state(run, loader)
    for old in sorted(glob.glob(glob.escape(run) + "/model-*.npz"))[:-4]:
        os.remove(old)


def load_model(run: str, step: int) -> Bigram:
    """Return the model of a step."""
    model = Bigram()
    with np.load(model_path(run, step)) as saved:
        model.logits = saved["logits"]
    return model


def train(run: str, loader: sk.Loader, *, save_every: int) -> None:
    """Train to the end of the run, and log each batch: its loss, and where its records came from.

    The losses of all processes also stand in one file, where the lines of a later process count.
    """
    began = time.perf_counter()
    resumed = sk.load_state(run, loader)
    step = loader.step
    batches = iter(loader)
    first = next(batches, None)
    milliseconds = 1000 * (time.perf_counter() - began)
    if first is None:
        print("this run is finished")
        return
    model = load_model(run, step) if resumed else Bigram()
    print(f"resumed from batch {step}" if resumed else loader.dataset, flush=True)
    number = 1 + len(glob.glob(glob.escape(run) + "/log-*.jsonl"))
    with (
        open(os.path.join(run, f"log-{number}.jsonl"), "x", encoding="utf-8") as log,
        open(os.path.join(run, LOSSES), "a", encoding="utf-8") as losses,
    ):

        def note(**entry: Any) -> None:
            print(json.dumps(entry), file=log, flush=True)

        note(begins_at=step, milliseconds=milliseconds, expected=len(loader.dataset))
        for texts in chain([first], batches):
            places = loader.locate(step=step)
            loss = model.step(texts)
            records = [
                (os.path.relpath(place.path), place.row, zlib.crc32(text))
                for place, text in zip(places, texts, strict=True)
            ]
            note(step=step, loss=loss, records=records)
            print(json.dumps({"step": step, "loss": loss}), file=losses, flush=True)
            step = loader.step
            if step % save_every == 0 or step == len(loader):
                save(run, loader, model)
            if step % max(1, save_every // 10) == 0 or step == len(loader):
                print(f"batch {step} of {len(loader)}, loss {loss:.3f}", flush=True)


def main() -> None:
    """Read the command line, open the data, and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of the run, made where it is not there")
    parser.add_argument("sources", nargs="+", help="a path, folder or glob; two of them, or one to be halved")
    parser.add_argument("--index-dir", help="where the indexes are, if not beside the data")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--save-every", type=int, default=100, help="batches between two saved states")
    parser.add_argument("--records", type=int, help="the most records of an epoch; all if left out")
    args = parser.parse_args()
    os.makedirs(args.run, exist_ok=True)
    first, second = open_sources(args.sources, args.index_dir)
    dataset = pipeline(first, second)
    if args.records:
        dataset = dataset.take(args.records)
    loader = sk.Loader(dataset, batch_size=args.batch_size)
    train(args.run, loader, save_every=args.save_every)


if __name__ == "__main__":
    main()
