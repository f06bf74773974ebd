"""The share of a training step on a GPU that waits for data: packed tokens, and images from tar.

    python benchmarks/gpu_feed.py [--device cuda] [--steps 50] [--small]

A step is a forward and a backward pass with the optimizer: for tokens a transformer of about 1,000 million
parameters, for images a convolutional network. It is made with batches of a loader, and with one batch that
lies on the device already; what it takes longer with the loader is the wait. Both take turns, and the median
of the rounds counts. ``--small`` takes models that a CPU can train, to see that the program runs. It needs
PyTorch.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Sizes:
    """The sizes of models and batches."""

    rounds: int
    vocabulary: int
    layers: int
    width: int
    length: int
    sequences: int
    """Packed samples of a step."""
    documents: int
    channels: int
    images: int
    """Images of a step."""
    archives: int
    """Archives of 256 images."""


FULL = Sizes(5, 32_000, 20, 2048, 2048, 16, 20_000, 256, 256, 16)
SMALL = Sizes(1, 512, 1, 64, 128, 4, 500, 8, 8, 1)


class Tokens(nn.Module):
    """A transformer that predicts the next token of packed samples."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        heads = max(1, sizes.width // 128)
        layer = nn.TransformerEncoderLayer(sizes.width, heads, 4 * sizes.width, dropout=0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return the loss of a batch."""
        tokens = batch["tokens"].long()
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1] - 1, device=tokens.device)
        hidden = self.layers(self.embedding(tokens[:, :-1]), mask=mask, is_causal=True)
        scores = hidden @ self.embedding.weight.T
        return nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


class Images(nn.Module):
    """A convolutional network over images of 224 by 224."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        widths = [3, *(min(sizes.channels, 64 << level) for level in range(5))]
        pairs = itertools.pairwise(widths)
        self.layers = nn.Sequential(*(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairs))
        self.last = nn.Linear(widths[-1], 1000)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return the loss of a batch."""
        pixels = batch["npy"].permute(0, 3, 1, 2).float() / 255
        scores = self.last(self.layers(pixels).relu().mean((2, 3)))
        return nn.functional.cross_entropy(scores, batch["cls"].long())


def packed_tokens(folder: str, sizes: Sizes) -> sk.Dataset:
    """Return packed samples of documents of about 400 tokens, shuffled."""
    rng = np.random.default_rng(0)
    lengths = np.maximum(1, rng.lognormal(6, 1, sizes.documents).astype(int))
    documents = [{"tokens": rng.integers(0, sizes.vocabulary, length, np.uint16)} for length in lengths]
    sk.from_sequence(documents, version=1).write_tokens(folder)
    return sk.open(folder).pack(sizes.length, seed=0)


def images(folder: str, sizes: Sizes) -> sk.Dataset:
    """Return images of archives, as raw pixels, shuffled."""
    rng = np.random.default_rng(0)
    samples = [
        {
            "__key__": f"{number:06d}",
            "npy": rng.integers(0, 256, (224, 224, 3), np.uint8),
            "cls": int(rng.integers(1000)),
        }
        for number in range(256 * sizes.archives)
    ]
    sk.from_sequence(samples, version=1).write_tar(folder, rows_per_file=256)
    return sk.open(folder).shuffle(seed=0)


def batches(data: sk.Dataset, count: int, device: str, *, ahead: bool) -> Iterator[dict[str, Any]]:
    """Yield batches on a device without end: copied ahead by the loader, or by the loop itself."""
    given: dict[str, Any] = {"batch_size": count, "end": "drop", "epochs": 1000, "workers": 2}
    with sk.Loader(data, device=device if ahead else None, **given) as loader:
        for batch in loader:
            if ahead:
                yield batch
                continue
            arrays = {name: part for name, part in batch.items() if isinstance(part, np.ndarray)}
            yield {name: torch.from_numpy(np.array(part)).to(device) for name, part in arrays.items()}


def seconds_a_step(step: Callable[[Any], None], source: Iterator[Any], steps: int, device: str) -> float:
    """Return the seconds of a step, with the time that it takes to get its batch."""
    on_gpu = device.startswith("cuda")
    step(next(source))
    if on_gpu:
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step(next(source))
    if on_gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def measure(name: str, model: nn.Module, data: sk.Dataset, count: int, given: argparse.Namespace) -> None:
    """Print the wait of a job, with copies ahead and with copies in the loop."""
    model = model.to(given.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    kind = "cuda" if given.device.startswith("cuda") else "cpu"

    def step(batch: Any) -> None:
        with torch.autocast(kind, torch.bfloat16):
            loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    ways = {ahead: batches(data, count, given.device, ahead=ahead) for ahead in (True, False)}
    there = itertools.repeat(next(ways[True]))
    waits: dict[bool, list[float]] = {True: [], False: []}
    for _, ahead in itertools.product(range(given.rounds), ways):
        alone = seconds_a_step(step, there, given.steps, given.device)
        waits[ahead].append(1 - alone / seconds_a_step(step, ways[ahead], given.steps, given.device))
    shares = {ahead: 100 * statistics.median(each) for ahead, each in waits.items()}
    print(
        f"{name}: {1000 * alone:.1f} ms a step; waits for data {shares[True]:.1f} % with device=, "
        f"{shares[False]:.1f} % where the loop copies"
    )


def main() -> int:
    """Measure both jobs, or say that they are not measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=50, help="steps of a round (%(default)s)")
    parser.add_argument("--small", action="store_true", help="models that a CPU can train")
    given = parser.parse_args()
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print("packed tokens, a model of 1,000 million parameters: not measured, no GPU here")
        print("images from tar: not measured, no GPU here")
        return 0
    sizes = SMALL if given.small else FULL
    given.rounds = sizes.rounds
    with tempfile.TemporaryDirectory() as folder:
        packed = packed_tokens(os.path.join(folder, "tokens"), sizes)
        measure("packed tokens", Tokens(sizes), packed, sizes.sequences, given)
        pictures = images(os.path.join(folder, "images"), sizes)
        measure("images from tar", Images(sizes), pictures, sizes.images, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
