"""The process on the other side of ``subprocess_peer``: does the jobs of one library, in its environment.

    python benchmarks/peer_server.py MODULE SOURCE FOLDER

``MODULE`` has the library's name, its ``convert`` and its ``Opponent``. Requests are JSON lines on stdin, and
each gets one JSON line. Nothing but the standard library is imported here.
"""

from __future__ import annotations

import collections
import importlib
import importlib.metadata
import itertools
import json
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(arguments: list[str]) -> None:
    """Answer requests until there are no more."""
    # Libraries print: what they print must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.disable(logging.CRITICAL)
    module, source, folder = arguments
    try:
        library = importlib.import_module(module)
        opponent = _opened(library, source, folder)
    except ModuleNotFoundError:
        _answer(answers, {"absent": "not installed"})
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are measured without this one
        _answer(answers, {"absent": f"does not start: {error!r:.100}"})
        return
    _answer(answers, {"version": importlib.metadata.version(library.DISTRIBUTION)})
    jobs = Jobs(opponent)
    for line in sys.stdin:
        request = json.loads(line)
        _answer(answers, getattr(jobs, request.pop("job"))(**request))


class Jobs:
    """The jobs that an opponent can do, by the names of the methods."""

    def __init__(self, opponent: Any) -> None:
        self._opponent = opponent
        self._rows: list[int] = []

    def rows(self, rows: list[int]) -> list[Any]:
        """Keep the rows that are read from now on, and return the first few of their records."""
        self._rows = rows
        if not hasattr(self._opponent, "get"):
            return []
        shown = getattr(self._opponent, "shown", self._opponent.get)
        return [shown(row) for row in rows[:5]]

    def single(self, count: int) -> float:
        """Return how many seconds it takes to read some of the rows, one by one."""
        get, rows = self._opponent.get, self._rows[:count]

        def read() -> None:
            for row in rows:
                get(row)

        return _seconds(read)

    def batches(self, count: int, size: int) -> float:
        """Return how many seconds it takes to read some of the rows, so many at a time."""
        get_many, rows = self._opponent.get_many, self._rows[:count]
        batches = [rows[first : first + size] for first in range(0, count, size)]
        return _seconds(lambda: [None for batch in batches if not get_many(batch)])

    def epoch(self, count: int) -> float:
        """Return how many seconds the first so many records of an epoch take."""
        return _seconds(lambda: collections.deque(itertools.islice(self._opponent.epoch(), count), maxlen=0))

    def loaded(self, *, with_map: bool, warm: bool) -> float:
        """Return how many seconds an epoch of batches takes that workers make.

        Where the workers were not there before, the clock runs from the first batch on.
        """
        batches = self._opponent.loaded(with_map=with_map)
        if warm:
            return _seconds(lambda: collections.deque(batches, maxlen=0))
        run = iter(batches)
        next(run)
        return _seconds(lambda: collections.deque(run, maxlen=0))

    def fetched(self, **store: Any) -> dict[str, float]:
        """Return how many seconds an epoch over a store takes, and its first batch; count its records."""
        began = time.perf_counter()
        first, records = 0.0, 0
        for batch in self._opponent.fetched(**store):
            first = first or time.perf_counter() - began
            records += len(batch["id"])
        return {"first": first, "seconds": time.perf_counter() - began, "records": records}

    def asked(self, call: str, **arguments: Any) -> Any:
        """Return what a method of the opponent returns, which measures itself."""
        return getattr(self._opponent, call)(**arguments)

    def ids(self) -> list[int] | None:
        """Return the ids of an epoch in their order, unless it has none."""
        if not hasattr(self._opponent, "epoch"):
            return None
        return [record["id"] for record in self._opponent.epoch()]


def _opened(library: Any, source: str, folder: str) -> Any:
    if not os.path.exists(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        new = f"{folder}.{os.getpid()}.new"
        library.convert(source, new)
        os.rename(new, folder)
    return library.Opponent(folder)


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _answer(answers: Any, answer: object) -> None:
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    sys.path[0] = ROOT  # not this folder, whose names others use too
    main(sys.argv[1:])
