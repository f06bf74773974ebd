"""A loader under any sequence of calls delivers what a flat list cut by hand delivers."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.loader.flat import Flat, Sizes, shuffled

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.steps import End

RAMPS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 12)), min_size=1, max_size=4).map(
    lambda pairs: [(sum(gap for gap, _ in pairs[:at]), size) for at, (_, size) in enumerate(pairs)]
)
BATCHES: st.SearchStrategy[Sizes] = st.integers(1, 12) | RAMPS
ENDS: st.SearchStrategy[End] = st.sampled_from(["short", "drop", "pad"])
PREFETCH = st.sampled_from([0, 0, 1, 2])
LIMITS = st.sampled_from([None, None, 1, 3, 6])


def endless(n: int) -> sk.Dataset:
    return sk.mix([shuffled(n), shuffled(2 * n)], weights=[2, 1], seed=5, stop="never")


def common(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without what depends on how the batches of its loader are said."""
    return {key: value for key, value in state.items() if key not in {"began", "ramp", "check"}}


class LoaderMachine(RuleBasedStateMachine):
    """Runs a loader and its model side by side."""

    @initialize(
        n=st.one_of(st.integers(0, 5), st.integers(0, 40)),
        batch=BATCHES,
        epochs=st.integers(1, 3),
        end=ENDS,
        limit=LIMITS,
        prefetch=PREFETCH,
        is_endless=st.sampled_from([False, False, True]),
    )
    def make(
        self,
        n: int,
        batch: Sizes,
        epochs: int,
        end: End,
        limit: int | None,
        prefetch: int,
        *,
        is_endless: bool,
    ) -> None:
        self.dataset = endless(n + 1) if is_endless else shuffled(n)
        self.model = Flat(self.dataset, batch, end, epochs, limit)
        self.run: Iterator[Any] | None = None
        self.ended = False
        self.saved: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.loader = self.new_loader(prefetch)

    def new_loader(self, prefetch: int) -> sk.Loader:
        model = self.model
        return sk.Loader(
            self.dataset,
            global_batch_size=model.batch,
            end=model.end,
            epochs=None if model.is_endless else model.epochs,
            steps=model.limit,
            collate=list,
            prefetch=prefetch,
        )

    @rule()
    def begin(self) -> None:
        before = self.run
        self.run = iter(self.loader)
        self.model.begin()
        if before is not None and not self.ended:
            with contextlib.suppress(sk.errors.StoppedIterator):
                next(before)
                raise AssertionError("the earlier iterator went on")
        self.ended = False

    @rule(count=st.integers(1, 6))
    def deliver(self, count: int) -> None:
        if self.run is None or self.ended:
            self.begin()
        assert self.run is not None
        for _ in range(count):
            wanted = self.model.take()
            assert next(self.run, None) == wanted
            if wanted is None:
                self.ended = True
                assert next(self.run, None) is None
                return

    @precondition(lambda self: self.model.limit or not self.model.is_endless)
    @rule()
    def deliver_the_run(self) -> None:
        self.deliver(1000)

    @rule(count=st.integers(0, 5))
    def skip(self, count: int) -> None:
        if self.run is None:
            self.model.begin()
        self.model.forward(count)
        self.loader.skip_batches(count)

    @rule()
    def break_off(self) -> None:
        self.run, self.ended = None, False
        self.loader.close()

    @rule(epoch=st.integers(0, 5))
    def set_epoch(self, epoch: int) -> None:
        model = self.model
        if model.is_endless:
            epoch = 0
        elif not model.here or epoch != model.epoch:
            model.epoch, model.at, model.began, model.here = epoch, 0, model.step, True
            self.run = None
        self.loader.set_epoch(epoch)

    @rule()
    def save(self) -> None:
        model = self.model
        place = {"epoch": model.epoch, "at": model.at, "step": model.step, "began": model.began}
        self.saved.append((json.loads(json.dumps(self.loader.state_dict())), place))

    @precondition(lambda self: self.saved)
    @rule(number=st.integers(0, 100))
    def load(self, number: int) -> None:
        """Load an earlier state into the loader as it stands, with an iterator or without."""
        state, place = self.saved[number % len(self.saved)]
        kept = json.dumps(state)
        self.loader.load_state_dict(state)
        assert json.dumps(state) == kept
        assert common(self.loader.state_dict()) == common(state)
        self.go_to(place)

    @precondition(lambda self: self.saved)
    @rule(
        number=st.integers(0, 100),
        batch=BATCHES,
        end=ENDS,
        more_epochs=st.integers(0, 2),
        prefetch=PREFETCH,
        begun=st.sampled_from([False, True]),
    )
    def load_into_a_new_loader(
        self, number: int, batch: Sizes, end: End, more_epochs: int, prefetch: int, *, begun: bool
    ) -> None:
        state, place = self.saved[number % len(self.saved)]
        self.model.batch, self.model.end = batch, end
        self.model.epochs += more_epochs
        self.loader.close()
        self.loader = self.new_loader(prefetch)
        self.run = iter(self.loader) if begun else None
        self.ended = False
        self.loader.load_state_dict(state)
        self.go_to(place)

    @rule()
    def load_nothing(self) -> None:
        self.loader.load_state_dict({})

    def go_to(self, place: dict[str, Any]) -> None:
        for name, value in place.items():
            setattr(self.model, name, value)
        self.model.here = True

    @invariant()
    def stands_where_the_model_stands(self) -> None:
        if hasattr(self, "loader"):
            assert self.loader.step == self.model.step
            assert self.loader.epoch == self.model.epoch
            start = 0 if self.model.is_endless else self.model.epoch * len(self.dataset)
            assert self.loader.state_dict()["position"] == start + self.model.at
            assert self.loader.global_batch_size == self.model.sizes(1)[0]
            if not self.model.is_endless:
                assert self.loader.steps_left == len(self.model.left())

    def teardown(self) -> None:
        if hasattr(self, "loader"):
            self.loader.close()


TestLoader = LoaderMachine.TestCase
TestLoader.settings = settings(stateful_step_count=30)
