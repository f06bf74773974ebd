"""``sk.Chat``: masks by role, by turn and by a function, truncation, shapes of data, pairs, and refusals."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tokens.chats.families import CALLED, CHATS, TEMPLATES, WEATHER, chat_tokenizer, said, saved

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKED = PLAIN.replace(
    "{{ m.content }}<|im_end|>",
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}",
)
FOUR = {"messages": said("2 + 2 =", "four", "and 3?", "five it is")}


TOKENIZER = chat_tokenizer()


def chat_of(template: str = PLAIN, **options: Any) -> sk.Chat:
    return sk.Chat(TOKENIZER, template=template, **options)


def text_of(tokens: np.ndarray[Any, Any]) -> str:
    text: str = TOKENIZER.decode(tokens.tolist(), skip_special_tokens=False)
    return text


def trained(chat: sk.Chat, record: Any) -> list[str]:
    """Return the texts of the runs of tokens in the loss."""
    made = chat(record)
    bounds = np.flatnonzero(np.diff(made["loss_mask"], prepend=0, append=0)).reshape(-1, 2).tolist()
    return [text_of(made["tokens"][start:stop]) for start, stop in bounds]


def refused(chat: sk.Chat, record: Any) -> str:
    with pytest.raises(sk.errors.BadValue) as error:
        chat(record)
    return str(error.value)


GOLDEN = {
    "chatml": "64032513b99fe383",
    "thinking": "0c48c9ca10707ae2",
    "llama-2": "41c1d12d0ab98299",
    "llama-3": "4aef95a265c5a00f",
    "mistral": "5f78ff6c6d63f63e",
    "gemma": "d2389c870deff26e",
    "phi-3": "076a347aa6247009",
    "zephyr": "b2122d3eec8e5161",
    "deepseek": "2f413dd5533c76ff",
    "command-r": "4a9f211e21a5247b",
}


@pytest.mark.parametrize("family", TEMPLATES)
def test_ten_families_are_pinned(family: str, tmp_path: Path) -> None:
    """The values are those that transformers 5.24 gives, with which another test compares."""
    chat = sk.Chat(saved(tmp_path, TEMPLATES[family]), now=dt.date(2024, 7, 26))
    digest = xxhash.xxh3_64()
    for name, record in CHATS.items():
        try:
            made = chat(record)
        except sk.errors.BadValue:
            digest.update(f"{name} refused".encode())
            continue
        digest.update(json.dumps([name, made["tokens"].tolist(), made["loss_mask"].tolist()]).encode())
    assert digest.hexdigest() == GOLDEN[family]


def test_a_record_becomes_two_arrays() -> None:
    made = chat_of()(FOUR)
    assert list(made) == ["tokens", "loss_mask"]
    assert made["tokens"].dtype == np.uint16
    assert made["loss_mask"].dtype == np.uint8
    assert made["tokens"].tolist() == chat_tokenizer().encode(text_of(made["tokens"])).ids
    assert text_of(made["tokens"]).startswith(
        "<|im_start|>user\n2 + 2 =<|im_end|>\n<|im_start|>assistant\nfour"
    )


def first_word(message: Mapping[str, Any], turn: int) -> bool:
    return turn == 0 or message["content"].startswith("five")


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("assistant", ["four<|im_end|>\n", "five it is<|im_end|>\n"]),
        (["assistant"], ["four<|im_end|>\n", "five it is<|im_end|>\n"]),
        ("user", ["<|im_start|>user\n2 + 2 =<|im_end|>\n", "<|im_start|>user\nand 3?<|im_end|>\n"]),
        ("tool", []),
        (first_word, ["<|im_start|>user\n2 + 2 =<|im_end|>\n", "five it is<|im_end|>\n"]),
    ],
)
def test_masks_without_marks_in_the_template(mask: Any, expected: list[str]) -> None:
    """What a template adds to ask for an answer is what the model is given."""
    assert trained(chat_of(mask=mask), FOUR) == expected


def test_all_and_weights() -> None:
    assert (chat_of(mask="all")(FOUR)["loss_mask"] == 1).all()
    messages = said("a", "left out", "b", "kept")
    messages[1]["weight"], messages[3]["weight"] = 0, 1.0
    for template, end in ((PLAIN, "\n"), (MARKED, "")):
        assert trained(chat_of(template, mask="weight"), {"messages": messages}) == [f"kept<|im_end|>{end}"]
        assert len(trained(chat_of(template, mask="weight"), FOUR)) == 2
    messages[1]["weight"] = 0.5
    assert "turn 1: its weight is 0.5, and it must be 0 or 1" in refused(
        chat_of(mask="weight"), {"messages": messages}
    )


def test_marks_of_the_template_and_turns() -> None:
    """Each mark belongs to one turn, also where the text of earlier turns changes with later ones."""
    assert trained(chat_of(MARKED), FOUR) == ["four<|im_end|>", "five it is<|im_end|>"]
    both = ["<|im_start|>user\n2 + 2 =<|im_end|>", "five it is<|im_end|>"]
    assert trained(chat_of(MARKED, mask=first_word), FOUR) == both
    thinking = chat_of(TEMPLATES["thinking"], mask="weight")
    messages = [*said("a", "<think>x</think>b", "c"), {"role": "assistant", "content": "d", "weight": 0}]
    assert trained(thinking, {"messages": messages}) == ["b<|im_end|>"]
    assert "renders the turns up to it otherwise" in refused(
        chat_of(TEMPLATES["thinking"], mask="user"), {"messages": messages}
    )


def test_marks_that_are_not_one_for_each_turn() -> None:
    """Where marks cannot be counted off, what a turn has of them is found by its place."""
    template = PLAIN.replace("{{ m.content }}<|", "{% generation %}{{ m.content }}{% endgeneration %}<|")
    assert trained(chat_of(template), FOUR) == ["2 + 2 =", "four", "and 3?", "five it is"]
    assert trained(chat_of(template, mask=["assistant", "tool"]), FOUR) == ["four", "five it is"]


def test_a_template_that_is_not_stable_is_refused_by_name() -> None:
    counting = "{{ messages | length }}" + PLAIN
    why = refused(chat_of(counting), FOUR)
    assert "turn 0: the template renders the turns up to it otherwise" in why
    assert "{% generation %}" in why
    assert trained(chat_of(counting, mask="all"), FOUR)


def test_functions_that_fail_are_named_with_the_turn() -> None:
    def fails(message: Any, turn: int) -> bool:
        return bool(1 / (turn - 1)) or not message

    assert "turn 0: the function mask= returned 7, and it must be 0 or 1" in refused(
        chat_of(mask=lambda *_: 7), FOUR
    )
    assert "turn 1: the function mask= raised ZeroDivisionError" in refused(
        chat_of(mask=lambda _, turn: turn == 1 and 1 / 0), FOUR
    )
    assert refused(chat_of(mask=fails), FOUR)


@pytest.mark.parametrize("template", [PLAIN, MARKED])
@pytest.mark.parametrize("most", [*range(15, 60, 4), 100])
def test_truncation_leaves_out_whole_turns_at_the_end(template: str, most: int) -> None:
    chat, cut = chat_of(template), chat_of(template, most_tokens=most)
    parts = [chat({"messages": FOUR["messages"][:last]}) for last in (4, 2)]
    expected = next((part for part in parts if len(part["tokens"]) <= most), None)
    made = cut(FOUR)
    if expected is None:
        assert len(made["tokens"]) == len(made["loss_mask"]) == 0
    else:
        assert {name: array.tolist() for name, array in made.items()} == {
            name: array.tolist() for name, array in expected.items()
        }


def test_truncation_ends_in_a_turn_of_the_loss() -> None:
    whole = chat_of(mask="user")({"messages": FOUR["messages"][:3]})
    cut = chat_of(mask="user", most_tokens=len(whole["tokens"]))(FOUR)
    assert cut["tokens"].tolist() == whole["tokens"].tolist()


SHAREGPT: list[dict[str, Any]] = [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "2 + 2 ="},
    {"from": "gpt", "value": "four", "weight": 0},
]
ROLES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 2 ="},
    {"role": "assistant", "content": "four", "weight": 0},
]
ALPACA = {"instruction": "2 + 2 =", "input": "", "output": "four", "system": "Be brief."}


@pytest.mark.parametrize(
    "record",
    [
        {"conversations": SHAREGPT},
        {"messages": SHAREGPT},
        {"messages": json.dumps(ROLES)},
        {"messages": None, "conversations": tuple(ROLES)},
        {"messages": np.array(ROLES, dtype=object)},
        ALPACA,
        {"messages": [{**turn, "name": None, "tool_calls": None} for turn in ROLES], "tools": None},
    ],
)
def test_shapes_of_data(record: dict[str, Any]) -> None:
    expected = chat_of()({"messages": ROLES})
    found = chat_of()(record)
    assert all(found[name].tolist() == expected[name].tolist() for name in expected)


def test_alpaca_with_input_and_history() -> None:
    record = {**ALPACA, "input": "in words", "history": [["a", "b"], ["c", "d"]]}
    messages = said("a", "b", "c", "d", "2 + 2 =\nin words", "four", system="Be brief.")
    assert chat_of()(record)["tokens"].tolist() == chat_of()({"messages": messages})["tokens"].tolist()


def test_another_column() -> None:
    made = chat_of(column="dialogue")({"dialogue": SHAREGPT, "messages": ["no"]})
    assert made["tokens"].tolist() == chat_of()({"messages": ROLES})["tokens"].tolist()


@pytest.mark.parametrize("tools", [[WEATHER], json.dumps([WEATHER])])
def test_tools_of_a_record_and_of_all(tools: Any) -> None:
    expected = chat_of(TEMPLATES["chatml"])(CHATS["a call"])["tokens"].tolist()
    assert chat_of(TEMPLATES["chatml"])({"messages": CALLED, "tools": tools})["tokens"].tolist() == expected
    assert chat_of(TEMPLATES["chatml"], tools=[WEATHER])({"messages": CALLED})["tokens"].tolist() == expected


def test_a_template_for_tools(tmp_path: Path) -> None:
    saved(tmp_path, "x")
    templates = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": "with tools"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    chat = sk.Chat(tmp_path, mask="all")
    assert text_of(chat({"messages": CALLED, "tools": [WEATHER]})["tokens"]) == "with tools"
    assert text_of(chat(FOUR)["tokens"]).startswith("<|im_start|>")


@pytest.mark.parametrize(
    ("prompt", "chosen", "rejected"),
    [
        (said("a", "b", "c"), said("c", "yes")[1:], said("c", "no")[1:]),
        (None, said("a", "b", "c", "yes"), said("a", "b", "c", "no")),
        (said("a", "b", "c"), said("a", "b", "c", "yes"), said("a", "b", "c", "no")),
    ],
)
def test_preferences_are_two_sequences_of_one_row(prompt: Any, chosen: Any, rejected: Any) -> None:
    record = {"prompt": prompt, "chosen": chosen, "rejected": rejected}
    made = chat_of(column=("chosen", "rejected"))(record)
    assert list(made) == ["chosen_tokens", "chosen_loss_mask", "rejected_tokens", "rejected_loss_mask"]
    for name, answer in (("chosen", "yes"), ("rejected", "no")):
        whole = chat_of()({"messages": said("a", "b", "c", answer)})
        assert made[f"{name}_tokens"].tolist() == whole["tokens"].tolist()
        only = text_of(made[f"{name}_tokens"][made[f"{name}_loss_mask"] == 1])
        assert only == (f"{answer}<|im_end|>\n" if prompt else f"b<|im_end|>\n{answer}<|im_end|>\n")


def test_a_pair_of_texts() -> None:
    made = chat_of(column=["chosen", "rejected"])({"prompt": "a", "chosen": "b", "rejected": "c"})
    assert made["chosen_tokens"].tolist() == chat_of()({"messages": said("a", "b")})["tokens"].tolist()


def test_a_conversation_is_what_it_is_alone_and_among_others(tmp_path: Path) -> None:
    records = [record for name, record in CHATS.items() if name != "a call"] * 3
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    chat = chat_of(most_tokens=60)
    tk = sk.tokenize(tmp_path / "chats.jsonl", to=tmp_path / "tokens", tokenizer=chat, jobs=1)
    streamed = list(sk.from_sequence(records).stream(lanes=1, epochs=1).map(chat))
    for row, record in enumerate(records):
        for other in (tk[row], streamed[row], sk.from_sequence(records).map(chat)[row]):
            assert all(other[name].tolist() == array.tolist() for name, array in chat(record).items())


WRONG: list[tuple[Any, str]] = [
    ("text", "it must be a dict with messages (got 'text' of type str)"),
    ({"text": "a"}, "'messages', 'conversations' or 'instruction' (it has 'text')"),
    ({"messages": []}, "'messages' has no message"),
    ({"messages": 7}, "'messages' must be a list of messages (got 7 of type int)"),
    ({"messages": [*said("a"), "b"]}, "turn 1 must be a dict with a role (got 'b' of type str)"),
    ({"messages": [{"content": "a"}]}, "turn 0 has no role (it has 'content')"),
    ({"messages": [{"from": "nobody", "value": "a"}]}, "turn 0 is from 'nobody', and known are"),
    ({"messages": "[{"}, "'messages' is a text that is no JSON"),
    ({"messages": said("a"), "tools": 7}, "'tools' must be a list of descriptions (got 7 of type int)"),
    ({"messages": said("a"), "tools": "{"}, "'tools' is a text that is no JSON"),
    ({"instruction": 1, "output": "a"}, "what the user says must be a text (got 1 of type int)"),
    ({"instruction": "a", "output": "b", "history": [["c"]]}, "'history' must have pairs of texts"),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, "lone surrogate"),
]


@pytest.mark.parametrize(("record", "why"), WRONG)
def test_what_is_no_conversation_is_refused(record: Any, why: str) -> None:
    assert why in refused(chat_of(), record)


def test_the_error_of_a_map_names_the_row_and_that_of_a_store_the_line(tmp_path: Path) -> None:
    records = [{"messages": said("a", "b")}, {"messages": [*said("a", "b"), {"content": "c"}]}]
    with pytest.raises(sk.errors.BadValue, match="turn 2 has no role") as error:
        sk.from_sequence(records).map(chat_of())[1]
    assert any("row=1" in note for note in error.value.__notes__)
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    with pytest.raises(sk.errors.WrongType, match=r"record 1 of .*chats\.jsonl.* turn 2 has no role"):
        sk.tokenize(tmp_path / "chats.jsonl", to=tmp_path / "tokens", tokenizer=chat_of(), jobs=1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mask": 7}, sk.errors.WrongType),
        ({"mask": []}, sk.errors.WrongType),
        ({"column": 7}, sk.errors.WrongType),
        ({"column": ("a", "a")}, sk.errors.WrongType),
        ({"tools": [print]}, sk.errors.WrongType),
        ({"variables": {"messages": []}}, sk.errors.InvalidArgument),
        ({"variables": [1]}, sk.errors.WrongType),
        ({"most_tokens": 0}, sk.errors.InvalidArgument),
        ({"now": "today"}, sk.errors.WrongType),
        ({"seconds": 0}, sk.errors.InvalidArgument),
        ({"template": "{% for %}"}, sk.errors.InvalidArgument),
        ({"template": 7}, sk.errors.WrongType),
        ({"template": None}, sk.errors.InvalidArgument),
        ({"template": "no/such/file.jinja"}, sk.DataNotFound),
        ({"chat_template": PLAIN}, sk.errors.InvalidArgument),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        sk.Chat(chat_tokenizer(), **{"template": PLAIN, **options})


def test_tokenizers_without_characters_are_refused() -> None:
    def letters(text: str) -> list[int]:
        return [ord(letter) for letter in text]

    with pytest.raises(sk.errors.InvalidArgument, match=r"needs a tokenizer .* give a folder with one"):
        sk.Chat(letters, template=PLAIN)


def test_templates_of_files(tmp_path: Path) -> None:
    expected = chat_of()(FOUR)["tokens"].tolist()
    saved(tmp_path, PLAIN)
    (tmp_path / "mine.jinja").write_text(PLAIN)
    for given_template in (tmp_path / "mine.jinja", tmp_path, tmp_path / "tokenizer_config.json"):
        assert sk.Chat(chat_tokenizer(), template=given_template)(FOUR)["tokens"].tolist() == expected
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}|{{ eos_token }}")
    assert text_of(sk.Chat(tmp_path, mask="all")(FOUR)["tokens"]) == "<s>|</s>"
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(sk.errors.InvalidArgument, match="not UTF-8 at byte 0"):
        sk.Chat(tmp_path)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from seekable.formats.tokens.chats import chat

    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(vars(vars(chat)["jinja2"]), "Environment", raising=False)
    with pytest.raises(sk.MissingDependency, match=r"^this needs jinja2.*pip install 'seekable\[chat\]'$"):
        chat_of()


def test_what_decides_the_tokens_is_in_the_fingerprint(tmp_path: Path) -> None:
    ds = sk.from_sequence([FOUR] * 4)
    chats = [
        chat_of(),
        chat_of(MARKED),
        chat_of(mask="all"),
        chat_of(mask=first_word),
        chat_of(column="messages"),
        chat_of(tools=[WEATHER]),
        chat_of(variables={"a": 1}),
        chat_of(most_tokens=9),
        chat_of(now=dt.date(2024, 1, 1)),
        sk.Chat(saved(tmp_path, PLAIN)),
    ]
    assert len({ds.map(chat).fingerprint for chat in chats}) == len(chats)
    again = pickle.loads(pickle.dumps(chats[0]))
    assert ds.map(again).fingerprint == ds.map(chat_of(seconds=3)).fingerprint == ds.map(chats[0]).fingerprint
    assert again(FOUR)["tokens"].tolist() == chats[0](FOUR)["tokens"].tolist()
    assert ds.map(chats[0]).fingerprint == "xxh3:9b979eafa331d63c1a80420af819daef"


def test_a_state_of_another_template_is_refused() -> None:
    ds = sk.from_sequence([FOUR] * 8).shuffle(seed=1)
    state = sk.Loader(ds.map(chat_of()), batch_size=2, collate=list).state_dict()
    with pytest.raises(sk.StateMismatch, match="template"):
        sk.Loader(ds.map(chat_of(MARKED)), batch_size=2, collate=list).load_state_dict(state)


@settings(max_examples=12)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=6),
    roles=st.lists(st.sampled_from(["user", "assistant", "system", "tool"]), min_size=6, max_size=6),
    taken=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_any_mask_of_turns(texts: list[str], roles: list[str], taken: list[bool]) -> None:
    """The model is a list of pieces: each turn's head and body, encoded as one text."""
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    made = chat_of(mask=lambda _, turn: taken[turn])({"messages": messages})
    pieces, flags = [], []
    for turn, message in enumerate(messages):
        is_asked = message["role"] == "assistant" and turn > 0
        pieces += [f"<|im_start|>{message['role']}\n", f"{message['content']}<|im_end|>\n"]
        flags += [taken[turn] and not is_asked, taken[turn]]
    characters = np.repeat(flags, list(map(len, pieces)))
    encoding = TOKENIZER.encode("".join(pieces), add_special_tokens=False)
    assert made["tokens"].tolist() == encoding.ids
    expected = [int(characters[start:stop].any()) for start, stop in encoding.offsets]
    assert made["loss_mask"].tolist() == expected
