"""What a loader delivers, from a flat list cut by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import seekable as sk

if TYPE_CHECKING:
    from seekable.loader.steps import End

__all__ = ["Flat", "Sizes", "batches_of", "shuffled"]

Sizes = int | list[tuple[int, int]]
"""The records of a batch; or pairs of a step and the records from there on."""

AHEAD = 20
"""Batches of an endless dataset that the model looks ahead."""


def shuffled(n: int, *, seed: int = 3) -> sk.Dataset:
    return sk.from_sequence(range(n)).shuffle(seed=seed)


@dataclass
class Flat:
    """The model: all epochs of a run are one list, and ``at`` says how much of it was delivered."""

    dataset: sk.Dataset
    batch: Sizes
    end: End
    epochs: int
    limit: int | None
    epoch: int = 0
    at: int = 0
    step: int = 0
    began: int = 0
    here: bool = True
    read: dict[int, list[Any]] = field(default_factory=dict)
    """The records of epochs that were read before."""

    @property
    def is_endless(self) -> bool:
        return self.dataset._node.size is None

    def run(self) -> list[Any]:
        if self.is_endless:
            return list(self.dataset.take(self.at + sum(self.sizes(AHEAD))))
        epochs = range(self.epoch, self.epoch + self.epochs)
        for epoch in epochs:
            if epoch not in self.read:
                self.read[epoch] = list(self.dataset.epoch(epoch))
        return [record for epoch in epochs for record in self.read[epoch]]

    def sizes(self, batches: int) -> list[int]:
        """Return the sizes of the next batches, step by step."""
        if isinstance(self.batch, int):
            return [self.batch] * batches
        return [
            [size for start, size in self.batch if start <= step][-1]
            for step in range(self.step, self.step + batches)
        ]

    def left(self) -> list[list[Any]]:
        run, at = self.run(), self.at
        batches: list[list[Any]] = []
        for size in self.sizes(len(run)):
            if at >= len(run):
                break
            batches.append(run[at : at + size])
            at += size
            if len(batches[-1]) < size:
                if self.end == "drop" or self.is_endless:
                    batches.pop()
                elif self.end == "pad":
                    while len(batches[-1]) < size:
                        batches[-1] += run[: size - len(batches[-1])]
        return batches if self.limit is None else batches[: max(0, self.began + self.limit - self.step)]

    def take(self) -> list[Any] | None:
        """Return the next batch; None at the end of the run, after which the next run lies ahead."""
        left = self.left()
        if not left:
            self.next_run()
            self.here = True
            return None
        self.forward(1)
        self.here = False
        return left[0]

    def forward(self, batches: int) -> None:
        batches = min(batches, len(self.left()))
        self.at = self.at + sum(self.sizes(batches))
        if not self.is_endless:
            self.at = min(self.at, len(self.run()))
        self.step += batches

    def next_run(self) -> None:
        if not self.is_endless:
            self.epoch, self.at = self.epoch + self.epochs, 0
        self.began = self.step

    def begin(self) -> None:
        """What ``iter`` does: go on at the present place if that was asked for, else with the next run."""
        if not self.here:
            self.next_run()
            self.here = True


def batches_of(
    dataset: sk.Dataset, batch: Sizes, *, end: End = "short", epochs: int = 1, runs: int = 1
) -> list[list[Any]]:
    """Return the batches of some runs."""
    model = Flat(dataset, batch, end, epochs, None)
    out: list[list[Any]] = []
    for _ in range(runs):
        while (made := model.take()) is not None:
            out.append(made)
    return out
