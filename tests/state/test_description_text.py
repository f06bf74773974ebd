"""The text of a description: each part of it once, and back again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.state.canonical import canonical_json
from seekable.state.descriptions import PipelineDescription

if TYPE_CHECKING:
    from pathlib import Path


def test_a_dataset_that_is_used_twice_stands_once(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    data = sk.open(tmp_path)
    texts = sk.open(tmp_path, decode="bytes")
    mixed = sk.mix([data.shuffle(seed=1), data.shuffle(seed=2), texts], weights=[1, 1, 1], seed=3)
    described = mixed._node.describe(None)
    text = PipelineDescription(described).text()
    assert [text.count(f"{name}.jsonl") for name in ("first", "second")] == [1, 1]
    assert text.count('"files":0') == 2
    assert canonical_json(PipelineDescription.parse(text).tree) == canonical_json(described)


def test_a_text_is_canonical() -> None:
    nodes: list[dict[str, Any]] = [{"kind": "a", "x": 1, "y": [2]}, {"y": (2,), "x": 1, "kind": "a"}]
    assert PipelineDescription(nodes[0]).text() == PipelineDescription(nodes[1]).text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        '{"nodes":[]}',
        '{"files":[],"nodes":[{"files":0,"kind":"files"}]}',
        '{"files":[],"nodes":[{"kind":"concat","of":[0]}]}',
        '{"files":[],"nodes":[{"kind":"concat","of":["0"]}]}',
        '{"files":[],"nodes":["concat"]}',
    ],
)
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(sk.errors.CorruptState, match="'pipeline' is not a description as state_dict"):
        PipelineDescription.parse(text)
