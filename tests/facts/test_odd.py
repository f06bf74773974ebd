"""Oddness against measures counted character by character, and texts compared one with each other."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import InvalidArgument
from seekable.viewer.facts.named_sources import source_names
from seekable.viewer.facts.odd import MEASURES, Oddness, odd, usual

if TYPE_CHECKING:
    from pathlib import Path


def modelled(text: str) -> list[float]:
    data = text.encode("utf-8", "surrogatepass")
    if not data:
        return [0, 1, 0, 0]
    letters = sum(character.isalpha() for character in text)
    return [len(data), len(zlib.compress(data, 1)) / len(data), letters / len(text), len(set(text))]


def last_of(dataset: sk.Dataset, start: int, stop: int, steps: int = 10) -> Oddness:
    node = dataset._node
    *_, last = odd(node, np.arange(start, stop), usual(node, range(len(source_names(node)))), steps=steps)
    return last


@given(st.lists(st.text(st.characters(), max_size=6), min_size=1, max_size=20), st.data())
def test_measures_percentiles_and_repeated_texts_are_those_of_a_count(
    texts: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(texts) - 1))
    stop = data.draw(st.integers(start + 1, len(texts)))
    steps = data.draw(st.integers(0, 3))
    found = last_of(sk.from_sequence(texts), start, stop, steps)
    every = [modelled(text) for text in texts]
    first, end = max(0, start - steps * (stop - start)), stop + steps * (stop - start)
    for number, position in enumerate(range(start, stop)):
        assert found.values[number].tolist() == pytest.approx(every[position])
        for column in range(len(MEASURES)):
            others = [row[column] for row in every]
            below = sum(other < every[position][column] for other in others)
            alike = others.count(every[position][column])
            assert found.percentiles[number, column] == pytest.approx(100 * (below + alike / 2) / len(others))
        window = range(first, min(end, len(texts)))
        same = [at for at in window if at != position and texts[at] == texts[position] != ""]
        at = int(found.same_text_at[number])
        assert at in same if same else at == -1
    assert found.done == found.of


def test_each_record_is_compared_with_rows_of_its_own_source() -> None:
    short = sk.from_sequence([f"{n:03d}" for n in range(300)], version="short")
    long = sk.from_sequence([f"{n:0100d}" for n in range(300)], version="long")
    mixed = sk.mix({"short": short, "long": long}, weights={"short": 0.5, "long": 0.5}, seed=1)
    found = last_of(mixed, 0, 40, 0)
    assert set(found.sources.tolist()) == {0, 1}
    assert found.percentiles[:, 0].tolist() == [50.0] * 40


def test_a_corrupt_record_has_no_measures_and_comes_early(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"t":"one"}\n{broken\n{"t":"two"}\n{"t":"six"}\n')
    found = last_of(sk.open(str(tmp_path / "a.jsonl")), 0, 4)
    document = found.document()
    assert document["records"][0]["position"] == 1
    assert set(document["records"][0]["measures"].values()) == {None}
    assert found.compared_with.tolist() == [3] * 4


def test_no_records_and_bad_numbers() -> None:
    texts = sk.from_sequence(["a", "b"])
    assert last_of(texts, 1, 1).document()["records"] == []
    alone = next(odd(texts._node, np.arange(1), usual(texts._node, [0], sample=0))).document()["records"][0]
    assert alone["compared_with"] == 0
    assert [each["percentile"] for each in alone["measures"].values()] == [None] * len(MEASURES)
    with pytest.raises(InvalidArgument):
        usual(texts._node, [0], sample=-1)
    with pytest.raises(InvalidArgument):
        next(odd(texts._node, np.arange(1), {}, steps=-1))


def test_what_is_compared_with_nothing_is_no_suspect_and_json_safe() -> None:
    rare, common = sk.from_sequence(["z" * 999]), sk.from_sequence([f"{n:03d}" for n in range(99)])
    mixed = sk.concat([common, rare])
    found = next(odd(mixed._node, np.arange(90, 100), usual(mixed._node, [0]) | {1: np.empty((0, 4))}))
    assert int(found.positions[found.order()[0]]) != 99
    json.dumps(found.document(), allow_nan=False)


def test_the_text_is_the_field_that_is_named_else_the_longest_or_the_conversation() -> None:
    rows = [{"id": f"{n}", "text": "same words"} for n in range(3)]
    keyed = sk.from_sequence(rows)
    assert last_of(keyed, 0, 1).same_text_at.tolist() == [1]
    by_id = odd(keyed._node, np.arange(1), usual(keyed._node, [0], text_key="id"), text_key="id")
    assert [each.same_text_at.tolist() for each in by_id][-1] == [-1]
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"text": "hello there"}]}]
    chat = sk.from_sequence([{"id": f"chat-{n}", "messages": said} for n in range(2)])
    assert last_of(chat, 0, 1).values[0, 0] == len("hi\nhello there")
    assert last_of(chat, 0, 1).same_text_at.tolist() == [1]
    nested = sk.from_sequence([{"parts": [{"words": "hi"}, 1]}] * 2)
    assert last_of(nested, 0, 1).values[0, 0] == len("hi")
