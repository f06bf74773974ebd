from __future__ import annotations

import os
from pathlib import Path

import pytest

from seekable.index.index_location import Place, find_index


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEEKABLE_INDEX_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_the_index_lies_at_the_root_if_that_can_be_written(tmp_path: Path) -> None:
    assert find_index(str(tmp_path), index_dir=None) == Place(str(tmp_path / ".seekable"), None)


def test_a_chosen_folder_mirrors_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEEKABLE_INDEX_DIR", "/env")
    assert find_index("/data/web", index_dir=None) == Place("/env/data/web/.seekable", None)
    assert find_index("/data/web", index_dir=Path("/arg")) == Place("/arg/data/web/.seekable", None)
    monkeypatch.chdir(tmp_path)
    assert find_index("/data", index_dir="here").folder == f"{tmp_path}/here/data/.seekable"
    assert find_index("/", index_dir="/arg").folder == "/arg/.seekable"


def test_where_the_root_cannot_be_written_the_cache_folder_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(path: str, mode: int, *, effective_ids: bool) -> bool:
        assert mode == os.W_OK | os.X_OK
        assert effective_ids
        return not path.startswith("/data")

    monkeypatch.setattr(os, "access", refuse)
    monkeypatch.setattr(os, "supports_effective_ids", {refuse})
    monkeypatch.setenv("HOME", "/home/me")
    place = find_index("/data/web", index_dir=None)
    assert place == Place("/home/me/.cache/seekable/data/web/.seekable", "/data/web/.seekable")
    assert place.notice == (
        "'/data/web' cannot be written: its index goes to '/home/me/.cache/seekable/data/web/.seekable'"
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_index("/data/web", index_dir=None).folder == f"{tmp_path}/seekable/data/web/.seekable"


@pytest.mark.parametrize("cuts", ["cuts.000000.jsonl", "cuts.000000.jsonl.gz"])
def test_the_index_of_a_shar_has_a_name_that_lhotse_leaves_out(tmp_path: Path, cuts: str) -> None:
    (tmp_path / cuts).touch()
    assert find_index(str(tmp_path), index_dir=None).folder == str(tmp_path / ".seekable.idx")
