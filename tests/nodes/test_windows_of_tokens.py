"""Windows that are copied from the axis of tokens, against the documents end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.nodes.token_data import open_source, write_pair, write_tokens

import seekable as sk
from seekable.errors import CorruptRecord, IndexStale
from seekable.formats.tokens.words import AlignedFile, TokenSchema
from seekable.packing.nodes.packed_plan import WindowPlan

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = [[3, 0, 9, 1], [], [2], [30, 4, 4]]


def opened(folder: Path, *, minus: int = 0, header: int = 0) -> tuple[sk.Dataset, dict[str, Any]]:
    """Write four files with a mask each; return their dataset, and all arrays end to end."""
    rng, whole = np.random.default_rng(1), {"tokens": [np.zeros(0, int)], "mask": [np.zeros(0, int)]}
    for number, lengths in enumerate(LENGTHS):
        mask = AlignedFile("mask", "|u1", f"{number}.mask", 3)
        schema = TokenSchema("<i4", minus=minus, first=header, aligned=(mask,))
        documents = [
            {"tokens": rng.integers(0, 99, length), "mask": rng.integers(0, 2, length)} for length in lengths
        ]
        write_tokens(folder / f"{number}.bin", documents, schema, header=header)
        for name, arrays in whole.items():
            arrays += [document[name] for document in documents]
    source = open_source(folder, [f"{number}.bin" for number in range(4)])
    return sk.Dataset(source), {name: np.concatenate(arrays) for name, arrays in whole.items()}


@pytest.mark.parametrize(("minus", "header"), [(0, 0), (1, 5)])
@pytest.mark.parametrize("next_token", [False, True])
@pytest.mark.parametrize("length", [1, 4, 13])
def test_windows_are_ranges_of_all_tokens(
    tmp_path: Path, length: int, minus: int, header: int, *, next_token: bool
) -> None:
    data, whole = opened(tmp_path, minus=minus, header=header)
    windows = data.windows(length, next_token=next_token, align=["mask"])
    count, width = (53 - next_token) // length, length + next_token
    assert len(windows) == count
    rows = np.random.default_rng(2).integers(0, 3 * count, 40)
    plan = windows._node.plan(rows)
    assert isinstance(plan, WindowPlan)
    for name, values in whole.items():
        expected = [values[row % count * length :][:width].tolist() for row in rows.tolist()]
        assert (plan.arrays() or {})[name].tolist() == expected
        assert [record[name].tolist() for record in plan.slice(3, 9).read()] == expected[3:9]
        assert [windows[row][name].tolist() for row in range(count)] == [
            values[row * length :][:width].tolist() for row in range(count)
        ]
    assert plan.paths == {str(tmp_path / f"{number}.bin") for number in (0, 2, 3)}
    assert plan.bytes == 40 * width * 5
    assert data.windows(length)._node.plan(rows).bytes == 40 * length * 4  # without the mask
    assert plan.slice(4, 4).read() == []


def test_windows_lead_to_their_documents(tmp_path: Path) -> None:
    data, _ = opened(tmp_path)
    windows = data.windows(4)
    located = windows.locate(3)
    assert [(place.path[-5:], place.row, place.offset, place.length) for place in located] == [
        ("0.bin", 3, 48, 4),
        ("2.bin", 0, 0, 8),
        ("3.bin", 0, 0, 4),
    ]
    assert windows.find(str(tmp_path / "2.bin"), 0) == [3]


def test_segments_of_windows_are_those_of_documents(tmp_path: Path) -> None:
    data, whole = opened(tmp_path)
    windows = data.windows(13, columns=["tokens", "segment_ids"])
    assert not isinstance(windows._node.plan(np.array([0])), WindowPlan)
    assert windows[0]["tokens"].tolist() == whole["tokens"][:13].tolist()
    assert windows[0]["segment_ids"].tolist() == [1] * 3 + [2] * 9 + [3]


def test_changed_files_are_refused(tmp_path: Path) -> None:
    data, _ = opened(tmp_path)
    windows = data.windows(4, align=["mask"])
    assert len(windows[0]["mask"]) == 4
    (tmp_path / "0.mask").write_bytes(b"")
    with pytest.raises(IndexStale, match=r"0\.mask"):
        windows._node.fetch(np.array([0, 1]))


def test_short_aligned_files_are_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / "3.mask").write_bytes((tmp_path / "3.mask").read_bytes()[:-1])
    data = sk.Dataset(open_source(tmp_path, ["0.bin", "3.bin"]))
    windows = data.windows(3, align=["mask"])
    assert len(windows[0]["mask"]) == 3
    with pytest.raises(CorruptRecord, match=r"3\.mask"):
        windows._node.fetch(np.array([len(windows) - 1]))


def test_batches_of_windows_are_arrays(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.bin", [np.arange(9), np.arange(9, 40)])
    windows = sk.open(f"megatron:{tmp_path}/a").windows(5)
    batches = list(windows.batches("numpy", size=3))
    assert [batch["tokens"].shape for batch in batches] == [(3, 5), (3, 5), (2, 5)]
    assert np.concatenate([batch["tokens"].reshape(-1) for batch in batches]).tolist() == list(range(40))
