"""``progress=``: True, False or a function, with one meaning everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.parallel import progress as module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seekable.parallel.progress import Progress


def opened(folder: Path) -> sk.Dataset:
    return sk.open(folder / "a.jsonl", progress=False)


WAYS: dict[str, Callable[[Path, Any], object]] = {
    "open": lambda folder, progress: sk.open(folder / "a.jsonl", progress=progress),
    "filter": lambda folder, progress: opened(folder).filter(bool, progress=progress),
    "write_jsonl": lambda folder, progress: opened(folder).write_jsonl(folder / "out", progress=progress),
    "write_parquet": lambda folder, progress: opened(folder).write_parquet(folder / "p", progress=progress),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_choice_means_the_same_everywhere(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars: list[str] = []
    monkeypatch.setattr(module, "terminal_progress", lambda: bars.append("asked for"))
    seen: list[Progress] = []
    for choice, asks in ((seen.append, 0), (False, 0), (True, 1), (None, 1)):
        folder = tmp_path / str(choice)[:5]
        folder.mkdir()
        (folder / "a.jsonl").write_text('{"id": 1}\n' * 40, encoding="utf-8")
        bars.clear()
        WAYS[way](folder, choice)
        assert bool(bars) == bool(asks), choice
    assert seen
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(sk.errors.WrongType, match=r"progress must be True, False or a function"):
        WAYS[way](tmp_path, "yes")
