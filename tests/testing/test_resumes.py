"""The assertion of exact resume finds pipelines that do not."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.loader.flat import shuffled

import seekable as sk
from seekable.testing import assert_resumes_exactly


class Counted:
    """Counts its calls, which no state knows of."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def __call__(self, record: int) -> tuple[int, int]:
        return record, next(self.calls)


class Changing:
    """Data that is another each time it is opened."""

    made = itertools.count()

    def __init__(self) -> None:
        self.number = next(self.made)

    def __len__(self) -> int:
        return 10

    def __getitem__(self, row: int) -> tuple[int, int]:
        return self.number, row


class Forgetful(sk.Loader):
    """A loader whose states are one batch late."""

    def state_dict(self, *, partial: bool = False, rows: bool = False) -> dict[str, Any]:
        state = super().state_dict(partial=partial, rows=rows)
        del state["check"]  # As of any state that is changed on purpose.
        return {**state, "position": max(0, state["position"] - 4), "step": max(0, state["step"] - 1)}


class Restless(sk.Loader):
    """A loader that takes another state on than it is given."""

    def load_state_dict(self, state: Any, **arguments: Any) -> None:
        changed = {key: value for key, value in state.items() if key != "check"}
        super().load_state_dict({**changed, "step": state["step"] + 1}, **arguments)


numbers = partial(shuffled, 20)
"""Not a function of this module: new processes would import it, and pytest."""


def test_hidden_state_in_a_function_is_found() -> None:
    with pytest.raises(AssertionError, match=r"cut at \d+.*: item \d+ is .* in the uninterrupted run"):
        assert_resumes_exactly(lambda: numbers().map(Counted(), version=1), new_process=False)


def test_randomness_without_a_seed_is_found() -> None:
    rng = np.random.default_rng()
    with pytest.raises(AssertionError, match="cut at"):
        assert_resumes_exactly(
            lambda: sk.Loader(numbers().map(lambda record: record + rng.random()), batch_size=4),
            new_process=False,
        )


def test_data_that_changes_is_found() -> None:
    with pytest.raises(AssertionError, match="cut at"):
        assert_resumes_exactly(lambda: sk.from_sequence(Changing()), new_process=False)


def test_states_that_are_late_are_found() -> None:
    with pytest.raises(AssertionError, match="cut at"):
        assert_resumes_exactly(lambda: Forgetful(numbers(), batch_size=4, collate=list), new_process=False)


def test_a_state_that_changes_by_being_restored_is_found() -> None:
    with pytest.raises(AssertionError, match="the state changed by being restored"):
        assert_resumes_exactly(lambda: Restless(numbers(), batch_size=4, collate=list), new_process=False)


def test_what_differs_only_in_a_new_process_is_found() -> None:
    """The hash of a string is another one in each process."""
    with pytest.raises(AssertionError, match="in a new process"):
        assert_resumes_exactly(lambda: numbers().map(lambda record: hash(str(record))), cuts=[3])


def test_only_the_cuts_that_are_asked_for_are_made() -> None:
    """A fault that shows at batch 3 alone."""
    made: list[int] = []

    def factory() -> sk.Loader:
        loader = sk.Loader(numbers(), batch_size=4, collate=list, prefetch=0)
        made.append(1)
        return loader

    assert_resumes_exactly(factory, cuts=[0, 2], new_process=False, runs=1)
    assert len(made) == 1 + 2 * 2


def doubled(number: int) -> int:
    return 2 * number


def test_datasets_and_loaders_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a script, which a new process does not run, fingerprints have its name.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "train.py", raising=False)
    monkeypatch.setattr(doubled, "__module__", "__main__")
    assert_resumes_exactly(lambda: shuffled(8).map(doubled))
    assert_resumes_exactly(lambda: sk.Loader(numbers(), batch_size=3, end="pad", epochs=2), runs=2)


def test_streams_pass() -> None:
    assert_resumes_exactly(lambda: numbers().stream(lanes=3, epochs=2).shuffle(buffer=4, seed=1))
    assert_resumes_exactly(lambda: numbers().stream().batch(7), cuts=[0, 5, 1000], new_process=False)


def test_a_stage_with_a_hidden_memory_is_found() -> None:
    with pytest.raises(AssertionError, match=r"cut at \d+.*: item \d+ is .* in the uninterrupted run"):
        assert_resumes_exactly(
            lambda: numbers().stream(epochs=1).map(Counted(), version=1), new_process=False
        )


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match=r"a Loader, a Dataset or a Stream \(got list\)"):
        assert_resumes_exactly(lambda: [1, 2, 3])  # type: ignore[arg-type, return-value]


def test_a_cut_beyond_the_end_is_refused() -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"cuts must be from 0 to 3, the number of batches \(got 4\)"
    ):
        assert_resumes_exactly(lambda: sk.from_sequence(range(3)), runs=1, cuts=[0, 4], new_process=False)
