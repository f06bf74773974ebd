"""The dataloader of torchtitan over JSON lines goes on on other numbers of data-parallel ranks."""

from __future__ import annotations

import itertools
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.integrations.lives import KILLED, Life, Server, together

import seekable as sk

pytest.importorskip("torchtitan", reason="torchtitan is not installed")

from tests.integrations.torch_titan import SEQUENCES, Tokenizer

from seekable.integrations.torchtitan import text_stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("torch_titan.py", tmp_path_factory.mktemp("titan")) as server:
        yield server


@pytest.fixture
def texts(tmp_path: Path) -> str:
    for name, start in (("a", 0), ("b", 500)):
        lines = (
            json.dumps({"text": " ".join(str(number * 8 + place + 2) for place in range(number % 6))})
            for number in range(start, start + 500)
        )
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "*.jsonl")


def of_ranks(lives: list[Life]) -> list[list[int]]:
    """Return the batches of all ranks; the processes of one rank have the same."""
    for first, second in zip(lives[::2], lives[1::2], strict=True):
        assert first.ids() == second.ids()
    return together(lives[::2])


def test_a_run_goes_on_on_other_numbers_of_ranks(server: Server, texts: str, tmp_path: Path) -> None:
    """Four ranks are killed, two are stopped by SIGTERM, three go on: nothing is repeated or lost."""
    spec: dict[str, Any] = {"folder": str(tmp_path / "saved"), "data": texts, "steps": 12}
    first = server.ranks(8, **spec, save_at=[2, 4], die_at=5)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(4, **spec, resume=f"{spec['folder']}/4", save_at=[8], stop_at=9)
    assert {life.code for life in second} == {-signal.SIGTERM}, second[0].said
    third = server.ranks(6, **spec, resume=f"{spec['folder']}/8")
    assert {life.code for life in third} == {0}, third[0].said
    found = of_ranks(first)[:4] + of_ranks(second)[:4] + of_ranks(third)
    stream = text_stream(texts, Tokenizer(), 8, lanes=12)
    loader = sk.Loader(stream, batch_size=SEQUENCES, steps=12, collate=list)
    assert found == [sorted(int(n) for each in batch for n in each["input"]) for batch in loader]


def test_a_document_has_no_label_of_the_next(texts: str) -> None:
    stream = text_stream(texts, Tokenizer(), 8, lanes=2)
    for sequence in itertools.islice(stream, 200):
        for token, label, position in zip(*sequence.values(), strict=True):
            assert token != 1
            assert label != 0
            assert position > 0 or token == 0 or sequence["positions"][0] == position


def test_a_checkpoint_of_other_data_is_refused(server: Server, texts: str, tmp_path: Path) -> None:
    spec: dict[str, Any] = {"folder": str(tmp_path / "saved"), "data": texts, "steps": 2}
    assert {life.code for life in server.ranks(2, **spec, save_at=[2])} == {0}
    lives = server.ranks(2, **spec, resume=f"{spec['folder']}/2", config={"seed": 5})
    assert all("shuffle: seed was 0, is 5" in life.said for life in lives)
