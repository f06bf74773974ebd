"""The proof by induction finds loaders that do not resume exactly."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.induction import check_every_cut, check_in_a_new_process

import seekable as sk


class Late(sk.Loader):
    """A loader whose states are one batch late."""

    def state_dict(self, *, partial: bool = False, rows: bool = False) -> dict[str, Any]:
        state = super().state_dict(partial=partial, rows=rows)
        del state["check"]  # As of any state that is changed on purpose.
        return {**state, "position": max(0, state["position"] - 4), "step": max(0, state["step"] - 1)}


def loader_of(record_of: Any = int, kind: type[sk.Loader] = sk.Loader) -> sk.Loader:
    dataset = sk.from_sequence(range(20)).shuffle(seed=1).map(record_of, version=1)
    return kind(dataset, batch_size=4, collate=list, prefetch=0)


def test_a_loader_that_resumes_exactly_passes() -> None:
    check_every_cut(loader_of)


def test_a_state_that_is_late_is_found() -> None:
    with pytest.raises(AssertionError, match="cut at 7: the state changed"):
        check_every_cut(lambda: loader_of(kind=Late))


def test_records_that_depend_on_what_was_read_before_are_found() -> None:
    calls = itertools.count()
    with pytest.raises(AssertionError, match=r"cut at 0: batch 0 is \[.*\], without a cut \["):
        check_every_cut(lambda: loader_of(lambda record: (record, next(calls))))


def test_what_differs_only_in_a_new_process_is_found_and_named() -> None:
    """The hash of a string is another one in each process."""
    with pytest.raises(AssertionError, match="in a new process") as caught:
        check_in_a_new_process(
            [("steady", loader_of), ("hashed", lambda: loader_of(lambda record: hash(str(record))))]
        )
    assert "AssertionError: hashed" in str(caught.value)
