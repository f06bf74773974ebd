"""Tables read in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.kaldi import SequentialReader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", ["", ",bg", ",p", ",o,s,cs,b", ",bg,p"])
def test_an_archive_and_its_script_give_the_same_entries(options: str, here: Path) -> None:
    (here / "a.ark").write_bytes(b"b 1 2\na 3\nb \nc\n")
    (here / "a.scp").write_bytes(b"b a.ark:2\na a.ark:8\nb a.ark:12\nc a.ark:14\n")
    for kind in ("ark", "scp"):
        with SequentialReader(f"{kind}{options}:a.{kind}", "int32-vector") as reader:
            found = [(key, value.tolist()) for key, value in reader]
        assert found == [("b", [1, 2]), ("a", [3]), ("b", []), ("c", [])]
        assert not reader.is_open


def test_a_cut_archive_raises_after_its_good_entries(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a \0B\4\1\0\0\0b \0B\4\1\0")
    found: list[tuple[str, int]] = []
    with SequentialReader("ark:a.ark", "int32") as reader, pytest.raises(sk.CorruptObject) as caught:
        found.extend(reader)
    assert found == [("a", 1)]
    assert (caught.value.path, caught.value.key, caught.value.offset) == ("a.ark", "b", 13)
