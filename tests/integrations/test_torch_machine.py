"""Whatever is done to a batch sampler and to the iterators of its DataLoader: it is as done to a Loader."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.torch_samplers import loader_of, numbers, sampled

import seekable as sk

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


class Pair:
    """A loader, and a sampler under torch, that are done the same to."""

    def __init__(self, n: int, batch: dict[str, Any], how: dict[str, Any]) -> None:
        self.loader = loader_of(numbers(n), **batch)
        self.sampler, self.torch = sampled(numbers(n), batch=batch, **how)
        self.runs: tuple[Any, Any] | None = None
        self.states = [self.loader.state_dict()]

    def do(self, what: str, value: Any) -> None:
        # What asks ahead does not ask any more when all is delivered: only a new iterator goes elsewhere.
        is_drained = bool(self.torch.num_workers) and self.left == 0
        if what == "begin" or (what == "next" and self.runs is None):
            self.runs = iter(self.loader), iter(self.torch)
        if what == "next" and self.runs is not None:
            for _ in range(value):
                assert _touched(self.runs[0]) == _touched(self.runs[1])
                self.check()
        elif (
            what == "leave" and not self.torch.persistent_workers
        ):  # which outlive the loop, as its iterator does
            self.runs = None
        elif what == "skip":
            self.loader.skip_batches(value)
            self.sampler.skip_batches(value)
        elif what == "run":
            assert _announced(self.loader.sampler, value) == _announced(self.sampler, value)
        elif what == "load":
            state = self.states[value % len(self.states)]
            self.loader.load_state_dict(state)
            self.sampler.load_state_dict(state)
        if is_drained and self.runs is not None and what in {"skip", "run", "load"}:
            self.runs = iter(self.loader), iter(self.torch)
        self.check()

    @property
    def left(self) -> int | None:
        course = self.sampler._course
        return course.steps.left(course.cursor)

    def check(self) -> None:
        state = self.loader.state_dict()
        assert self.sampler.state_dict() == state
        assert (self.sampler.step, self.sampler.epoch) == (self.loader.step, self.loader.epoch)
        self.states.append(state)


def _touched(run: Any) -> Any:
    try:
        return next(run, "end")
    except sk.StoppedIterator:
        return "stopped"


def _announced(setter: Any, run: int) -> str | None:
    try:
        setter.set_epoch(run)
    except sk.InvalidArgument as error:
        return str(error)
    return None


def _do(n: int, batch: dict[str, Any], how: dict[str, Any], operations: list[tuple[str, Any]]) -> None:
    pair = Pair(n, batch, how)
    for operation in itertools.chain(operations, [("begin", None), ("next", 5), ("leave", None)]):
        pair.do(*operation)


BATCHES = st.fixed_dictionaries(
    {"end": st.sampled_from(["short", "drop", "pad"]), "epochs": st.integers(1, 2)},
    optional={"steps": st.integers(1, 5)},
)


@given(st.integers(1, 20), BATCHES, OPERATIONS)
def test_a_sampler_goes_where_a_loader_goes(
    n: int, batch: dict[str, Any], operations: list[tuple[str, Any]]
) -> None:
    _do(n, batch, {}, operations)


@pytest.mark.parametrize(
    "how",
    [{"num_workers": 1, "prefetch_factor": 4}, {"num_workers": 2, "persistent_workers": True}],
    ids=["one", "two that stay"],
)
@given(st.integers(1, 20), BATCHES, OPERATIONS)
def test_a_sampler_goes_where_a_loader_goes_with_workers(
    how: dict[str, Any], n: int, batch: dict[str, Any], operations: list[tuple[str, Any]]
) -> None:
    _do(n, batch, how, operations)
