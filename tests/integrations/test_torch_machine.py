"""Whatever is done to a batch sampler and to the iterators of its DataLoader: it is as done to a Loader."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.integrations.torch_samplers import loader_of, numbers, sampled

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.integrations.torch import BatchSampler

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("next"), st.integers(1, 12)),
        st.tuples(st.just("begin"), st.none()),
        st.tuples(st.just("leave"), st.none()),
        st.tuples(st.just("skip"), st.integers(0, 4)),
        st.tuples(st.just("run"), st.integers(0, 3)),
        st.tuples(st.just("load"), st.integers(0, 20)),
    ),
    max_size=12,
)


class ReadingAhead:
    """A loader that requests batches before it delivers them, as torch's does with workers."""

    def __init__(self, dataset: sk.Dataset, batch_sampler: BatchSampler, ahead: int) -> None:
        self.dataset, self.batch_sampler, self._ahead = dataset, batch_sampler, ahead

    def __iter__(self) -> Iterator[Any]:
        requests = iter(self.batch_sampler)
        return self._deliver(requests, deque(itertools.islice(requests, self._ahead)))

    def _deliver(self, requests: Iterator[list[int]], waiting: deque[list[int]]) -> Iterator[Any]:
        while waiting:
            rows = waiting.popleft()
            waiting.extend(itertools.islice(requests, 1))
            yield self.dataset[rows]


class Pair:
    """A loader, and a sampler under torch, to which the same operations are applied.

    A move of a loader moves its live iterator; one of a sampler ends its iterators. So both begin anew then.
    """

    def __init__(self, n: int, batch: dict[str, Any], ahead: int) -> None:
        self.loader = loader_of(numbers(n), **batch)
        self.sampler, self.torch = sampled(numbers(n), batch=batch)
        if ahead:
            self.torch = ReadingAhead(numbers(n), self.sampler, ahead)
        self.runs: tuple[Any, Any] | None = None
        self.states = [self.loader.state_dict(rows=False)]

    def do(self, what: str, value: Any) -> None:
        if what == "begin" or (what in {"next", "skip"} and self.runs is None):
            self.begin()
        if what == "next" and self.runs is not None:
            for _ in range(value):
                assert _touched(self.runs[0]) == _touched(self.runs[1])
                self.check()
        elif what == "leave":
            self.runs = None
        elif what == "skip" and self.runs is not None:
            self.loader.skip_batches(value)
            self.sampler.skip_batches(value)
            self.loader.load_state_dict(self.loader.state_dict(rows=False))
            self.begin()
        elif what == "run":
            before = self.sampler.state_dict(rows=False)
            assert _announced(self.loader.sampler, value) == _announced(self.sampler, value)
            if self.sampler.state_dict(rows=False) != before and self.runs is not None:
                self.begin()
        elif what == "load":
            state = self.states[value % len(self.states)]
            self.loader.load_state_dict(state)
            self.sampler.load_state_dict(state)
            self.begin()
        self.check()

    def begin(self) -> None:
        self.runs = iter(self.loader), self.sampler.counting(self.torch)

    def check(self) -> None:
        state, own = (each.state_dict(rows=False) for each in (self.loader, self.sampler))
        state.pop("pass", None)  # a sampler has no use for it: no trainer begins its runs anew unseen
        for each in (state, own):
            del each["check"]
        assert own == state
        assert (self.sampler.step, self.sampler.epoch) == (self.loader.step, self.loader.epoch)
        self.states.append(state)


def _touched(run: Any) -> Any:
    try:
        return next(run, "end")
    except sk.errors.StoppedIterator:
        return "stopped"


def _announced(setter: Any, run: int) -> str | None:
    try:
        setter.set_epoch(run)
    except sk.errors.InvalidArgument as error:
        return str(error)
    return None


BATCHES = st.fixed_dictionaries(
    {"end": st.sampled_from(["short", "drop", "pad"]), "epochs": st.integers(1, 2)},
    optional={"steps": st.integers(1, 5)},
)


@pytest.mark.parametrize("ahead", [0, 4])
@given(n=st.integers(1, 20), batch=BATCHES, operations=OPERATIONS)
@example(
    n=1,
    batch={"end": "drop", "epochs": 1},
    operations=[("run", 2), ("next", 1), ("begin", None), ("run", 3), ("next", 1)],
)
def test_a_sampler_goes_where_a_loader_goes(
    ahead: int, n: int, batch: dict[str, Any], operations: list[tuple[str, Any]]
) -> None:
    pair = Pair(n, batch, ahead)
    for operation in itertools.chain(operations, [("begin", None), ("next", 5), ("leave", None)]):
        pair.do(*operation)
