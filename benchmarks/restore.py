"""From a state to the first batch, in a process that has the pipeline open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks import floors
from benchmarks.epochs import text
from benchmarks.measure import Contestant, Row, Target, absolute, race
from benchmarks.records import BATCH

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_EPOCHS = (0, 0.5, 1000, 1_000_000)
"""The numbers of epochs after which states are taken."""

_VIRTUAL = 10**12


def rows(data: Data) -> Iterator[Row]:
    """Measure how long a restart takes at several positions, and whether it depends on them."""
    for path in data.halves:
        floors.mapped(path)
    first, second = (sk.open(path).shuffle(seed=seed) for seed, path in enumerate(data.halves))
    ds = sk.mix([first, second], weights=[0.7, 0.3], seed=0).map(text)
    steps = {f"after {epochs:g} epochs": epochs for epochs in _EPOCHS}
    yield from _measured("restore", ds, steps, data)

    times = 1 + _VIRTUAL // data.sizes.records
    ds = sk.mix([first.repeat(times), second.repeat(times)], weights=[0.5, 0.5], seed=0).map(text)
    assert len(ds) >= _VIRTUAL
    steps = {f"at {part:.0%} of {len(ds):.0e}": part for part in (0, 0.5, 0.999)}
    yield from _measured("restore in 10^12 positions", ds, steps, data)


def _measured(name: str, ds: sk.Dataset, places: dict[str, float], data: Data) -> Iterator[Row]:
    """Measure restarts at some places, given in epochs."""
    trials = {place: _Restart(ds, _state(ds, epochs)) for place, epochs in places.items()}
    contestants = {place: Contestant(trial.run, prepare=trial.end) for place, trial in trials.items()}
    times = race(contestants, rounds=data.sizes.trials)
    for trial in trials.values():
        trial.end()
    medians = {place: times.median(place) * 1e3 for place in places}
    slowest = max(medians, key=medians.__getitem__)
    yield absolute(
        f"{name}, to the first batch",
        medians[slowest],
        "ms",
        Target("at most", 5),
        against=f"slowest of {len(places)} positions: {slowest}",
    )
    fastest = min(medians, key=medians.__getitem__)
    yield absolute(
        f"{name}, slowest over fastest",
        medians[slowest] / medians[fastest],
        "x",
        Target("at most", 1.2),
        against=", ".join(f"{place} {median:.2f} ms" for place, median in medians.items()),
    )


def _state(ds: sk.Dataset, epochs: float) -> dict[str, Any]:
    """Return the state of a run that has delivered so many epochs, as it comes out of a file."""
    with sk.Loader(ds, batch_size=BATCH, collate=list) as loader:
        loader.set_epoch(int(epochs))
        loader.skip_batches(int((epochs - int(epochs)) * len(loader)))
        state: dict[str, Any] = json.loads(json.dumps(loader.state_dict()))
        return state


class _Restart:
    """As in a script that is started again: the pipeline is there, the loader is new."""

    def __init__(self, ds: sk.Dataset, state: dict[str, Any]) -> None:
        self._ds = ds
        self._state = state
        self._loader = sk.Loader(ds)

    def run(self) -> None:
        """Load the state, and read the first batch after it."""
        self._loader = sk.Loader(self._ds, batch_size=BATCH, collate=list)
        self._loader.load_state_dict(self._state)
        next(iter(self._loader))

    def end(self) -> None:
        """Wait for the thread that goes on prefetching."""
        self._loader.close()
