"""Shar as a dataset: cuts with their fields, of which no more is read than is used."""

from __future__ import annotations

import builtins
import importlib.util
import io
import json
import os
import pickle
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.shar.shar_folders import cut, pairs, recording, write_lines, write_shar, write_tar
from tests.storage.compressing import compressed

import seekable as sk
from seekable.errors import CorruptRecord, IndexStale, InvalidArgument, UnsupportedFormat

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "a",
    "sp0.9_utt-1",
    "dir/utt.x",
    "é-ü",
    "x" * 120,
    "d/" * 60 + "long.name",
    "日本" * 40,
    "a//b",
    ".hidden",
    "utt 1.wav",
]


def npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def shar(tmp_path: Path) -> Path:
    write_shar(tmp_path / "shar", [3, 2])
    return tmp_path / "shar"


def expected(number: int, shard_row: int) -> dict[str, Any]:
    made = cut(number)
    made["recording"] = {**recording(number), "data": f"payload utt-{number}".encode()}
    if shard_row % 3 != 2:
        made["custom"] = {"lang": f"l{shard_row % 3}"}
    return made


EXPECTED = [expected(number, row) for number, row in enumerate([0, 1, 2, 0, 1])]


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_folder_of_cuts_beside_tar_files_is_a_shar(tmp_path: Path, suffix: str) -> None:
    write_shar(tmp_path / "shar", [3, 2], suffix=suffix)
    for asked in (tmp_path / "shar", str(tmp_path / "shar"), f"shar:{tmp_path / 'shar'}"):
        with sk.open(asked) as ds:
            assert list(ds) == EXPECTED
            assert [ds[row] for row in range(-5, 5)] == EXPECTED * 2
            assert ds[[4, 0, 4]] == [EXPECTED[4], EXPECTED[0], EXPECTED[4]]


def test_fields_may_lie_in_several_folders(shar: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("recording.000000.tar", "recording.000001.tar"):
        (shar / name).rename(other / name)
    fields = {"cuts": f"{shar}/cuts.*.jsonl", "recording": f"{other}/recording.*.tar"}
    assert sk.open(fields)[3]["recording"] == EXPECTED[3]["recording"]
    assert "custom" not in sk.open(fields)[3]
    assert list(sk.open({**fields, "lang": f"{shar}/lang.*.jsonl"})) == EXPECTED
    assert sk.open(f"shar:{shar}")[0]["recording"] == cut(0)["recording"]


def test_keys_are_the_ids_of_cuts(shar: Path) -> None:
    for columns in (None, ["recording"]):
        ds = sk.open(shar, columns=columns)
        assert list(ds.keys()) == [f"utt-{number}" for number in range(5)]
        assert ds.key("utt-3") == ds[3]
        assert "utt-9" not in ds.keys()  # noqa: SIM118 - not a dict


def test_keys_may_be_others(shar: Path) -> None:
    ds = sk.open(shar, key=lambda each: each["id"].upper(), version=1)
    assert ds.key("UTT-2")["id"] == "utt-2"


def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are opened from now on."""
    found: list[str] = []
    plain_open, plain_os_open = builtins.open, os.open

    def noting(path: Any, *args: Any, **more: Any) -> Any:
        found.append(str(path))
        return plain_open(path, *args, **more)

    def noting_os(path: Any, *args: Any, **more: Any) -> Any:
        found.append(str(path))
        return plain_os_open(path, *args, **more)

    monkeypatch.setattr(builtins, "open", noting)
    monkeypatch.setattr(os, "open", noting_os)
    return found


def test_columns_decide_which_files_are_read(shar: Path) -> None:
    sk.open(shar)
    for ds in (
        sk.open(shar, columns=["id", "supervisions"]),
        sk.open(shar).select_columns(["id", "supervisions"]),
    ):
        plan = ds._node.plan(np.arange(5))
        assert {os.path.basename(path).split(".")[0] for path in plan.paths} == {"cuts"}
        (shar / "recording.000000.tar").rename(shar / "away")
        assert [list(each) for each in ds] == [["id", "supervisions"]] * 5
        (shar / "away").rename(shar / "recording.000000.tar")
    plan = sk.open(shar, columns=["id", "recording"])._node.plan(np.arange(5))
    assert {os.path.basename(path).split(".")[0] for path in plan.paths} == {"cuts", "recording"}


def test_a_column_may_be_a_custom_field(shar: Path) -> None:
    assert sk.open(shar, columns=["lang", "id"])[0] == {"custom": {"lang": "l0"}, "id": "utt-0"}
    assert sk.open(shar, columns=["lang"])[2] == {}
    with pytest.raises(InvalidArgument, match=r"'langs'.*'lang'"):
        sk.open(shar, columns=["id", "langs"])


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_ids_may_have_any_characters_and_length(tmp_path: Path, form: int) -> None:
    write_lines(tmp_path / "cuts.000000.jsonl", [cut(number, name) for number, name in enumerate(NAMES)])
    values = [(name, "flac", name.encode(), recording(number)) for number, name in enumerate(NAMES)]
    write_tar(tmp_path / "recording.000000.tar", pairs(values), form)
    ds = sk.open(tmp_path)
    assert [each["recording"]["data"].decode() for each in ds] == NAMES
    assert [ds.key(name)["id"] for name in NAMES] == NAMES


def test_a_value_may_be_missing(tmp_path: Path) -> None:
    cuts = [cut(number) for number in range(3)]
    del cuts[1]["recording"]
    write_lines(tmp_path / "cuts.000000.jsonl", cuts)
    values = [
        (each["id"], "wav", b"x", recording(0) if number != 1 else None) for number, each in enumerate(cuts)
    ]
    write_tar(tmp_path / "recording.000000.tar", pairs(values))
    assert ["recording" in each for each in sk.open(tmp_path)] == [True, False, True]


def test_arrays_are_decoded_and_audio_is_not(tmp_path: Path) -> None:
    array, manifest = np.arange(6, dtype="<f4").reshape(2, 3), {"storage_type": "shar", "shape": [2, 3]}
    write_lines(tmp_path / "cuts.000000.jsonl", [cut(0, custom={"note": 1})])
    for field, suffix, payload in (
        ("recording", "wav", b"RIFF"),
        ("features", "npy", npy(array)),
        ("e", "npy", npy(array)),
    ):
        write_tar(tmp_path / f"{field}.000000.tar", pairs([("utt-0", suffix, payload, manifest)]))
    record = sk.open(tmp_path)[0]
    assert record["recording"]["data"] == b"RIFF"
    assert record["features"]["data"].tolist() == array.tolist()
    assert record["features"]["shape"] == [2, 3]
    assert record["custom"]["note"] == 1
    assert record["custom"]["e"]["data"].tolist() == array.tolist()
    decoded = sk.open(tmp_path, decode={"features": "bytes", "recording": len})[0]
    assert (decoded["features"]["data"], decoded["recording"]["data"]) == (npy(array), 4)
    assert decoded["custom"]["e"]["data"].tolist() == array.tolist()
    assert sk.open(tmp_path, decode="bytes")[0]["custom"]["e"]["data"] == npy(array)
    with pytest.raises(InvalidArgument, match=r"'wav'.*'e', 'features', 'recording'"):
        sk.open(tmp_path, decode={"wav": "bytes"})
    with pytest.raises(InvalidArgument, match="'nothing'"):
        sk.open(tmp_path, decode="nothing")


def test_a_shard_with_fewer_pairs_than_cuts_is_refused(shar: Path) -> None:
    write_tar(shar / "recording.000001.tar", pairs([("utt-3", "wav", b"x", recording(3))]))
    with pytest.raises(UnsupportedFormat) as caught:
        sk.open(shar)
    for word in ("recording.000001.tar", "1 records", "cuts.000001.jsonl", "2 cuts"):
        assert word in str(caught.value)


def test_a_pair_of_another_cut_is_an_error_that_names_both(shar: Path) -> None:
    values = [(f"utt-{number}", "wav", b"x", recording(number)) for number in (4, 3)]
    write_tar(shar / "recording.000001.tar", pairs(values))
    ds = sk.open(shar)
    assert ds[0] == EXPECTED[0]
    for read in (lambda: ds[3], lambda: ds[[3]], lambda: list(ds)):
        with pytest.raises(CorruptRecord) as caught:
            read()
        assert (os.path.basename(caught.value.path), caught.value.row) == ("recording.000001.tar", 0)
        for word in ("'utt-4'", "'utt-3'", "cuts.000001.jsonl: record 0 at byte 0"):
            assert word in str(caught.value)
        assert str(caught.value).endswith("say what to deliver instead with errors= of sk.open")


def test_a_line_of_another_cut_is_an_error(shar: Path) -> None:
    write_lines(
        shar / "lang.000001.jsonl", [{"cut_id": "utt-3", "lang": "x"}, {"cut_id": "utt-5", "lang": "y"}]
    )
    with pytest.raises(CorruptRecord, match=r"lang.000001.jsonl.*'utt-5'.*'utt-4'"):
        sk.open(shar)[4]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("utt-0.wav", b"x"), ("utt-0.json", b"{")], ["recording.tar"]),
        ([("utt-0.wav", b"x"), ("utt-0.json", b"[]")], ["expected the manifest of a value"]),
        ([("utt-0.npy", b"x"), ("utt-0.json", b"{}")], ["recording.tar"]),
        ([("utt-0.wav", b"x"), ("utt-0.nometa", b"")], ["found .wav, .nometa"]),
    ],
)
def test_a_pair_that_cannot_be_read_is_an_error(
    tmp_path: Path, members: list[tuple[str, bytes]], words: list[str]
) -> None:
    write_lines(tmp_path / "cuts.jsonl", [cut(0)])
    write_tar(tmp_path / "recording.tar", members)
    for asked in (0, [0]):
        with pytest.raises((CorruptRecord, UnsupportedFormat)) as caught:
            sk.open(tmp_path)[asked]
        assert all(word in str(caught.value) for word in words), caught.value


def test_errors_replaces_what_cannot_be_read(shar: Path) -> None:
    cuts = (shar / "cuts.000000.jsonl").read_bytes().splitlines(keepends=True)
    cuts[1] = b"{broken}" + cuts[1][8:]
    values = [(f"utt-{number}", "wav", b"x", recording(number)) for number in (3, 9)]
    write_tar(shar / "recording.000001.tar", pairs(values))
    plain = sk.open(shar)
    (shar / "cuts.000000.jsonl").write_bytes(b"".join(cuts))
    found: list[CorruptRecord] = []

    def note(error: CorruptRecord) -> Any:
        found.append(error)
        return sk.HOLE

    ds = sk.open(shar, errors=note, key="id")
    assert [each is sk.HOLE for each in ds] == [False, True, False, False, True]
    assert [ds[row] is sk.HOLE for row in (0, 1, 4)] == [False, True, True]
    assert {os.path.basename(error.path) for error in found} == {"cuts.000000.jsonl", "recording.000001.tar"}
    assert len(plain) == len(ds)


def test_a_changed_file_of_a_field_is_stale(shar: Path) -> None:
    ds = sk.open(shar)
    ds[0]
    with (shar / "recording.000000.tar").open("ab") as file:
        file.write(bytes(512))
    with pytest.raises(IndexStale, match=r"recording.000000.tar"):
        ds[0]


def test_a_shar_is_pickled_found_and_located(shar: Path) -> None:
    ds = pickle.loads(pickle.dumps(sk.open(shar)))
    assert list(ds) == EXPECTED
    where = ds.locate(4)
    assert (os.path.basename(where.path), where.row) == ("cuts.000001.jsonl", 1)
    assert ds.find(where.path, 1) == ds.find(shar / "recording.000001.tar", 1) == [4]


def test_the_fingerprint_is_of_all_fields_and_not_of_where_they_lie(shar: Path, tmp_path: Path) -> None:
    before = sk.open(shar).fingerprint
    assert sk.open(f"shar:{shar}").fingerprint == before
    assert sk.open(shar, columns=["id"]).fingerprint != before
    assert sk.open(shar).select_columns(["id"])._node.children[0].fingerprint == before
    shar.rename(tmp_path / "moved")
    assert sk.open(tmp_path / "moved").fingerprint == before
    (tmp_path / "moved" / "lang.000000.jsonl").unlink()
    (tmp_path / "moved" / "lang.000001.jsonl").unlink()
    assert sk.open(tmp_path / "moved").fingerprint != before


def test_cuts_alone_are_json_lines_with_keys(tmp_path: Path) -> None:
    cuts = [cut(number) for number in range(3)]
    write_lines(tmp_path / "cuts.000000.jsonl", cuts)
    ds = sk.open(tmp_path)
    assert list(ds) == cuts
    assert ds.key("utt-1") == cuts[1]
    assert ds.fingerprint == sk.open(tmp_path / "cuts.000000.jsonl").fingerprint


def test_a_folder_may_be_opened_as_something_else(shar: Path) -> None:
    assert len(sk.open(shar, format="jsonl")) == 10
    assert len(sk.open(shar, format="shar")) == 5
    with pytest.raises(InvalidArgument, match="leave format='jsonl' out"):
        sk.open(f"shar:{shar}", format="jsonl")
    with pytest.raises(InvalidArgument, match="not complete"):
        sk.open("shar:")


@pytest.mark.parametrize("form", [sk.formats.Tar(missing="none"), sk.formats.Jsonl(partitions="hive")])
def test_values_of_other_formats_are_refused(shar: Path, form: sk.formats.Format) -> None:
    with pytest.raises(InvalidArgument, match=r"format=\w+\(\.\.\.\) is for .* is shar"):
        sk.open(shar, format=form)


def test_a_shar_is_shuffled_streamed_and_loaded(shar: Path) -> None:
    ds = sk.open(shar)
    assert sorted(each["id"] for each in ds.shuffle(seed=1)) == [f"utt-{number}" for number in range(5)]
    assert [each["id"] for each in sk.mix([ds, ds], weights=[1, 1], seed=1).take(10)]
    batches = list(sk.Loader(ds.map(json_safe), batch_size=2))
    assert [each for batch in batches for each in batch["id"]] == [f"utt-{number}" for number in range(5)]
    assert [each["id"] for each in ds.stream(lanes=1).take(5)] == [f"utt-{number}" for number in range(5)]


def json_safe(record: dict[str, Any]) -> dict[str, Any]:
    return {"id": record["id"], "bytes": len(json.dumps(record, default=len))}


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_files_of_all_fields_may_be_compressed(shar: Path, kind: Any) -> None:
    for path in [*shar.glob("*.jsonl"), *shar.glob("*.tar")]:
        path.with_name(f"{path.name}.{kind}").write_bytes(compressed([path.read_bytes()], kind))
        path.unlink()
    ds = sk.open(shar)
    assert list(ds) == EXPECTED
    assert ds[[4, 1]] == [EXPECTED[4], EXPECTED[1]]
    assert ds[2] == EXPECTED[2]
    assert ds.key("utt-3") == EXPECTED[3]


def test_a_shar_of_a_thousand_cuts_and_of_none(tmp_path: Path) -> None:
    cuts = write_shar(tmp_path / "many", [1000])
    ds = sk.open(tmp_path / "many")
    assert [each["id"] for each in ds] == [each["id"] for each in cuts]
    assert ds[999]["recording"]["data"] == b"payload utt-999"
    write_shar(tmp_path / "none", [0])
    assert list(sk.open(tmp_path / "none")) == []
    assert sk.open(tmp_path / "none", columns=["id"]).keys is not None


def test_one_cut_without_a_number(tmp_path: Path) -> None:
    write_lines(tmp_path / "cuts.jsonl", [cut(0)])
    write_tar(tmp_path / "recording.tar", pairs([("utt-0", "wav", b"x", recording(0))]))
    assert [each["recording"]["data"] for each in sk.open(tmp_path)] == [b"x"]


def test_a_torn_tar_file_is_refused_with_its_name(shar: Path) -> None:
    path = shar / "recording.000001.tar"
    path.write_bytes(path.read_bytes()[:2100])
    with pytest.raises(UnsupportedFormat, match=r"recording.000001.tar"):
        sk.open(shar)
    assert len(sk.open({"cuts": shar, "lang": shar})) == 5


def test_a_missing_package_is_named_with_its_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "cuts.jsonl", [cut(0)])
    write_tar(tmp_path / "features.tar", pairs([("utt-0", "llc", b"L...", {"num_features": 4})]))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(sk.MissingDependency, match=r"'features'.*lilcom.*decode={'features': 'bytes'}"):
        sk.open(tmp_path)
    assert sk.open(tmp_path, columns=["id"])[0] == {"id": "utt-0"}
    assert sk.open(tmp_path, decode={"features": "bytes"})[0]["features"]["data"] == b"L..."
