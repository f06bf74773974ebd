"""A process that does one job on an index of many files: nothing that another job left in memory is there.

    python benchmarks/at_scale_jobs.py JOB PLACE

``PLACE`` is a `Place` as JSON. A line comes when all is ready, and one with the seconds at the end; meanwhile
the caller watches the memory of the process.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    sys.path[0] = ROOT

import numpy as np  # noqa: E402 - a script is given its own folder, not the root

import seekable as sk  # noqa: E402
from seekable.nodes import filter as filter_node  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

FAR = 10**12
"""The position at which a run goes on."""

RECORDS_OF_RANK = 16
"""The records of a rank in a batch."""

KEPT_EVERY = 10
"""Of so many records a filter keeps one."""

_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files and their index are, and for how many ranks a run is planned."""

    data: str
    index: str
    scratch: str
    """A folder for states and kept rows."""
    records: int
    ranks: int

    @property
    def batch(self) -> int:
        """The records of a batch over all ranks."""
        return RECORDS_OF_RANK * self.ranks

    def open(self) -> sk.Dataset:
        """Open all files; their index is there but in the first job."""
        return sk.open(self.data, index=sk.Index(folder=self.index, jobs=2))

    def windowed(self, seed: int = 0) -> sk.Dataset:
        """Return the records in windows, in a lane for each rank."""
        return self.open().shuffle(seed=seed, window=16, lanes=self.ranks)

    def mixed(self, weights: list[int]) -> sk.Dataset:
        """Return a mixture of shuffled datasets."""
        parts = [self.open().shuffle(seed=seed) for seed in range(len(weights))]
        return sk.mix(parts, weights=weights, seed=0)

    def loader(self, data: sk.Dataset | sk.Stream, rank: int, epochs: int = 1) -> sk.Loader:
        """Return the loader of a rank."""
        return sk.Loader(
            data,
            global_batch_size=self.batch,
            rank=rank,
            world_size=self.ranks,
            epochs=epochs if isinstance(data, sk.Dataset) else None,
            end="drop",
            prefetch=0,
            collate=list,
        )

    def folder(self, name: str) -> str:
        """Return the path of a folder that is not there yet."""
        path = os.path.join(self.scratch, name)
        shutil.rmtree(path, ignore_errors=True)
        return path


def index(place: Place) -> Generator[None]:
    """Build the index of all files, in two processes."""
    yield
    assert len(place.open()) == place.records


def opening(place: Place) -> Generator[None]:
    """Open all files: list them, and compare each with the index."""
    yield
    assert len(place.open()) == place.records


def record(place: Place) -> Generator[None]:
    """Read the first record of a dataset that is open."""
    ds = place.open()
    yield
    assert ds[0]


def step(place: Place) -> Generator[None]:
    """Plan a step of all ranks, of records that are shuffled over all files."""
    yield from _planned(place, place.open().shuffle(seed=0))


def windowed_step(place: Place) -> Generator[None]:
    """Plan a step of all ranks, of records in windows; the table of the epoch is made."""
    yield from _planned(place, place.windowed())


def mixed_step(place: Place) -> Generator[None]:
    """Plan a step of a mixture of eight datasets in windows; a table is made for each."""
    yield from _planned(
        place, sk.mix([place.windowed(seed) for seed in range(8)], weights=range(1, 9), seed=0)
    )


def _planned(place: Place, ds: sk.Dataset) -> Generator[None]:
    loader = place.loader(ds, 0)
    yield
    planned = loader.locate(step=len(loader) // 2)
    assert len(planned) == place.batch


def restore(place: Place) -> Generator[None]:
    """Make the loader of the last rank, load a state at a far position, and read the first batch."""
    ds = place.open().shuffle(seed=0)
    epochs = 2 + FAR // place.records
    before = place.loader(ds, place.ranks - 1, epochs)
    before.skip_batches(FAR // place.batch)
    state = json.loads(json.dumps(before.state_dict(rows=False)))
    assert state["position"] + place.batch > FAR
    yield
    loader = place.loader(ds, place.ranks - 1, epochs)
    loader.load_state_dict(state)
    assert len(next(iter(loader))) == RECORDS_OF_RANK


def kept_rows(place: Place) -> Generator[None]:
    """Open the rows that a filter kept in a file, and read a record of them."""
    path = os.path.join(place.scratch, "kept.u64")
    ds = place.open()
    # Which records are kept is made up: to find out, all of them would be read.
    vars(filter_node)["kept_rows"] = _every_tenth
    ds.filter(_is_kept, save=path)
    yield
    kept = ds.filter(_is_kept, save=path).shuffle(seed=0)
    assert len(kept) == -(-place.records // KEPT_EVERY)
    assert kept[len(kept) // 2]


def _is_kept(_: object) -> bool:
    raise AssertionError("rows are made up, and no record is read for them")


def _every_tenth(_node: object, _choice: object, size: int, **_: object) -> Iterator[NDArray[np.int64]]:
    for start in range(0, size, KEPT_EVERY * _ROWS_AT_ONCE):
        yield np.arange(start, min(size, start + KEPT_EVERY * _ROWS_AT_ONCE), KEPT_EVERY)


def save(place: Place) -> Generator[None]:
    """Save the states of all ranks, one after the other; and load them into the last one."""
    folder, ds = place.folder("states"), place.open().shuffle(seed=0)
    loaders = [place.loader(ds, rank) for rank in range(place.ranks)]
    yield
    _save_and_load(folder, loaders)


def save_lanes(place: Place) -> Generator[None]:
    """Save the states of a stream with a lane for each rank; and load them, merged, into the last one."""
    folder, stream = place.folder("lanes"), place.windowed().stream().shuffle(buffer=100, seed=1)
    loaders = [place.loader(stream, rank) for rank in range(place.ranks)]
    for loader in loaders:
        next(iter(loader))
    yield
    _save_and_load(folder, loaders)


def _save_and_load(folder: str, loaders: list[sk.Loader]) -> None:
    for loader in loaders:
        sk.save_state(folder, loader)
    assert sk.load_state(folder, loaders[-1])
    assert len(next(iter(loaders[-1]))) == RECORDS_OF_RANK


def rows(place: Place) -> Generator[None]:
    """Take over the rest of a shuffled epoch by rows, and read the first batch."""
    yield from _by_rows(place, place.open().shuffle(seed=0), place.open().shuffle(seed=1))


def mixed_rows(place: Place) -> Generator[None]:
    """Take over the rests of the epochs of four datasets, whose weights change."""
    yield from _by_rows(place, place.mixed([1, 2, 3, 4]), place.mixed([4, 3, 2, 1]))


def _by_rows(place: Place, old: sk.Dataset, new: sk.Dataset) -> Generator[None]:
    before = place.loader(old, 0)
    before.skip_batches(len(before) // 2)
    state = json.loads(json.dumps(before.state_dict()))
    loader = place.loader(new, place.ranks - 1)
    yield
    loader.load_state_dict(state, resume="rows")
    assert len(next(iter(loader))) == RECORDS_OF_RANK


def add(place: Place) -> Generator[None]:
    """Add a file to the others: list all, scan one, and write the table and the catalog."""
    added = os.path.join(place.data, "added.jsonl")
    with open(added, "w", encoding="utf-8") as file:
        file.write('{"id": 1}\n')
    os.utime(added, (1_700_000_000, 1_700_000_000))
    try:
        yield
        assert len(place.open()) == place.records + 1
    finally:
        os.unlink(added)


def simulate(place: Place) -> Generator[None]:
    """Simulate an epoch of the shuffled records on the nodes, of eight ranks each."""
    yield from _simulated(place, place.open().shuffle(seed=0))


def windowed_simulate(place: Place) -> Generator[None]:
    """Simulate an epoch of the records in windows."""
    yield from _simulated(place, place.windowed())


def _simulated(place: Place, ds: sk.Dataset) -> Generator[None]:
    nodes = max(1, place.ranks // 8)
    yield
    found = sk.simulate(
        ds,
        nodes=nodes,
        ranks=place.ranks // nodes,
        global_batch_size=place.batch,
        records_per_second=1e6,
    )
    assert found.records == place.records


JOBS = {
    job.__name__: job
    for job in (
        *(index, opening, record, step, windowed_step, mixed_step, restore, kept_rows, save, save_lanes),
        *(rows, mixed_rows, add, simulate, windowed_simulate),
    )
}


def timed(job: str, place: Place, *, ready: Any = lambda: None) -> float:
    """Return the seconds of a job, without what it prepares.

    Args:
        job: its name.
        place: the files.
        ready: is called when all is prepared.
    """
    running = JOBS[job](place)
    next(running)
    ready()
    began = time.perf_counter()
    next(running, None)
    return time.perf_counter() - began


def argument(place: Place) -> str:
    """Return a place as the argument of this program."""
    return json.dumps(asdict(place))


def main(job: str, place: str) -> None:
    """Do a job, and print a line before it and the seconds after it."""
    warnings.simplefilter("ignore", sk.errors.CacheTooSmall)
    print(timed(job, Place(**json.loads(place)), ready=lambda: print(flush=True)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
