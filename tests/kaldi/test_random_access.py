"""Tables read by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.kaldi import RandomAccessReader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("spec", ["ark:a.ark", "ark,s:a.ark", "ark:cat a.ark |", "scp:a.scp", "scp,p:a.scp"])
def test_entries_are_found_by_their_keys(spec: str, here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1\nb 2\nc 3\n")
    (here / "a.scp").write_bytes(b"a a.ark:2\nb a.ark:6\nc a.ark:10\n")
    with RandomAccessReader(spec, "int32") as reader:
        assert reader["b"] == 2
        assert "bb" not in reader
        assert "a" in reader
        assert (reader["c"], reader["a"]) == (3, 1)
        with pytest.raises(sk.KeyNotFound, match="'d'"):
            reader["d"]
