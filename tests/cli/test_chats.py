"""The command line writes stores of conversations, counts what is trained on, and shows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import documents, output, run
from tests.tokens.chats.families import said, saved
from tests.tokens.chats.test_chat import MARKED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with conversations, a model's folder, and the token store ``tokens``."""
    folder = tmp_path_factory.mktemp("chats")
    saved(folder / "model", MARKED)
    records = [{"messages": said("2 + 2", "four é🎉")}, {"messages": said("a")}]
    (folder / "chats.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    output("tokenize", "chats.jsonl", "--to", "tokens", "--tokenizer", "model", "--chat", cwd=folder)
    return folder


def test_trained_tokens_are_counted(folder: Path) -> None:
    (found,) = documents("info", "tokens", cwd=folder)
    trained = sum(len(run["text"]) > 0 for run in _runs(folder, 0) if run["trained"])
    assert 0 < trained <= found["trained_tokens"] < found["tokens"]
    assert b"trained tokens " in output("info", "tokens", cwd=folder)


def _runs(folder: Path, row: int) -> list[dict[str, Any]]:
    (found,) = documents("get", "tokens", str(row), "--decode", cwd=folder)
    assert "".join(run["text"] for run in found["runs"]) == found["text"]
    runs: list[dict[str, Any]] = found["runs"]
    return runs


def test_what_is_trained_on_is_marked(folder: Path) -> None:
    assert [run["trained"] for run in _runs(folder, 0)] == [False, True]
    assert [run["trained"] for run in _runs(folder, 1)] == [False]
    shown = output("get", "tokens", "0", "--decode", cwd=folder).decode()
    assert shown == ("<|im_start|>user\n2 + 2<|im_end|><|im_start|>assistant\n[[four é🎉<|im_end|>]]\n")


def test_another_mask_is_another_store(folder: Path) -> None:
    command = ["tokenize", "chats.jsonl", "--to", "tokens", "--tokenizer", "model", "--chat", "--mask", "all"]
    refused = run(*command, cwd=folder)
    assert refused.returncode != 0
    assert b"holds files of another pipeline" in refused.stderr
