"""The command line writes stores of conversations, counts what is trained on, and shows it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import documents, output, run
from tests.tokens.chats.families import said, saved
from tests.tokens.chats.test_chat import MARKED

import seekable as sk

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
    report = sk.open(folder / "tokens").pack(8, seed=0, align=["loss_mask"]).explain()
    assert f"trained tokens {found['trained_tokens']:,}" in report
    assert "trained tokens" not in sk.open(folder / "tokens").pack(8, seed=0).explain()


def test_trained_ids_of_records_are_counted(folder: Path) -> None:
    records = [{"tokens": [1, 2, 3], "loss_mask": [0, 1, 1]}, {"tokens": [4, 5], "loss_mask": [1, 0]}]
    (folder / "ids.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    (found,) = documents("info", "ids.jsonl", "--key", "tokens", "--length", "2", cwd=folder)
    assert (found["packing"]["tokens"], found["packing"]["trained_tokens"]) == (5, 3)
    (folder / "plain.jsonl").write_text(json.dumps({"tokens": [1, 2]}) + "\n")
    (found,) = documents("info", "plain.jsonl", "--key", "tokens", "--length", "2", cwd=folder)
    assert "trained_tokens" not in found["packing"]


def test_spans_are_counted_and_shown(folder: Path) -> None:
    records = [{"text": "to Rome", "places": [[3, 7, "city"], [2, 2, "city"]]}, {"text": "a", "places": []}]
    store = sk.formats.TokenStore(align={"places": sk.formats.Spans(labels=["river", "city"])})
    tokenizer = folder / "model" / "tokenizer.json"
    sk.tokenize(sk.from_sequence(records), to=folder / "spans", tokenizer=tokenizer, store=store, jobs=1)

    (found,) = documents("info", "spans", cwd=folder)
    assert found["aligned"] == {"places": "spans"}
    assert found["spans"] == {"places": {"spans": 1, "without_token": 1, "labels": ["river", "city"]}}
    words = output("info", "spans", cwd=folder).decode()
    assert re.search(r"spans in places +1 \(river, city\), and 1 that had no token", words)
    (found,) = documents("get", "spans", "0", "--decode", cwd=folder)
    (span,) = found["spans"]["places"]
    assert (span["label"], span["text"]) == ("city", "Rome")
    shown = output("get", "spans", "0", "--decode", cwd=folder).decode()
    assert shown == f"to Rome\n  places: city, tokens {span['start']} to {span['end']}: 'Rome'\n"


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
