"""What ``bench`` measures: indexing, random reads and epochs, each beside what the machine can do at best."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from seekable.cli.excerpt import Excerpt
from seekable.cli.floor import Span, decode_in_batches, decode_singly, find_newlines, mapped
from seekable.cli.race import Result, race
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.nodes.sources.files import FileSource

BATCH = 256

_WINDOW, _LANES = 16, 8
_ROUND_SECONDS = 0.15
_FEWEST, _MOST = 64, 50_000
_TRIED = 200


@dataclass(frozen=True)
class Contests:
    """The files to measure with, and how long each contest may take."""

    excerpt: Excerpt
    budget_seconds: float

    def run(self, told: Callable[[str], None]) -> Iterator[Result]:
        """Yield what each contest has given; ``told`` is told its name before."""
        told("indexing")
        yield self._indexing()
        told("drawing records")
        for name, order, read in self._reads():
            spans = self._spans(order)
            told(name)
            floor = partial(_FLOORS.get(name, decode_singly), spans, self.decode)
            yield race(
                name,
                read,
                floor,
                floor_name="slice and decode",
                records=len(spans),
                size=sum(end - start for _, start, end in spans),
                budget_seconds=self.budget_seconds,
            )

    @property
    def decoded(self) -> bool:
        """Whether records are decoded; if one of those that are read cannot be, all are left as bytes."""
        return self.data.decoder.name == self.excerpt.format.decode

    @cached_property
    def data(self) -> FileSource:
        """The excerpt, opened."""
        data = self._open("index", decode=None)
        try:
            for order in self._orders(data).values():
                for view, start, end in self._spans(order):
                    data.decoder.fast(view[start:end])
        except Exception:  # noqa: BLE001 - whatever a decoder raises, records are measured as bytes then
            return self._open("index", decode="bytes")
        return data

    @property
    def decode(self) -> Callable[[memoryview], Any]:
        """What makes a record of bytes, in ours and in the floor."""
        return self.data.decoder.fast

    def _reads(self) -> Iterator[tuple[str, Dataset, Callable[[], object]]]:
        data, orders = Dataset(self.data), self._orders(self.data)
        rows = self._drawn.tolist()
        yield "random, one by one", orders["random"], partial(_one_by_one, data, rows)
        yield _BATCHED, orders["random"], partial(_in_batches, data, rows)
        for name, order in orders.items():
            if name != "random":
                yield name, order, partial(_through, order)

    def _orders(self, source: FileSource) -> dict[str, Dataset]:
        count, data = len(self._drawn), Dataset(source)
        return {
            "random": data.select(self._drawn),
            "epoch, shuffled": data.shuffle(seed=0).take(count),
            f"epoch, window={_WINDOW}, lanes={_LANES}": data.shuffle(
                seed=0, window=_WINDOW, lanes=_LANES
            ).take(count),
            "epoch, in file order": data.take(count),
        }

    @cached_property
    def _drawn(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Rows at random, as many as take a moment to read."""
        data = Dataset(self._open("index", decode="bytes"))
        rows = np.random.default_rng(0).integers(0, len(data), size=_MOST)
        began = time.perf_counter()
        _one_by_one(data, rows[:_TRIED].tolist())
        each = max(time.perf_counter() - began, 1e-6) / _TRIED
        return rows[: min(max(int(_ROUND_SECONDS / each), _FEWEST), _MOST)]

    def _indexing(self) -> Result:
        indexes = (f"index-{number}" for number in itertools.count())
        return race(
            "indexing, one process",
            lambda: self._open(next(indexes), decode=None),
            partial(find_newlines, self.excerpt.paths),
            floor_name="find newlines",
            records=self._open("index", decode=None).size,
            size=self.excerpt.bytes,
            budget_seconds=self.budget_seconds,
        )

    def _open(self, index: str, *, decode: str | None) -> FileSource:
        source = open_dataset(
            list(self.excerpt.paths),
            format=self.excerpt.format.name,
            decode=decode,
            index_dir=os.path.join(self.excerpt.folder, index),
            jobs=1,
            progress=_unheard,
        ).node
        assert isinstance(source, FileSource)
        return source

    def _spans(self, order: Dataset) -> list[Span]:
        """Return where the records of an order lie, in maps of our own."""
        places = order.locate(np.arange(len(order))) if len(order) else []
        return [(self._views[place.path], place.offset, place.offset + place.length) for place in places]

    @cached_property
    def _views(self) -> dict[str, memoryview]:
        return {path: mapped(path) for path in self.excerpt.paths if os.path.getsize(path)}


_BATCHED = f"random, {BATCH} at a time"
_FLOORS = {_BATCHED: partial(decode_in_batches, size=BATCH)}


def _one_by_one(data: Dataset, rows: Sequence[int]) -> None:
    for row in rows:
        data[row]


def _in_batches(data: Dataset, rows: Sequence[int]) -> None:
    for first in range(0, len(rows), BATCH):
        data[rows[first : first + BATCH]]


def _through(data: Dataset) -> None:
    for _ in data:
        pass


def _unheard(_: object) -> None:
    """Hear of progress, and draw no bar."""
