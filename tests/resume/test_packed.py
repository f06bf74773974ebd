"""A packed stream that drops or marks its ends resumes by rows at every cut."""

from __future__ import annotations

from typing import Any

import pytest

import seekable as sk

DOCUMENTS = [[number] * (1 + number * 5 % 7) for number in range(1, 24)]


def packed(length: int, **given: Any) -> sk.Loader:
    documents = sk.from_sequence(DOCUMENTS, version="documents").shuffle(seed=4)
    return sk.Loader(documents.stream(lanes=2, epochs=1).pack(length, **given), batch_size=1, end="short")


def rows_in(batches: list[Any]) -> set[int]:
    return {int(number) for batch in batches for number in batch["tokens"].ravel() if number > 0}


@pytest.mark.parametrize("method", ["concat", "best_fit"])
def test_each_row_comes_before_a_cut_or_behind_it(method: Any) -> None:
    old = packed(6, method=method, bins=2, separator=-1, end="drop")
    length = len(list(packed(6, method=method, bins=2, separator=-1, end="drop")))
    everything, run = set(range(1, 24)), iter(old)
    before: set[int] = set()
    for _ in range(length):
        new = packed(5, separator=-2)
        new.load_state_dict(old.state_dict(), resume="rows")
        behind = rows_in(list(new))
        assert before | behind == everything
        assert not before & behind, "a row that was delivered in part counts as delivered"
        before |= rows_in([next(run)])
