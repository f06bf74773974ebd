"""One answer: a record, or its error, is the same however it is read, and whatever was damaged is named.

The world is closed: tests/format_cases.py has a case for each format.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from tests.format_cases import CASES, PLAIN
from tests.fuzz import formats
from tests.thrift import sample, some

import seekable as sk
from seekable.testing import one_answer

if TYPE_CHECKING:
    from pathlib import Path

SOME = [*PLAIN, *sample([name for name in CASES if name not in PLAIN], of=3)]
"""A plain case for each format, and a share of the others."""


@pytest.mark.parametrize("name", SOME)
def test_a_record_is_the_same_however_it_is_read(name: str) -> None:
    with formats.written(CASES[name]) as folder:
        answers = one_answer.check(formats.opener(CASES[name], folder))
    assert not isinstance(answers, one_answer.Refused)
    assert answers
    assert not any(isinstance(answer, one_answer.Refused) for answer in answers.values())


@pytest.mark.parametrize("name", SOME)
def test_damaged_data_gives_one_answer_too(name: str) -> None:
    for number in range(some(20, of=20)):
        formats.data(CASES[name], random.Random(f"data {name} {number}"))


@pytest.mark.parametrize("name", SOME)
def test_a_damaged_index_changes_no_record(name: str) -> None:
    for number in range(some(40, of=20)):
        formats.index(CASES[name], random.Random(f"index {name} {number}"))


def test_a_difference_between_two_ways_is_found(tmp_path: Path) -> None:
    lines = [json.dumps({"id": row}) for row in range(7)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    ds = sk.open(tmp_path, index=sk.Index(jobs=1))
    opened = iter([ds, ds, ds.select([1, *range(1, 7)])])
    with pytest.raises(AssertionError, match="by iterating, and alone, backwards: row 0"):
        one_answer.check(lambda **_: next(opened, ds))
