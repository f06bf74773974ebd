"""The versions of objects are kept beside their index, by several processes at once too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.remote.index.object_file import keep_versions, version_of
from seekable.remote.listing import key_listing
from seekable.remote.stores.object_store import Stat

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROOT = "s3://versions/data"


def test_versions_that_another_call_keeps_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = {f"{ROOT}/{name}": Stat(name, 5, f'"{name}"', f"version of {name}", 0) for name in "ab"}
    identity = {name: stats[f"{ROOT}/{name}"].identity for name in "ab"}
    folder = str(tmp_path)

    def stat_each(paths: list[str]) -> dict[str, Stat]:
        if paths == [f"{ROOT}/a"]:
            keep_versions(folder, ROOT, ["b"], [identity["b"]])
        return {path: stats[path] for path in paths}

    monkeypatch.setattr(key_listing, "stat_each", stat_each)
    keep_versions(folder, ROOT, ["a"], [identity["a"]])
    assert [version_of(folder, name, identity[name]) for name in "ab"] == ["version of a", "version of b"]
