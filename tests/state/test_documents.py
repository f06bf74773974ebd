"""State documents, their file names, and the one text of a value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import CorruptState
from seekable.loader.checkpoint_files import generations, state_name
from seekable.state.canonical import canonical_json, fingerprint_of
from seekable.state.document import RunState

if TYPE_CHECKING:
    import random

COUNTS = st.integers(0, 2**62)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


@given(st.text(), COUNTS, COUNTS, COUNTS, st.none() | COUNTS)
def test_a_state_survives_its_document(
    fingerprint: str, step: int, epoch: int, position: int, began: int | None
) -> None:
    state = RunState(fingerprint, step, epoch, position, began)
    assert RunState.parse(json.loads(json.dumps(state.document()))) == state


@pytest.mark.parametrize("document", [{}, {"step": 1}, {"seekable": "1"}, {"seekable": 0}, {"seekable": 99}])
def test_a_document_of_another_schema_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(CorruptState, match="'seekable': 1"):
        RunState.parse(document)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, rng: random.Random) -> None:
    assert canonical_json(value) == canonical_json(shuffled_keys(value, rng))
    assert fingerprint_of(value) == fingerprint_of(shuffled_keys(value, rng))
    assert json.loads(canonical_json(value)) == value


def shuffled_keys(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled_keys(value[key], rng) for key in keys}
    return [shuffled_keys(item, rng) for item in value] if isinstance(value, list) else value


@given(VALUES, VALUES)
def test_other_values_have_other_fingerprints(one: Any, other: Any) -> None:
    alike = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint_of(one) == fingerprint_of(other)) == alike


def test_a_fingerprint_is_what_it_always_was() -> None:
    """Golden: changing it is a breaking change, because no saved state would match any more."""
    assert canonical_json({"b": [1, (2, "ä")], "a": None}) == '{"a":null,"b":[1,[2,"ä"]]}'.encode()
    assert fingerprint_of({"kind": "take", "count": 3}) == "xxh3:a67d7085b7ad8db93f512d7f64bf0a9d"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=8))
def test_generations_are_complete_when_all_ranks_are_there(saves: list[tuple[int, int]]) -> None:
    names = {state_name(step, rank=rank, ranks=ranks) for step, ranks in saves for rank in range(ranks)}
    found = generations(names)
    assert all(generation.complete for generation in found)
    assert [(generation.step, generation.ranks) for generation in found] == sorted(set(saves))
    assert sorted(name for generation in found for name in generation.names) == sorted(names)
    for missing in names:
        incomplete = [generation for generation in generations(names - {missing}) if not generation.complete]
        lost = next(generation for generation in found if missing in generation.names)
        assert [g.step for g in incomplete] == ([lost.step] if lost.ranks > 1 else [])


@pytest.mark.parametrize(
    "name",
    ["state-1-0-of-1.json", "state-000000000001-00000-of-00001.json.tmp", "pipeline-0.json", ".state", ""],
)
def test_other_files_are_no_states(name: str) -> None:
    assert generations([name]) == []
