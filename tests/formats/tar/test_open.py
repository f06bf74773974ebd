"""Tar files as datasets: records, columns, keys, places, errors, and what changes behind the back."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.thrift import ALL

import seekable as sk
from seekable.errors import (
    AmbiguousKey,
    CorruptRecord,
    DataNotFound,
    DuplicateKeys,
    IndexStale,
    InvalidArgument,
    KeyNotFound,
    MissingColumn,
    TarWarning,
    UnsupportedFormat,
    WrongType,
)
from seekable.formats.tar.sample_source import SampleSource
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.usefixtures("forked_programs")


def packed(members: Iterable[tuple[str, bytes]], *, mtime: float = 0) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, payload in members:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(payload), mtime
            archive.addfile(member, io.BytesIO(payload))
    return file.getvalue()


def samples(rows: range, fields: str = "jpg json txt") -> list[tuple[str, bytes]]:
    payloads: dict[str, Callable[[int], bytes]] = {
        "jpg": lambda row: bytes([row % 256]) * (row % 5),
        "json": lambda row: json.dumps({"i": row}).encode(),
        "txt": lambda row: f"text {row}".encode(),
        "cls": lambda row: str(row).encode(),
    }
    return [(f"d.x/{row:04}.{field}", payloads[field](row)) for row in rows for field in fields.split()]


def record(row: int) -> dict[str, Any]:
    return {
        "__key__": f"d.x/{row:04}",
        "jpg": bytes([row % 256]) * (row % 5),
        "json": {"i": row},
        "txt": f"text {row}",
    }


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "a-0.tar").write_bytes(packed(samples(range(7)), mtime=1.5))
    (tmp_path / "a-1.tar").write_bytes(packed([]))
    (tmp_path / "a-2.tar").write_bytes(packed(samples(range(7, 20))))
    return tmp_path


def test_records_are_dicts_of_the_key_and_the_fields(shards: Path) -> None:
    ds = sk.open(shards)
    assert list(ds) == [record(row) for row in range(20)]
    assert [ds[row] for row in (0, 6, 7, 19, -1)] == [record(row) for row in (0, 6, 7, 19, 19)]
    rows = [13, 2, 2, 19, 7]
    assert ds[rows] == [record(row) for row in rows]
    assert ds.columns == ["__key__", "jpg", "json", "txt"]
    assert list(pickle.loads(pickle.dumps(ds))) == list(ds)


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_any_number_of_samples(tmp_path: Path, count: int) -> None:
    (tmp_path / "a.tar").write_bytes(packed(samples(range(count), "cls txt")))
    ds = sk.open(tmp_path / "a.tar")
    assert (len(ds), len(list(ds))) == (count, count)
    assert [sample["cls"] for sample in ds] == list(range(count))


def test_samples_may_differ_in_their_fields(tmp_path: Path) -> None:
    members = [(name, data) for name, data in samples(range(9)) if not name.endswith(("3.txt", "0.json"))]
    (tmp_path / "a.tar").write_bytes(packed(members))
    expected = [record(row) for row in range(9)]
    del expected[3]["txt"], expected[0]["json"]
    ds = sk.open(tmp_path)
    assert list(ds) == expected
    assert ds[[3, 0, 4]] == [expected[3], expected[0], expected[4]]
    assert [ds[row] for row in range(9)] == expected
    filled = sk.open(tmp_path, format=sk.formats.Tar(missing="none"), columns=["txt", "__key__"])
    assert filled[3] == {"txt": None, "__key__": "d.x/0003"}
    lacking = sk.open(tmp_path, columns=["txt"])
    with pytest.raises(
        CorruptRecord, match=r"record 3 .*'d\.x/0003' at byte \d+ has no field 'txt'\. .*\(missing='none'\)"
    ):
        lacking[3]
    assert sk.open(tmp_path, columns=["txt"], errors=lambda error: error.field)[3] == "txt"


def test_columns_decide_what_records_have(shards: Path) -> None:
    assert sk.open(shards, columns=["txt"])[5] == {"txt": "text 5"}
    ds = sk.open(shards, columns=["txt", "jpg", "__key__"])
    assert list(ds[8]) == ["txt", "jpg", "__key__"]
    assert ds.columns == ["txt", "jpg", "__key__"]
    assert sk.open(shards).select_columns(["json"])[3] == {"json": {"i": 3}}
    with pytest.raises(InvalidArgument, match=r"no sample has a field 'png'; there are '__key__', 'jpg'"):
        sk.open(shards, columns=["png"])
    with pytest.raises(WrongType):
        sk.open(shards, columns="txt")


def test_only_the_columns_that_are_used_are_decoded(shards: Path) -> None:
    decoded: list[bytes] = []
    ds = sk.open(shards, decode={"txt": decoded.append, "jpg": len})
    assert ds.select_columns(["jpg"])[3] == {"jpg": 3}
    assert not decoded
    assert len(ds.filter(lambda sample: sample["json"]["i"] > 3, columns=["json"], jobs=1)) == 16
    assert (
        len(
            ds.filter(
                lambda some: [set(each) == {"json"} for each in some], size=256, columns=["json"], jobs=1
            )
        )
        == 20
    )
    assert not decoded
    assert ds[3]["txt"] is None
    assert decoded == [b"text 3"]
    with pytest.raises(MissingColumn, match=r"no column 'png'"):
        ds.filter(bool, columns=["png"])
    with pytest.raises(InvalidArgument, match="no function is given"):
        ds.filter(where=[("txt", "==", "a")], columns=["txt"])


def test_keys_come_with_the_index(shards: Path) -> None:
    ds = sk.open(shards)
    assert ds.key("d.x/0013") == record(13)
    assert list(ds.keys()) == [f"d.x/{row:04}" for row in range(20)]
    assert ds.shuffle(3).epoch(0).key("d.x/0004") == record(4)
    lean = sk.open(shards, columns=["txt"])
    assert lean.key("d.x/0002") == {"txt": "text 2"}
    assert list(lean.keys())[:2] == ["d.x/0000", "d.x/0001"]
    assert ("d.x/0002" in lean.keys(), "d.x/2" in lean.keys()) == (True, False)  # noqa: SIM118 - not a dict
    with pytest.raises(KeyNotFound):
        ds.key("d.x/13")
    assert sk.open(shards, key="txt").key("text 9") == record(9)


def test_keys_of_several_samples_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a.txt", b"1"), ("b.txt", b"2"), ("a.txt", b"3")]))
    for _ in range(2):
        with pytest.warns(DuplicateKeys, match="'a'"):
            ds = sk.open(tmp_path / "a.tar")
    with pytest.raises(AmbiguousKey):
        ds.key("a")
    assert ds.key("b")["txt"] == "2"


def test_places_are_ranges_of_the_file(shards: Path) -> None:
    ds = sk.open(shards)
    path = shards / "a-0.tar"
    where = ds.locate(3)
    assert (where.path, where.row) == (str(path), 3)
    some = path.read_bytes()[where.offset : where.offset + where.length]
    with tarfile.open(fileobj=io.BytesIO(some + bytes(2048)), mode="r:") as archive:
        assert archive.getnames() == [f"d.x/0003.{field}" for field in ("jpg", "json", "txt")]
    assert ds.find(str(path), 3) == [3]
    assert ds.source_column("file", row="row")[9]["row"] == 2


def test_members_of_a_sample_that_lie_apart(tmp_path: Path) -> None:
    apart = [*samples(range(3), "jpg"), *samples(range(3), "txt")]
    (tmp_path / "a.tar").write_bytes(packed(apart))
    with pytest.raises(UnsupportedFormat, match=r"not next to each other.*group='key'"):
        sk.open(tmp_path)
    ds = sk.open(tmp_path, format=sk.formats.Tar(group="key"))
    assert [(each["__key__"], each["txt"]) for each in ds] == [(f"d.x/{i:04}", f"text {i}") for i in range(3)]
    assert ds[1]["jpg"] == b"\1"
    assert (
        ds.fingerprint != sk.open(tmp_path, format=sk.formats.Tar(group="key"), columns=["txt"]).fingerprint
    )


def test_the_dot_at_which_a_key_ends(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a/b.c.txt", b"1"), ("a/b.d.txt", b"2")]))
    assert list(sk.open(tmp_path)) == [{"__key__": "a/b", "c.txt": "1", "d.txt": "2"}]
    assert [each["__key__"] for each in sk.open(tmp_path, format=sk.formats.Tar(splitname="last"))] == [
        "a/b.c",
        "a/b.d",
    ]
    assert [each["__key__"] for each in sk.open(tmp_path, format="tar-last")] == ["a/b.c", "a/b.d"]


def test_archives_one_behind_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed(samples(range(2))) + packed(samples(range(2, 3))))
    with pytest.raises(UnsupportedFormat, match="concatenated=True"):
        sk.open(tmp_path)
    assert list(sk.open(tmp_path, format=sk.formats.Tar(concatenated=True))) == [
        record(row) for row in range(3)
    ]


@pytest.mark.parametrize("decode", ["gif89", {"gif": "text"}])
def test_wrong_decoders_are_refused(shards: Path, decode: Any) -> None:
    with pytest.raises(InvalidArgument, match="decode"):
        sk.open(shards, decode=decode)


def test_options_of_archives_are_for_archives(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    with pytest.raises(InvalidArgument, match=r"format=Tar\(\.\.\.\) is for tar, and .* is jsonl"):
        sk.open(tmp_path, format=sk.formats.Tar(group="key"))


def test_pickles_are_refused_when_data_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a.pyd", pickle.dumps([1])), ("a.txt", b"x")]))
    with pytest.raises(UnsupportedFormat, match=r"'pyd'.*columns=.*decode="):
        sk.open(tmp_path)
    assert list(sk.open(tmp_path, columns=["txt"])) == [{"txt": "x"}]
    assert sk.open(tmp_path, decode={"pyd": pickle.loads})[0]["pyd"] == [1]


def test_a_field_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a.json", b"{}"), ("b.json", b"{"), ("b.txt", b"x")]))
    ds = sk.open(tmp_path)
    for read in (lambda: ds[1], lambda: ds[[0, 1]], lambda: list(ds)):
        with pytest.raises(CorruptRecord, match=r"'b'.*'json' at byte 1536 \(1 bytes\)") as caught:
            read()
        error = pickle.loads(pickle.dumps(caught.value))
        assert (error.row, error.key, error.field, error.offset, error.length) == (1, "b", "json", 1536, 1)
    assert sk.open(tmp_path, errors=lambda error: error.key)[[1, 0]] == ["b", {"__key__": "a", "json": {}}]
    found = ds.verify(decode=True) if hasattr(ds, "verify") else None
    assert found is None or [problem.row for problem in found.problems] == [1]


def test_compressed_archives(tmp_path: Path) -> None:
    data = packed(samples(range(300)), mtime=1.5)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.tgz").write_bytes(gzip.compress(packed(samples(range(300, 310)))))
    ds = sk.open(tmp_path)
    assert list(ds) == [record(row) for row in range(310)]
    assert ds.key("d.x/0305") == ds[305] == record(305)
    os.rename(tmp_path / "a.tar.gz", tmp_path / "c.tar")
    with pytest.raises(UnsupportedFormat, match=r"compressed by gzip.*rename it to .*c\.tar\.gz"):
        sk.open(tmp_path / "c.tar")
    for name in ("d.tar.bz2", "d.tar.xz"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(UnsupportedFormat, match="decompress it once"):
            sk.open(tmp_path / name)


def test_what_is_damaged_is_told_with_its_place(tmp_path: Path) -> None:
    path, data = tmp_path / "a.tar", packed(samples(range(3)))
    for bad, told in (
        (data[:700], r"byte \d+"),
        (data[:530] + b"9" + data[531:], r"byte 512"),
        (b"", "no byte"),
        (b"{}\n" * 400, "byte 0"),
    ):
        path.write_bytes(bad)
        with pytest.raises(UnsupportedFormat, match=told):
            sk.open(path)
    end = (len(data.rstrip(b"\0")) + 511) // 512 * 512
    path.write_bytes(data[:end])
    with pytest.warns(TarWarning, match=r"a\.tar: the archive has no end mark"):
        assert len(sk.open(path)) == 3


def test_a_file_that_was_changed_is_stale(shards: Path) -> None:
    ds = sk.open(shards)
    path = shards / "a-2.tar"
    assert ds[8] == record(8)
    data = path.read_bytes()
    path.write_bytes(data[:2048])
    with pytest.raises(IndexStale):
        ds[8]
    with pytest.raises(IndexStale):
        ds[[8, 9]]
    path.write_bytes(packed(samples(range(30, 33))))
    with pytest.raises(IndexStale):
        ds.key("d.x/0008")
    assert len(sk.open(shards)) == 10


def test_opening_again_reads_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"{number}.tar").write_bytes(packed(samples(range(2 * number, 2 * number + 2))))
    whole = list(sk.open(tmp_path))
    opened: list[str] = []
    real = os.open

    def counted(path: Any, *args: Any, **options: Any) -> int:
        opened.append(os.fsdecode(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", counted)
    ds = sk.open(tmp_path)
    assert (len(ds), ds.columns, ds.fingerprint[:5]) == (100, ["__key__", "jpg", "json", "txt"], "xxh3:")
    assert not [path for path in opened if path.endswith(".tar")]
    assert ds[[99, 0]] == [whole[99], whole[0]]


def test_fields_in_other_orders_in_other_files(tmp_path: Path) -> None:
    orders = ("jpg json txt", "txt jpg json", "json", "cls txt")
    for number, fields in enumerate(orders):
        (tmp_path / f"{number}.tar").write_bytes(packed(samples(range(number * 3, number * 3 + 3), fields)))
    ds = sk.open(tmp_path)
    assert [list(each)[1:] for each in ds[::3]] == [fields.split() for fields in orders]
    both = sk.concat(
        [sk.open(tmp_path, format=sk.formats.Tar(missing="none"), columns=["json"]), sk.open(tmp_path)]
    )
    assert both[[3, 15, 9]] == [{"json": {"i": 3}}, ds[3], {"json": None}]


def test_streams_and_loaders_resume_exactly(shards: Path) -> None:
    ds = sk.open(shards).shuffle(3)
    assert_resumes_exactly(lambda: ds, runs=1, new_process=False)
    lean = ds.select_columns(["json", "txt"])
    assert_resumes_exactly(
        lambda: sk.Loader(lean, batch_size=3, workers=2 if ALL else 1), runs=1, cuts=[3], new_process=False
    )
    assert [each["txt"] for each in sk.open(shards).stream(epochs=1)] == [f"text {row}" for row in range(20)]


def test_index_bytes_are_pinned(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(packed([("a.txt", b"1"), ("a.cls", b"22"), ("b.cls", b"3")]))
    source = sk.open(tmp_path / "a.tar")._node
    assert isinstance(source, SampleSource)
    words, at = source.files.file_words(0)
    hashes = source.key_hashes(np.arange(2))
    assert list(words.span(at, at + 14)) == [
        *(0, 2048, 3072),
        *(2 << 32 | 0, 3),
        *hashes.tolist(),
        *(512, 1, 1536, 2 | 1 << 48, 2560, 1 | 1 << 48),
        2,
    ]
    assert source.files.schemas()[0] == [b'{"fields":["txt","cls"],"each":null}']
    assert source.words.field_sizes() == {"txt": (1, 1), "cls": (2, 3)}


def test_braces_name_files_that_must_exist(shards: Path) -> None:
    assert len(sk.open(f"{shards}/a-{{0..2}}.tar")) == 20
    assert [each["__key__"] for each in sk.open(f"{shards}/a-{{2,0}}.tar")][:1] == ["d.x/0007"]
    assert len(sk.open(f"{{{shards}/a-0,{shards}/a-2}}.tar")) == 20
    with pytest.raises(DataNotFound, match=r"of the 10 paths .* 7 do not exist; the first .*a-3\.tar"):
        sk.open(f"{shards}/a-{{0..9}}.tar")
    (shards / "{0..1}.tar").write_bytes(packed(samples(range(1))))
    assert len(sk.open(shards / "{0..1}.tar")) == 1


@pytest.mark.parametrize(
    ("beside", "rows"),
    [
        ({"index.json": b'{"__kind__": "wids-shard-index-v1"}'}, 20),
        ({"a-0.tar.idx": b"\0" * 16, "a-0_stats.json": b"{}"}, 20),
        ({"manifest.jsonl": b"{}\n{}\n"}, 2),
    ],
)
def test_files_beside_archives(shards: Path, beside: dict[str, bytes], rows: int) -> None:
    for name, data in beside.items():
        (shards / name).write_bytes(data)
    assert len(sk.open(shards)) == rows
    assert len(sk.open(shards, format="tar")) == 20


def test_pairs_of_members(tmp_path: Path) -> None:
    members = [
        ("sp0.9_utt-1.flac", b"fLaC"),
        ("sp0.9_utt-1.json", b"{}"),
        ("b.nodata", b""),
        ("b.nometa", b""),
    ]
    (tmp_path / "recording.000000.tar").write_bytes(packed(members))
    ds = sk.open(f"{tmp_path}/*.tar", format="tar-pairs", decode="bytes")
    assert list(ds) == [
        {"__key__": "sp0.9_utt-1", "flac": b"fLaC", "json": b"{}"},
        {"__key__": "b", "nodata": b"", "nometa": b""},
    ]
