"""The turns of a record: every known shape, places that lead to them, and what is no conversation."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokens.chats.families import CHATS, said

from seekable.formats.tokens.chats.conversations import turns_of

ASKED, TOLD = said("2 + 2 =", "four")
CALL = {"function": {"name": "add", "arguments": {"a": 2}}}
SAID = [("user", "2 + 2 ="), ("assistant", "four")]

SHAPES: list[tuple[dict[str, Any], dict[str, list[tuple[str, str]]]]] = [
    ({"messages": [ASKED, TOLD]}, {"messages": SAID}),
    ({"messages": json.dumps([ASKED, TOLD])}, {"messages": SAID}),
    ({"messages": np.array([ASKED, TOLD], object)}, {"messages": SAID}),
    (
        {"conversations": [{"from": "human", "value": "2 + 2 ="}, {"from": "gpt", "value": "four"}]},
        {"conversations": SAID},
    ),
    (
        {"instruction": "2 +", "input": "2 =", "output": "four"},
        {"instruction": [("user", "2 +\n2 ="), SAID[1]]},
    ),
    (
        {"system": "Be brief.", "history": [["a", "b"]], "instruction": "2 + 2 =", "output": "four"},
        {"instruction": [("system", "Be brief."), ("user", "a"), ("assistant", "b"), *SAID]},
    ),
    (
        {"prompt": "2 + 2 =", "chosen": "four", "rejected": "five"},
        {"chosen": SAID, "rejected": [SAID[0], ("assistant", "five")]},
    ),
    ({"prompt": [ASKED], "chosen": [TOLD], "rejected": [TOLD]}, {"chosen": SAID, "rejected": SAID}),
    ({"prompt": [ASKED], "chosen": [ASKED, TOLD]}, {"chosen": SAID}),
    ({"chosen": [ASKED, TOLD], "rejected": [ASKED, TOLD], "score": 1.0}, {"chosen": SAID, "rejected": SAID}),
    ({"prompt": "2 + 2 =", "completion": "four", "label": True}, {"completion": SAID}),
    ({"prompt": [ASKED], "answer": "4"}, {"prompt": SAID[:1]}),
]


def value_at(record: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        record = record[key]
    return record


@pytest.mark.parametrize(("record", "wanted"), SHAPES, ids=map(str, range(len(SHAPES))))
def test_each_shape_becomes_turns(record: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = {each.name: [(turn.role, turn.content) for turn in each.turns] for each in turns_of(record)}

    assert found == wanted
    for each in turns_of(record):
        for turn in each.turns:
            at = value_at(record, turn.place)
            said_there = at if isinstance(at, str) else at.get("content", at.get("value"))
            assert said_there in turn.content or json.dumps(turn.content) in said_there


def test_a_turn_has_calls_reasoning_and_what_else_there_is() -> None:
    record = {
        "tools": [{"name": "add"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "2 + 2"}, {"type": "image"}]},
            {"role": "assistant", "content": None, "thinking": "I add.", "tool_calls": [CALL], "weight": 0},
            {"role": "tool", "tool_call_id": "7", "content": "4"},
        ],
    }

    (dialogue,) = turns_of(record)
    asked, called, answered = dialogue.turns

    assert dialogue.tools == ({"name": "add"},)
    assert asked.content == record["messages"][0]["content"]  # type: ignore[index]
    assert (called.content, called.reasoning, called.calls) == ("", "I add.", (CALL,))
    assert (called.others, answered.others) == ({"weight": 0}, {"tool_call_id": "7"})


def test_turns_of_a_prompt_are_given() -> None:
    pair = turns_of({"prompt": "a", "chosen": "b", "rejected": [{"role": "assistant", "content": "c"}]})

    assert [[turn.given for turn in each.turns] for each in pair] == [[True, False]] * 2
    assert [turn.place for turn in pair[1].turns] == [("prompt",), ("rejected", 0)]


def _around(deep: Any, _: int) -> Any:
    return [deep]


@pytest.mark.parametrize(
    "record",
    [
        *(
            None,
            3,
            "text",
            [ASKED],
            {},
            {"text": "a"},
            {"messages": []},
            {"messages": "[{"},
            {"messages": "a"},
        ),
        *({"messages": {"a": 1}}, {"messages": [{"content": "a"}]}, {"prompt": "a"}, {"completion": "a"}),
        {"conversations": [{"from": "narrator", "value": "a"}]},
        {"instruction": 1, "output": "a"},
        {"messages": [ASKED], "tools": 3},
        {"messages": "[" * 100_000},
        {"messages": [{"role": "user", "content": functools.reduce(_around, range(5000), "x")}]},
    ],
)
def test_what_is_no_conversation_has_no_turns(record: Any) -> None:
    assert turns_of(record) == ()


def test_the_conversations_that_chats_take_have_their_turns() -> None:
    for record in CHATS.values():
        (dialogue,) = turns_of(record)
        assert len(dialogue.turns) == len(record["messages"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "from", "value", "tool_calls"]), each, max_size=3
        )
    ),
    max_leaves=8,
)
COLUMNS: list[str] = [
    "messages",
    "conversations",
    "prompt",
    "chosen",
    "rejected",
    "completion",
    "instruction",
    "output",
]
COLUMNS += ["history", "system", "tools"]


@given(st.dictionaries(st.sampled_from(COLUMNS), JSON, max_size=5))
def test_nothing_is_raised_and_places_lead_somewhere(record: dict[str, Any]) -> None:
    for each in turns_of(record):
        for turn in each.turns:
            value_at(record, turn.place)
