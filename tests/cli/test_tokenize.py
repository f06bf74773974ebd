"""``seekable tokenize`` writes token stores, goes on after a kill, and says what it did."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import AT_ONCE, Corpus, documents, environment, in_terminal, output, run
from tests.cli.warm import SEEKABLE
from tests.tokens.trained import EOS, trained_json

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    path.write_text(trained_json(), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def test_texts_become_tokens(corpus: Corpus, tokenizer: Path, tmp_path: Path) -> None:
    files = sorted(map(str, corpus.folder.glob("*.jsonl")))
    command = ["tokenize", *files, "--to", "tokens", "--tokenizer", str(tokenizer), "--eos", EOS]
    told = output(*command, cwd=tmp_path).decode()
    tk = sk.open(tmp_path / "tokens")
    tokens = f"{sk.formats.token_lengths(tk).sum():,}"
    assert re.fullmatch(
        rf"tokens: 120 documents, {tokens} tokens \(uint16\), [\d.,]+ k?(B|bytes); [\d,]+ tokens a second; "
        r"3 documents without a token\n",
        told,
    )
    assert all(document["tokens"][-1] == 0 for document in tk)
    again = output(*command, cwd=tmp_path).decode()
    assert f"; {tokens} of them from an earlier run; 3 documents" in again
    assert "a second" not in again
    assert output(*command, "--quiet", cwd=tmp_path) == b""


def test_the_report_as_json(corpus: Corpus, tokenizer: Path, tmp_path: Path) -> None:
    command = ("tokenize", corpus.folder, "--to", "tokens", "--tokenizer", tokenizer, "--eos", "0", "--idx")
    (told,) = documents(*command, "--engine", "gigatoken", "--dtype", "int32", cwd=tmp_path)
    assert told.pop("seconds") > 0
    assert told.pop("tokens_per_second") > 0
    assert told.pop("compared")["different"] == 0
    tk = sk.open(tmp_path / "tokens")
    assert told == {
        "schema": 1,
        "folder": "tokens",
        "documents": 120,
        "tokens": int(sk.formats.token_lengths(tk).sum()),
        "tokens_kept": 0,
        "empty_documents": 3,
        "dtype": "int32",
        "parts": 1,
        "bytes": sum(len(data) for data in contents(tmp_path / "tokens").values()),
    }
    assert (tmp_path / "tokens" / "part-000000.idx").exists()
    assert tk[0]["tokens"].tolist() == [0]


def test_samples_of_a_fixed_size(corpus: Corpus, tokenizer: Path, tmp_path: Path) -> None:
    command = ("tokenize", corpus.folder, "--to", "s", "--tokenizer", tokenizer, "--eos", "0")
    (told,) = documents(*command, "--sample-size", "16", cwd=tmp_path)
    samples = sk.open(tmp_path / "s", format=sk.formats.Tokens(dtype="uint16"))
    assert told["samples"] == len(samples) == told["tokens"] // 16
    (again,) = documents(*command, "--sample-size", "16", cwd=tmp_path)
    assert again["tokens_kept"] == told["tokens"]


def test_another_call_is_refused_unless_it_may_overwrite(
    corpus: Corpus, tokenizer: Path, tmp_path: Path
) -> None:
    command = ("tokenize", corpus.folder, "--to", tmp_path / "tokens", "--tokenizer", tokenizer)
    output(*command)
    refused = run(*command, "--eos", "0", "--json")
    assert refused.returncode == 3
    error = json.loads(refused.stderr)["error"]
    assert (error["type"], "eos was None, is 0" in error["message"]) == ("StateMismatch", True)
    output(*command, "--eos", "0", "--overwrite")
    assert sk.open(tmp_path / "tokens")[0]["tokens"].tolist() == [0]


@pytest.mark.parametrize(
    ("changed", "code", "message"),
    [
        (["--tokenizer", "no.json"], 4, b"there is no tokenizer at 'no.json'"),
        (["--eos", "</s>"], 2, b"'</s>' is no single token"),
        (["--engine", "fast"], 2, b"engine must be 'hf', 'tiktoken' or 'gigatoken'"),
        (["--dtype", "uint8"], 2, b"uint8 holds ids up to 255"),
        (["--column", "body"], 1, b"it has no column 'body'"),
        (["--jobs", "0"], 2, b"Invalid value for '--jobs'"),
    ],
    ids=["tokenizer", "eos", "engine", "dtype", "column", "workers"],
)
def test_wrong_arguments(
    changed: list[str], code: int, message: bytes, corpus: Corpus, tokenizer: Path, tmp_path: Path
) -> None:
    done = run("tokenize", corpus.folder, "--to", "t", "--tokenizer", tokenizer, *changed, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("name", "message"), [("out.jsonl", b"name a folder, without the suffix"), ("out", b"cannot be a folder")]
)
def test_a_file_in_the_place_of_the_folder_is_refused(
    name: str, message: bytes, corpus: Corpus, tokenizer: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"kept")
    done = run("tokenize", corpus.folder, "--to", name, "--tokenizer", tokenizer, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert (tmp_path / name).read_bytes() == b"kept"


@pytest.mark.exhaustive
def test_a_bar_is_drawn_on_a_terminal_alone(corpus: Corpus, tokenizer: Path, tmp_path: Path) -> None:
    command = ["tokenize", str(corpus.folder), "--tokenizer", str(tokenizer), "--rows-per-file", "30"]
    with in_terminal(*command, "--to", tmp_path / "a", more=AT_ONCE, columns=140) as terminal:
        code, seen = terminal.finish()
    assert code == 0
    assert re.search(rb"tokenizing.*records.*tokens, [\d.]+ M a second", seen)
    assert run(*command, "--to", tmp_path / "b", more=AT_ONCE).stderr == b""


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_command_that_is_killed_again_and_again_ends_with_the_same_bytes(
    workers: str, tokenizer: Path, tmp_path: Path
) -> None:
    lines = [json.dumps({"text": f"{row} words of some text " * 40}) for row in range(2000)]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{line}\n" for line in lines))
    command = ["tokenize", "corpus.jsonl", "--tokenizer", str(tokenizer), "--eos", EOS]
    command += ["--rows-per-file", "97", "--jobs", workers]
    output(*command, "--to", "whole", cwd=tmp_path)
    expected = contents(tmp_path / "whole")
    kills = 0
    for number in range(10):
        with subprocess.Popen(
            [SEEKABLE, *command, "--to", "killed"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                process.wait(0.5 + number % 5 * 0.2)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
            else:
                assert process.returncode == 0
                break
    output(*command, "--to", "killed", cwd=tmp_path)
    assert kills
    assert contents(tmp_path / "killed") == expected
