"""A save that is killed leaves the pipeline file that was there, or the new one, and its rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.killing import KILLED, Killer, one_of_each_kind

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OLD, NEW = 9, 17


def save(folder: Path, above: int) -> None:
    ds = sk.open(folder / "data.jsonl").filter(where=[("id", ">=", above)], jobs=1)
    ds.save(folder / "saved" / "pipeline.json")


def check_kills(folder: Path, points: Iterable[tuple[str | None, int]], killer: Killer) -> list[int]:
    codes, found = [], set()
    for kind, number in points:
        save(folder, OLD)
        codes.append(killer.kill_at(number, folder / "saved", save, folder, NEW, kind=kind))
        loaded = sk.load_pipeline(folder / "saved" / "pipeline.json")
        found.add(loaded[0]["id"])
        assert [record["id"] for record in loaded] == list(range(loaded[0]["id"], 30))
        save(folder, NEW)
        assert sk.load_pipeline(folder / "saved" / "pipeline.json")[0] == {"id": NEW}
    assert found <= {OLD, NEW}
    return codes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": number}) + "\n" for number in range(30)]
    (tmp_path / "data.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "saved").mkdir()
    return tmp_path


def test_a_save_that_is_killed_is_whole_or_not_there(folder: Path) -> None:
    save(folder, OLD)
    with Killer() as killer:
        kinds = killer.operations(folder / "saved", save, folder, NEW)
        points: list[tuple[str | None, int]] = list(one_of_each_kind(kinds))
        assert set(check_kills(folder, points, killer)) == {KILLED}


@pytest.mark.exhaustive
def test_a_save_may_be_killed_at_every_operation(folder: Path) -> None:
    save(folder, OLD)
    with Killer() as killer:
        count = len(killer.operations(folder / "saved", save, folder, NEW))
        assert set(check_kills(folder, [(None, number) for number in range(1, count + 1)], killer)) == {
            KILLED
        }
