"""``make mutants``: each fault can be planted, each law has one, and one that nothing finds is told of."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests import mutants
from tests.mutants import MUTANTS, Found, Mutant, chosen, line_of, replaced, targets
from tests.rooms import FLOW

SOURCES = Path(__file__).resolve().parent.parent / "src" / "seekable"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_mutant_can_be_planted_and_its_tests_are_there(mutant: Mutant) -> None:
    whole = (SOURCES / mutant.path).read_text(encoding="utf-8")
    compile(replaced(whole, mutant), mutant.path, "exec")
    for some in targets(mutant):
        assert some
        assert all((SOURCES.parent.parent / each).exists() for each in some)


def test_each_law_and_nearly_each_room_has_a_mutant() -> None:
    assert {each.law for each in MUTANTS} == set(range(1, 12))
    without = {"errors", "formats", "lines", "audio", "shar", "integrations", "testing"}
    assert {each.room for each in MUTANTS} == set(FLOW) - without
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_a_stale_mutant_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = dataclasses.replace(MUTANTS[0], old="no such text")
    with pytest.raises(ValueError, match=r"is stale: order/permutation\.py has its text 0 times"):
        replaced("", stale)
    monkeypatch.setattr(mutants, "MUTANTS", (stale,))
    assert mutants.main([]) == 1
    assert "is stale" in capsys.readouterr().err


def test_mutants_are_chosen_by_room_or_by_a_part_of_their_name() -> None:
    assert chosen(MUTANTS, []) == list(MUTANTS)
    assert {each.room for each in chosen(MUTANTS, ["order"])} >= {"order"}
    assert all("torn" in each.name for each in chosen(MUTANTS, ["torn"]))


def test_one_that_nothing_finds_is_told_of() -> None:
    assert line_of(Found(MUTANTS[0], "", 3.4)).endswith("| NOT FOUND | 3 s")
    assert line_of(Found(MUTANTS[0], "tests/a.py::test", 3.4)).endswith("| tests/a.py::test | 3 s")
