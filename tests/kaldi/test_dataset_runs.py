"""Runs over Kaldi's tables: workers, streams, states, pipeline files, threads and forks that share files."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.test_dataset import matrices, same, write_table

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.testing import assert_resumes_exactly
from seekable.testing.resume import same as all_same

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("forked_programs")

KINDS = ["scp", "ark"]


def table(folder: Path, kind: str, count: int = 40) -> sk.Dataset:
    archive, script = write_table(folder, matrices(count))
    return sk.open(f"{kind}:{script if kind == 'scp' else archive}")


def length(record: Any) -> tuple[str, int]:
    return record[0], len(record[1])


def long(record: Any) -> bool:
    return len(record[1]) > 9


@pytest.mark.parametrize("kind", KINDS)
def test_workers_give_the_batches_of_one_process(tmp_path: Path, kind: str) -> None:
    ds = table(tmp_path, kind).shuffle(seed=3)
    one, two = (list(sk.Loader(ds, batch_size=7, collate=list, workers=count)) for count in (0, 1))
    assert all_same(one, two)
    assert sorted(key for batch in one for key, _ in batch) == sorted(matrices(40))


@pytest.mark.parametrize("kind", KINDS)
def test_mixtures_and_streams_resume_exactly(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    one, other = table(tmp_path, kind), table(tmp_path / "other", "ark", 11)
    mixed = sk.mix([one.shuffle(seed=1), other.shuffle(seed=2)], weights=[3, 1], seed=4)
    for data in (mixed, mixed.stream(lanes=2).filter(long).map(length).shuffle(buffer=5, seed=1)):
        assert_resumes_exactly(
            lambda: sk.Loader(data, batch_size=4, collate=list, steps=9),  # noqa: B023 - used at once
            cuts=[0, 1, 4, 9],
            new_process=False,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_resume_continues_after_files_were_added(tmp_path: Path, kind: str) -> None:
    keys = list(matrices(20))
    write_table(tmp_path, matrices(20), name="a")
    loader = sk.Loader(sk.open(f"{kind}:{tmp_path}/*.{kind}").map(length), batch_size=4, collate=list)
    batches = iter(loader)
    seen = [key for _ in range(3) for key, _ in next(batches)]
    sk.save_state(tmp_path / "state", loader)
    write_table(tmp_path, {f"new-{key}": value for key, value in matrices(9).items()}, name="b")
    later = sk.Loader(sk.open(f"{kind}:{tmp_path}/*.{kind}").map(length), batch_size=4, collate=list)
    assert sk.load_state(tmp_path / "state", later, resume="rows")
    rest = [key for batch in later for key, _ in batch]
    assert seen + rest[:8] == keys


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_file_opens_the_table_again(tmp_path: Path, kind: str) -> None:
    ds = table(tmp_path, kind)
    ds.shuffle(seed=5).save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json")
    assert again.fingerprint == ds.shuffle(seed=5).fingerprint
    assert same(again[3], ds.shuffle(seed=5)[3])
    ds.save(tmp_path / "table.json")
    assert sk.load_pipeline(tmp_path / "table.json").key("utt7")[1].shape == (8, 3)
    text = (tmp_path / "table.json").read_text()
    assert "pipes" not in text
    (tmp_path / "bad.json").write_text(text.replace('"matrix"', '"no-holder"'))
    with pytest.raises(sk.errors.CorruptState, match="no-holder"):
        sk.load_pipeline(tmp_path / "bad.json")


def test_commands_of_a_pipeline_run_if_the_caller_says_so(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(2))
    (tmp_path / "a.scp").write_text(f"a tail -c +6 {archive} |\n")
    sk.open(tmp_path / "a.scp", format=sk.formats.Kaldi(holder="matrix", pipes="allow")).save(
        tmp_path / "p.json"
    )
    with pytest.raises(sk.CorruptRecord, match="PipeRefused"):
        sk.load_pipeline(tmp_path / "p.json")[0]
    assert sk.load_pipeline(tmp_path / "p.json", pipes="allow")[0][1].shape == (1, 3)
    with pytest.raises(sk.errors.InvalidArgument, match="pipes must be"):
        sk.load_pipeline(tmp_path / "p.json", pipes="all")  # type: ignore[arg-type]


def test_a_folder_of_archives_and_scripts_asks_which(tmp_path: Path) -> None:
    write_table(tmp_path, matrices(3))
    with pytest.raises(sk.errors.UnsupportedFormat, match="'scp:PATH' or 'ark:PATH'"):
        sk.open(tmp_path)
    assert len(sk.open(f"scp:{tmp_path}")) == len(sk.open(f"ark:{tmp_path}")) == 3


def test_a_pipeline_of_a_permissive_table_stays_permissive(tmp_path: Path) -> None:
    (tmp_path / "a.scp").write_text("a no.ark:5\n")
    sk.open(f"scp,p:{tmp_path}/a.scp", format=sk.formats.Kaldi(holder="matrix")).save(tmp_path / "p.json")
    with pytest.warns(sk.errors.KaldiWarning, match="left out"):
        assert sk.load_pipeline(tmp_path / "p.json")[0] is sk.HOLE


@pytest.mark.parametrize("kind", KINDS)
def test_positions_lead_to_entries_and_back(tmp_path: Path, kind: str) -> None:
    ds = table(tmp_path, kind)
    shuffled = ds.shuffle(seed=2)
    for row in (0, 17, 39):
        place = ds.locate(row)
        assert place.path.endswith(f"feats.{kind}")
        assert shuffled[shuffled.find(place.path, row)[0]][0] == ds[row][0]
    assert [key for key, _ in ds.filter(long)] == list(matrices(40))[9:]
    assert ds.filter(long).key("utt12")[0] == "utt12"
    assert ds.map(length).key("utt3") == ("utt3", 4)
    assert sk.kaldi.shapes(ds.select([3, 1])).tolist() == [[4, 3], [2, 3]]  # type: ignore[union-attr]
    assert list(ds.map(length).select([3, 1]).keys()) == ["utt3", "utt1"]
    parts = ds.split({"train": 0.75, "test": 0.25}, seed=1)
    assert len(parts["test"]) == 10
    with pytest.raises(sk.errors.InvalidArgument, match="makes records of several"):
        ds.batch(2).keys()
    with pytest.raises(sk.errors.InvalidArgument, match="makes other records"):
        sk.kaldi.shapes(ds.map(length))
    with pytest.raises(sk.errors.InvalidArgument, match="opened without"):
        sk.from_sequence("ab").keys()
    with pytest.raises(sk.errors.InvalidArgument, match="is none"):
        sk.kaldi.shapes(sk.from_sequence("ab"))


def test_keys_are_a_sequence(tmp_path: Path) -> None:
    keys = table(tmp_path, "scp", 12).shuffle(seed=1).keys()
    assert len(keys) == 12
    assert sorted(keys) == sorted(matrices(12))
    assert list(keys) == [keys[row] for row in range(12)]
    assert keys[-1] == keys[11]
    assert keys[2:8:3] == [keys[2], keys[5]]
    assert "utt3" in keys
    assert "utt99" not in keys
    assert 3 not in keys
    assert keys.index("utt3") == list(keys).index("utt3")
    with pytest.raises(sk.errors.OutOfRange):
        keys[12]
    (tmp_path / "a.jsonl").write_text('{"id": "x"}\n{"id": 7}\n')
    keys = sk.open(tmp_path / "a.jsonl", key="id").keys()
    assert list(keys) == ["x", 7]
    assert 7 in keys
    assert "7" not in keys


def test_shapes_of_different_dimensions_are_tuples(tmp_path: Path) -> None:
    one = write_table(tmp_path, matrices(2))[0]
    other = write_table(tmp_path, {"a": np.arange(5), "b": np.arange(2)}, "vector", name="v")[0]
    both = sk.concat([sk.open(one), sk.open(other)])
    assert sk.kaldi.shapes(both) == [(1, 3), (2, 3), (5,), (2,)]
    assert sk.kaldi.shapes(sk.open(other)).dtype == np.int64  # type: ignore[union-attr]
    assert np.asarray(sk.kaldi.shapes(sk.open(one)[:0])).shape == (0, 0)


def test_threads_and_a_fork_share_a_table_of_many_files(tmp_path: Path) -> None:
    lines = []
    for number in range(12):
        _, script = write_table(tmp_path, {f"utt{number}": np.full((2, 2), number, "f4")}, name=f"f{number}")
        lines.append(script.read_text())
    (tmp_path / "all.scp").write_text("".join(lines))
    ds = sk.open(tmp_path / "all.scp", storage=sk.Storage(max_open_files=3))
    wanted = [number % 12 for number in range(300)]
    with ThreadPoolExecutor(8) as threads:
        assert [int(value[0, 0]) for _, value in threads.map(ds.__getitem__, wanted)] == wanted
    assert len(ds._node.decoder.entries.files._files) <= 3  # type: ignore[attr-defined]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, pickle.dumps([int(ds[row][1][0, 0]) for row in range(12)]))
        os._exit(0)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pickle.loads(os.read(reading, 1 << 16)) == list(range(12))
    os.close(reading)
    ds.close()
    assert len(ds._node.decoder.entries.files._files) == 0  # type: ignore[attr-defined]
    assert ds[3][1][0, 0] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_verification_finds_a_damaged_entry(tmp_path: Path, kind: str) -> None:
    table(tmp_path, kind, 5)
    path = tmp_path / f"feats.{kind}"
    source = f"{kind}:{path}"
    assert verify(source, deep=True, decode=True).problems == ()
    archive = tmp_path / "feats.ark"
    if kind == "scp":
        archive.write_bytes(archive.read_bytes()[:-9])
        (problem,) = verify(source, decode=True, format="scp-matrix").problems
        assert (problem.kind, problem.row) == ("record", 4)
    else:
        archive.write_bytes(archive.read_bytes()[:-9])
        assert [problem.kind for problem in verify(source).problems] == ["changed"]
