"""Sibling archives: samples whose fields lie in several tar files."""

from __future__ import annotations

import gzip
import io
import pickle
import shutil
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def archive(path: Path, samples: Mapping[str, Mapping[str, bytes]]) -> None:
    """Write an archive: keys, and the bytes of each field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as file:
        for key, fields in samples.items():
            for field, data in fields.items():
                member = tarfile.TarInfo(f"{key}.{field}")
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))


def images(keys: list[str]) -> dict[str, dict[str, bytes]]:
    return {key: {"jpg": f"image of {key}".encode(), "cls": b"%d" % len(key)} for key in keys}


def captions(keys: list[str]) -> dict[str, dict[str, bytes]]:
    return {key: {"txt": f"caption of {key}".encode()} for key in keys}


KEYS = [[f"s{shard}/{row:03d}" for row in range(size)] for shard, size in enumerate((5, 0, 3))]
ALL = [key for keys in KEYS for key in keys]


def record(key: str) -> dict[str, Any]:
    return {"__key__": key, "jpg": f"image of {key}".encode(), "cls": len(key), "txt": f"caption of {key}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sides of three shards with the same keys in the same order."""
    for shard, keys in enumerate(KEYS):
        archive(tmp_path / "a" / f"{shard}.tar", images(keys))
        archive(tmp_path / "b" / f"{shard}.tar", captions(keys))
    return tmp_path


def sides(folder: Path, *names: str) -> dict[str, str]:
    names = names or ("a", "b")
    return {name: str(folder / name / "*.tar") for name in names}


def opened(folder: Path, *names: str, **options: Any) -> sk.Dataset:
    return sk.open(sides(folder, *names), **options)


def test_records_have_the_fields_of_all_sides(folder: Path) -> None:
    ds = opened(folder)
    assert len(ds) == 8
    assert ds.columns == ["__key__", "jpg", "cls", "txt"]
    assert list(ds) == [record(key) for key in ALL]
    assert ds[[7, 0, 3]] == [record(ALL[row]) for row in (7, 0, 3)]
    assert ds[-1] == record(ALL[-1])
    assert list(ds[5]) == ["__key__", "jpg", "cls", "txt"]
    assert ds.key("s2/001") == record("s2/001")
    assert "open({'a': " in repr(ds)


def test_a_record_comes_from_a_file_of_each_side(folder: Path) -> None:
    places = opened(folder).locate(6)
    assert [place.path for place in places] == [str(folder / side / "2.tar") for side in "ab"]
    assert [place.row for place in places] == [1, 1]


def test_rows_are_found_by_the_files_of_any_side(folder: Path) -> None:
    ds = opened(folder)
    for side in "ab":
        assert ds.find(folder / side / "2.tar", 1) == [6]


def test_sides_may_be_compressed(folder: Path) -> None:
    for shard in range(3):
        path = folder / "b" / f"{shard}.tar"
        (folder / "b" / f"{shard}.tar.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    assert list(sk.open({"a": folder / "a", "b": folder / "b"})) == [record(key) for key in ALL]


def test_one_archive_is_itself(folder: Path) -> None:
    ds = opened(folder, "b")
    assert list(ds) == [{"__key__": key, "txt": f"caption of {key}"} for key in ALL]


def test_lists_and_folders_are_sides_too(folder: Path) -> None:
    ds = sk.open({"a": [str(folder / "a" / f"{shard}.tar") for shard in range(3)], "b": folder / "b"})
    assert list(ds) == [record(key) for key in ALL]


def test_columns_are_read_from_their_side_alone(folder: Path) -> None:
    ds = opened(folder)
    shutil.rmtree(folder / "a")
    assert list(ds.select_columns(["txt"])) == [{"txt": f"caption of {key}"} for key in ALL]
    assert ds.select_columns(["txt"])[3] == {"txt": f"caption of {ALL[3]}"}
    with pytest.raises(sk.IndexStale, match="is not there any more"):
        ds[0]


def test_columns_are_in_the_order_of_the_caller(folder: Path) -> None:
    ds = opened(folder, columns=["txt", "cls"])
    assert ds.columns == ["txt", "cls"]
    assert [list(each) for each in ds] == [["txt", "cls"]] * 8
    assert ds[2] == {"txt": f"caption of {ALL[2]}", "cls": 6}
    assert list(opened(folder, columns=["txt", "__key__"])[2]) == ["txt", "__key__"]
    assert opened(folder, columns=["txt"]).key("s2/001") == {"txt": "caption of s2/001"}
    assert opened(folder, columns=[])[0] == {}
    with pytest.raises(
        sk.errors.InvalidArgument, match="no sample has a field 'png'; there are '__key__', 'jpg'"
    ):
        opened(folder, columns=["png"])


def test_decode_is_for_the_fields_of_all_sides(folder: Path) -> None:
    ds = opened(folder, decode={"txt": "bytes", "jpg": len})
    assert ds[0] == {**record(ALL[0]), "txt": b"caption of s0/000", "jpg": 15}
    assert opened(folder, decode="bytes")[0]["cls"] == b"6"
    with pytest.raises(sk.errors.InvalidArgument, match="decode has 'png'"):
        opened(folder, decode={"png": "pil"})
    ours = opened(folder, decode="webdataset")[0]
    assert ours == {**record(ALL[0]), "__url__": ours["__url__"]}
    assert ours["__url__"].endswith("0.tar")


def test_pickles_are_refused_at_opening(folder: Path) -> None:
    for shard, keys in enumerate(KEYS):
        archive(folder / "c" / f"{shard}.tar", {key: {"pyd": pickle.dumps(key)} for key in keys})
    with pytest.raises(sk.errors.UnsupportedFormat, match="the field 'pyd' is not loaded"):
        opened(folder, "a", "c")
    assert opened(folder, "a", "c", columns=["jpg"])[0] == {"jpg": b"image of s0/000"}
    assert opened(folder, "a", "c", decode={"pyd": pickle.loads})[0]["pyd"] == "s0/000"


def shuffle_side(folder: Path, seed: int = 0) -> None:
    """Write the second side in another order within each shard."""
    random = np.random.default_rng(seed)
    shutil.rmtree(folder / "b")
    for shard, keys in enumerate(KEYS):
        archive(folder / "b" / f"{shard}.tar", captions(list(random.permutation(keys))))


def test_rows_in_another_order_are_matched_by_key(folder: Path) -> None:
    shuffle_side(folder)
    ds = opened(folder)
    assert list(ds) == [record(key) for key in ALL]
    assert [ds[row] for row in range(8)] == list(ds)
    first, second = ds.locate(0)
    assert first.row == 0
    assert sk.open(str(folder / "b" / "*.tar"))[second.row]["__key__"] == ALL[0]
    assert ds.find(second.path, second.row) == [0]
    assert list(ds.select_columns(["txt"])) == [{"txt": f"caption of {key}"} for key in ALL]
    assert ds.key(ALL[6]) == record(ALL[6])


def lacking(folder: Path) -> None:
    """Let the first side lack a sample, and the second side two of the same shard and all of another."""
    archive(folder / "a" / "0.tar", images([KEYS[0][at] for at in (0, 1, 3, 4)]))
    archive(folder / "b" / "0.tar", captions([KEYS[0][at] for at in (4, 2, 0)]))
    archive(folder / "b" / "2.tar", {})


def test_a_missing_sample_is_an_error_that_says_where(folder: Path) -> None:
    lacking(folder)
    with pytest.raises(sk.errors.UnsupportedFormat) as raised:
        opened(folder)
    message = str(raised.value)
    assert f"{folder / 'a' / '0.tar'} ('a') lacks 1 sample of {folder / 'b' / '0.tar'} ('b')" in message
    assert "the first is row 1, key 's0/002'" in message
    assert "missing='none'" in message
    assert "on='__key__'" in message


def without(key: str, *fields: str) -> dict[str, Any]:
    return {**record(key), **dict.fromkeys(fields)}


def test_fields_of_a_missing_sample_are_none(folder: Path) -> None:
    lacking(folder)
    ds = opened(folder, format=sk.formats.Tar(missing="none"))
    expected = [
        record("s0/000"),
        without("s0/001", "txt"),
        without("s0/003", "txt"),
        record("s0/004"),
        without("s0/002", "jpg", "cls"),
        *(without(key, "txt") for key in KEYS[2]),
    ]
    assert list(ds) == expected
    assert [ds[row] for row in range(len(ds))] == expected
    assert [list(each) for each in ds] == [["__key__", "jpg", "cls", "txt"]] * 8
    assert ds.key("s0/002") == expected[4]
    assert [place.path for place in ds.locate(4)] == [str(folder / "b" / "0.tar")]
    assert ds.find(folder / "b" / "0.tar", 1) == [4]
    assert [each["txt"] for each in ds.select_columns(["txt"])] == [each["txt"] for each in expected]
    columns = opened(folder, format=sk.formats.Tar(missing="none"), columns=["txt", "__key__"])
    assert list(columns) == [{"txt": each["txt"], "__key__": each["__key__"]} for each in expected]
    assert ds.source_column("file")[4]["file"].endswith("b/0.tar")


def test_a_key_twice_cannot_be_matched_by_key(folder: Path) -> None:
    with tarfile.open(folder / "b" / "0.tar", "w", format=tarfile.USTAR_FORMAT) as file:
        for key in ("s0/000", "s0/001", "s0/000", "s0/003", "s0/004"):
            file.addfile(tarfile.TarInfo(f"{key}.txt"), io.BytesIO())
    with (
        pytest.warns(sk.errors.DuplicateKeys),
        pytest.raises(sk.errors.UnsupportedFormat, match="rows 0 and 2 have the key"),
    ):
        opened(folder, format=sk.formats.Tar(missing="none"))


def test_other_numbers_of_shards_need_a_join(folder: Path) -> None:
    (folder / "b" / "1.tar").unlink()
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"'a' has 3, 'b' has 2\. sk\.join\(.*on='__key__'\)"
    ):
        opened(folder)
    a, b = (sk.open(path) for path in sides(folder).values())
    assert list(sk.join(a, b, on="__key__", jobs=1)) == [record(key) for key in ALL]


def test_equal_fields_need_a_suffix(folder: Path) -> None:
    for shard, keys in enumerate(KEYS):
        archive(folder / "c" / f"{shard}.tar", {key: {"txt": b"c", "cls": b"7"} for key in keys})
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'a' and 'c' both have a field 'cls'.*suffix=\{'c': '_c'\}"
    ):
        opened(folder, "a", "c")
    whole = {**record(ALL[0]), "txt_c": "c", "cls_c": 7}
    assert opened(folder, "a", "b", "c", format=sk.formats.Tar(suffix={"c": "_c"}))[0] == whole
    assert opened(folder, "a", "c", format=sk.formats.Tar(suffix="_2"))[0] == {
        **{name: value for name, value in record(ALL[0]).items() if name != "txt"},
        "txt": "c",
        "cls_2": 7,
    }
    ds = opened(
        folder,
        "a",
        "b",
        "c",
        format=sk.formats.Tar(suffix={"a": "_a", "c": "_c"}),
        columns=["cls_c", "txt", "cls_a"],
    )
    assert list(ds[0].items()) == [("cls_c", 7), ("txt", "caption of s0/000"), ("cls_a", 6)]
    assert opened(folder, "a", "c", columns=["jpg", "txt"])[0] == {"jpg": b"image of s0/000", "txt": "c"}


@pytest.mark.parametrize(
    ("sources", "options", "error", "message"),
    [
        ({}, {}, sk.errors.InvalidArgument, "at least one"),
        ({3: "a/*.tar"}, {}, sk.errors.WrongType, "must be names"),
        ({"a": None}, {}, sk.errors.WrongType, "a list of those; got None"),
        ({"a": {"b": "c"}}, {}, sk.errors.WrongType, "a list of those; got {'b': 'c'}"),
        (
            {"a": "a/*.tar"},
            {"format": sk.formats.Tar(suffix={"x": "_"})},
            sk.errors.InvalidArgument,
            "suffix has 'x'",
        ),
        ({"a": "a/*.tar"}, {"key": "cls"}, sk.errors.InvalidArgument, "key="),
        ({"a": "a/*.tar", "b": "l.jsonl"}, {}, sk.errors.InvalidArgument, "a dict is for sibling archives"),
        ("a/*.tar", {"format": sk.formats.Tar(suffix="_b")}, sk.errors.InvalidArgument, "suffix="),
        ({"a": "nothing/*.tar"}, {}, sk.DataNotFound, "nothing"),
    ],
)
def test_what_a_dict_cannot_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sources: Any, options: Any, error: Any, message: str
) -> None:
    monkeypatch.chdir(folder)
    (folder / "l.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(error, match=message):
        sk.open(sources, **options)


def test_fingerprints_differ_where_records_do(folder: Path) -> None:
    plain = opened(folder).fingerprint
    assert opened(folder).fingerprint == plain
    assert (
        opened(folder).select_columns(["txt"]).fingerprint
        == opened(folder).select_columns(["txt"]).fingerprint
    )
    others = [
        opened(folder, columns=["txt"]),
        opened(folder, format=sk.formats.Tar(missing="none")),
        opened(folder, decode="bytes"),
        opened(folder, "b", "a"),
        opened(folder, format=sk.formats.Tar(suffix="_b")),
    ]
    assert len({plain, *(other.fingerprint for other in others)}) == 6


@pytest.mark.parametrize("order", ["the same", "another"])
def test_copies_of_processes_are_the_same(folder: Path, order: str) -> None:
    if order == "another":
        shuffle_side(folder)
    ds = opened(folder)
    copy = pickle.loads(pickle.dumps(ds))
    assert list(copy) == list(ds)
    assert copy.fingerprint == ds.fingerprint


def test_a_pipeline_file_holds_sibling_archives(folder: Path) -> None:
    for options in (
        {},
        {"format": sk.formats.Tar(missing="none", suffix={"b": "_b"}), "columns": ["txt", "jpg"]},
        {
            "columns": ["txt"],
        },
    ):
        ds = opened(folder, **options).shuffle(seed=1)
        ds.save(folder / "pipeline.json")
        again = sk.load_pipeline(folder / "pipeline.json")
        assert list(again) == list(ds)
        assert again.fingerprint == ds.fingerprint


def is_first(each: dict[str, Any]) -> bool:
    return bool(each["__key__"].endswith("000"))


def test_keys_are_read_without_the_fields(folder: Path) -> None:
    for options in ({}, {"columns": ["txt"]}, {"decode": {"txt": "int"}}):
        ds = opened(folder, **options)
        assert list(ds.keys()) == ALL
        assert ds.shuffle(seed=1).keys()[0] == ds.shuffle(seed=1).map(str).keys()[0]
        keys = ds.keys()
        assert "s2/001" in keys
        assert "s2/003" not in keys
    lacking(folder)
    assert list(opened(folder, format=sk.formats.Tar(missing="none"), columns=["txt"]).keys())[3:5] == [
        "s0/004",
        "s0/002",
    ]


def test_orders_filters_and_streams_over_sibling_archives(folder: Path) -> None:
    shuffle_side(folder)
    ds = opened(folder)
    expected = [record(key) for key in ALL]
    shuffled = list(ds.shuffle(seed=3, window=1))
    assert sorted(shuffled, key=lambda each: each["__key__"]) == expected
    assert list(ds.filter(where=[("cls", "==", 6)])) == expected
    mixed = sk.concat([ds, opened(folder)])
    assert mixed[[0, 8, 15]] == [expected[0], expected[0], expected[7]]
    firsts = iter(sk.Loader(ds.stream(lanes=2).filter(is_first), batch_size=2, collate=list))
    assert [each["__key__"] for each in next(firsts)] == ["s0/000", "s2/000"]


def test_a_changed_shard_is_stale(folder: Path) -> None:
    ds = opened(folder)
    assert ds[0] == record(ALL[0])
    archive(folder / "b" / "0.tar", captions(KEYS[0][:4]))
    with pytest.raises(sk.IndexStale):
        list(ds)


def test_a_corrupt_field_names_its_file_and_key(folder: Path) -> None:
    bad = captions(KEYS[0])
    bad[KEYS[0][2]]["txt"] = b"\xff"
    archive(folder / "b" / "0.tar", bad)
    with pytest.raises(sk.CorruptRecord) as raised:
        opened(folder)[2]
    assert raised.value.path == str(folder / "b" / "0.tar")
    assert "s0/002" in str(raised.value)
    assert opened(folder, errors=lambda _: sk.HOLE)[2] is sk.HOLE
    assert opened(folder, errors=lambda error: {"txt": str(error.row)})[2] == {**record(ALL[2]), "txt": "2"}
