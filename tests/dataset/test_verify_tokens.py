"""The verification of files of tokens: ids against the vocabulary, parts of stores against digests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.nodes.token_data import write_pair
from tests.tokens.trained import byte_encoding

import seekable as sk
from seekable.dataset.verify_data import verify, verify_sources
from seekable.formats.tokens import token_source

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.index.integrity import VerificationProblem

CHARACTERS = 100_000
"""So many tokens of two bytes that the middle of a document is at neither end of a file."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of three documents of bytes, with a vocabulary of 257."""
    texts = [{"text": "a" * CHARACTERS}, {"text": ""}, {"text": "b" * CHARACTERS}]
    sk.from_sequence(texts, version="texts").write_tokens(tmp_path / "store", tokenizer=byte_encoding())
    sk.open(tmp_path / "store")
    return tmp_path / "store"


def overwrite(path: Path, token: int, value: int) -> None:
    """Overwrite one token of two bytes; the time of the file stays."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(2 * token)
        file.write(value.to_bytes(2, "little"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def brief(problems: tuple[VerificationProblem, ...]) -> list[tuple[str, str, int | None, int | None]]:
    return [(found.kind, os.path.basename(found.path), found.row, found.offset) for found in problems]


def test_a_good_store_has_no_problem(store: Path) -> None:
    found = verify(store, deep=True, decode=True, jobs=1)
    assert (found.problems, found.records) == ((), 3)


def test_an_id_beyond_the_vocabulary_is_found(store: Path) -> None:
    overwrite(store / "part-000000.bin", CHARACTERS + 300, 257)
    (problem,) = verify(store, decode=True, jobs=1).problems
    assert brief((problem,)) == [("record", "part-000000.bin", 2, 2 * CHARACTERS)]
    assert "token 300 of the document is 257, and ids are from 0 to 256" in problem.message
    overwrite(store / "part-000000.bin", 50_000, 999)
    (problem,) = verify(store, decode=True, jobs=1).problems
    assert problem.row == 0
    assert "2 records cannot be decoded" in problem.message


def test_an_id_of_the_vocabulary_is_found_by_the_digest(store: Path) -> None:
    overwrite(store / "part-000000.bin", CHARACTERS + 300, 7)
    assert verify(store, decode=True, jobs=1).problems == ()
    for found in (
        verify(store, deep=True, jobs=1),
        verify_sources(
            sk.open(store)._node,
            deep=True,
            decode=False,
            index_dir=None,
            jobs=1,
            executor=None,
            progress=None,
        ),
    ):
        assert brief(found.problems) == [("content", "part-000000.bin", None, None)]
        assert "tokens.json says" in found.problems[0].message


def test_negative_ids_are_found_in_any_file(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.bin", [np.array([1, 2]), np.array([3, -1, -1])], "<i4")
    sk.open(f"megatron:{tmp_path}/a")
    (problem,) = verify(f"megatron:{tmp_path}/a", decode=True, jobs=1).problems
    assert brief((problem,)) == [("record", "a.bin", 1, 8)]
    assert "token 1 of the document is -1, and ids are at least 0" in problem.message


def test_documents_are_checked_in_stretches_of_tokens(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_source, "_TOKENS_AT_ONCE", 5)
    overwrite(store / "part-000000.bin", 50_000, 999)
    assert [problem.row for problem in verify(store, decode=True, jobs=1).problems] == [0]
