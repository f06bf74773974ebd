"""The index of a table, found for readers: the bytes of each entry, or nothing where the file has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.kaldi.test_dataset import matrices, write_table

import seekable as sk
from seekable.formats.kaldi.tables.key_tables import find_table_index

if TYPE_CHECKING:
    from pathlib import Path


def test_no_index_is_built(tmp_path: Path) -> None:
    archive, script = write_table(tmp_path, matrices())
    assert find_table_index(archive, "ark-matrix") is None
    assert find_table_index(script, "scp") is None
    assert sorted(os.listdir(tmp_path)) == ["feats.ark", "feats.scp"]
    with pytest.raises(sk.DataNotFound):
        find_table_index(tmp_path / "no.ark", "ark-matrix")


@pytest.mark.parametrize("kind", ["ark", "scp"])
def test_ranges_are_the_bytes_of_entries(tmp_path: Path, kind: str) -> None:
    values = matrices()
    paths = dict(zip(("ark", "scp"), write_table(tmp_path, values), strict=True))
    ds = sk.open(f"{kind}:{paths[kind]}")
    index = find_table_index(paths[kind], "ark-matrix" if kind == "ark" else "scp")
    assert index is not None
    assert len(index) == len(values)
    data = paths[kind].read_bytes()
    edges = [ds.locate(row).offset for row in range(len(ds))] + [len(data)]
    for row, key in enumerate(values):
        assert index.ranges(key) == [(edges[row], edges[row + 1])]
    assert index.ranges("utt") == index.ranges("utt00") == []


def test_a_key_of_several_entries_has_several_ranges(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(b"b 1 \na 2 \nb 3 \n")
    with pytest.warns(sk.DuplicateKeys, match="'b'"):
        sk.open(path, format=sk.formats.Kaldi(holder="int32"))
    index = find_table_index(path, "ark-int32")
    assert index is not None
    assert index.ranges("b") == [(0, 5), (10, 15)]


def test_a_file_among_others_is_found_and_a_changed_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, folder in (("a", tmp_path), ("b", tmp_path / "in")):
        write_table(folder, {f"{name}-{key}": value for key, value in matrices().items()}, name=name)
    sk.open(f"ark:{tmp_path}/**/*.ark")
    path = tmp_path / "in" / "b.ark"
    index = find_table_index(path, "ark-matrix")
    assert index is not None
    ((start, stop),) = index.ranges("b-utt3")
    assert path.read_bytes()[start:stop].startswith(b"b-utt3 \0BFM ")
    assert index.ranges("a-utt3") == []
    path.write_bytes(path.read_bytes() + b"x ")
    assert find_table_index(path, "ark-matrix") is None
    with pytest.raises(sk.IndexStale):
        index.ranges("b-utt3")
