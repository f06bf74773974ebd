"""The batches of runs, against a flat list cut by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from tests.loader.flat import batches_of, shuffled
from tests.thrift import sample

import seekable as sk

if TYPE_CHECKING:
    from seekable.loader.steps import End

ENDS = ("short", "drop", "pad")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_all_small_runs(end: End, epochs: int) -> None:
    for n, batch in sample(itertools.product(range(12), range(1, 14)), of=4):
        dataset = shuffled(n)
        loader = sk.Loader(dataset, batch_size=batch, end=end, epochs=epochs, collate=list, prefetch=0)
        wanted = batches_of(dataset, batch, end=end, epochs=epochs)
        assert list(loader) == wanted
        assert len(loader) == len(wanted)
        assert loader.step == len(wanted)
        assert loader.epoch == epochs
