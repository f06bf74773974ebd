"""The texts of tokens, which together are the text of the document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.viewer.facts.token_contents import token_texts

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.formats.tokens.tokenizing.engine import Engine


@pytest.fixture(scope="module")
def by_bytes(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A tokenizer with a token for each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in shown]
    letters = [chr(byte) for byte in shown] + [chr(256 + at) for at in range(len(others))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": []}
    return engine(tmp_path_factory.mktemp("bytes"), model, pre_tokenizer=level, decoder=level)


def engine(folder: Path, model: dict[str, Any], **more: Any) -> Engine:
    """Return the tokenizer of a model."""
    document = {"version": "1.0", "added_tokens": [], "model": model, **more}
    (folder / "tokenizer.json").write_text(json.dumps(document))
    return engine_of(str(folder / "tokenizer.json"))


@given(text=st.text(min_size=1))
def test_texts_of_tokens_together_are_the_text(by_bytes: Engine, text: str) -> None:
    ids = by_bytes.encode([text])[0].tolist()
    texts = token_texts(by_bytes, ids)
    assert len(texts) == len(ids) == len(text.encode())
    assert "".join(texts) == text


def test_a_character_of_several_tokens_is_the_text_of_its_last_one(by_bytes: Engine) -> None:
    assert token_texts(by_bytes, by_bytes.encode(["né日!"])[0].tolist()) == ["n", "", "é", "", "", "日", "!"]


def test_what_is_no_character_is_shown_as_one(by_bytes: Engine) -> None:
    broken = by_bytes.encode(["日日"])[0].tolist()[1:5]
    assert "".join(token_texts(by_bytes, broken)) == by_bytes.decode(broken)
    assert token_texts(by_bytes, broken[:1]) == ["\ufffd"]
    assert token_texts(by_bytes, []) == []


def test_spaces_that_a_tokenizer_drops_at_the_start_stand_between_words(tmp_path: Path) -> None:
    words = engine(tmp_path, {"type": "WordLevel", "vocab": {"?": 0, "to": 1, "be": 2}, "unk_token": "?"})
    assert token_texts(words, [1, 2, 0, 1]) == ["to", " be", " ?", " to"]
    assert token_texts(words, [1, -100, 3, 1 << 40, 2]) == ["to", "", "", "", "be"]
