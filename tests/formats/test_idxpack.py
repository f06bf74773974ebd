"""Packs of Lhotse's indexes: the files that they name are opened, with the offsets that are theirs."""

from __future__ import annotations

import logging
import os
import random
import re
import zlib
from typing import TYPE_CHECKING

import pytest
from tests.formats.index_packs import COLLECTION, HEADER, SEGMENT, SEQUENCE, Packed, of_lines, pack_bytes
from tests.formats.lhotse_indexes import OLD, index_of_lines, numbers

import seekable as sk
from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.formats.shar.idxpack import read_pack

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from seekable.index.finder import ByteSource


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files whose order in packs is not that of their names."""
    paths = [tmp_path / "b.jsonl", tmp_path / "data/a.json"]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(b'{"id": %d}\n' % row for row in range(3 * number, 3 * number + 3)))
        os.utime(path, (OLD, OLD))
    return paths


@pytest.fixture
def pack(tmp_path: Path, files: list[Path]) -> Path:
    path = tmp_path / "corpus.idxpack"
    path.write_bytes(pack_bytes(of_lines(*files)))
    return path


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the files that are scanned."""
    sizes: list[int] = []
    scan = JsonlScanner.scan

    def counted(scanner: JsonlScanner, source: ByteSource) -> NDArray[np.uint64]:
        sizes.append(source.size)
        return scan(scanner, source)

    monkeypatch.setattr(JsonlScanner, "scan", counted)
    return sizes


def test_a_pack_is_its_files_in_its_order_without_a_scan(
    pack: Path, files: list[Path], scanned: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "seekable"):
        ds = sk.open(str(pack))
    assert scanned == []
    assert f"found by the pack {str(pack)!r}" in caplog.text
    assert [record["id"] for record in ds] == list(range(6))
    assert [ds.locate(row).path for row in (0, 3)] == [str(path) for path in files]
    assert ds.fingerprint == sk.open([str(path) for path in files]).fingerprint
    for asked in (pack, f"idxpack:{pack}", f"idxpack:{pack}:0"):
        assert sk.open(asked).fingerprint == ds.fingerprint


def test_what_follows_an_opening_works(pack: Path, tmp_path: Path) -> None:
    ds = sk.open(pack, key="id", columns=None)
    assert ds.key(4) == {"id": 4}
    ds.shuffle(seed=1).save(tmp_path / "pipeline.json")
    assert list(sk.load_pipeline(tmp_path / "pipeline.json")) == list(ds.shuffle(seed=1))
    with pytest.raises(InvalidArgument, match="opened alone"):
        sk.open([str(pack)])


@pytest.mark.parametrize("how", ["changed", "newer", "blank"])
def test_a_file_that_is_not_as_in_the_pack_is_scanned(
    pack: Path, files: list[Path], scanned: list[int], how: str
) -> None:
    lines = {
        "changed": b'{"id":  0}\n{"id":1}\n{"id": 2}\n',
        "newer": None,
        "blank": b'{"id": 0}\n\n{"id": 2}\n',
    }[how]
    if lines is not None:
        files[0].write_bytes(lines)
        if how == "blank":
            pack.write_bytes(pack_bytes(of_lines(*files)))
    os.utime(files[0], None if how == "newer" else (OLD, OLD))
    if how == "newer":
        os.utime(pack, (OLD, OLD))
    assert len(sk.open(pack)) == (5 if how == "blank" else 6)
    assert len(scanned) == 1


def test_relative_paths_are_below_the_working_folder_or_that_of_the_pack(
    tmp_path: Path, files: list[Path], scanned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_of_lines(files[1].read_bytes())
    (tmp_path / "c.idxpack").write_bytes(pack_bytes(Packed("jsonl", [("data/a.json", index)])))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [record["id"] for record in sk.open("../c.idxpack")] == [3, 4, 5]
    assert scanned == []
    (tmp_path / "elsewhere/data").mkdir()
    (tmp_path / "elsewhere/data/a.json").write_bytes(b"7\n")
    assert list(sk.open("../c.idxpack")) == [7]


def test_of_several_collections_the_one_of_lines_is_meant_or_one_is_named(
    tmp_path: Path, files: list[Path]
) -> None:
    tars = Packed("tar", [("a.tar", None), ("b.tar", None)])
    path = tmp_path / "two.idxpack"
    path.write_bytes(pack_bytes(tars, of_lines(files[0]), Packed("ordinals", arrays=[[2, 0, 1]])))
    pack = read_pack(str(path))
    assert [each.content for each in pack.collections] == ["paths", "offsets", "array"]
    assert [each.records for each in pack.collections] == [0, 3, 3]
    assert len(sk.open(path)) == len(sk.open(f"idxpack:{path}:1")) == 3
    with pytest.raises(DataNotFound, match=r"no collection|there is no") as caught:
        sk.open(f"idxpack:{path}:0")
    assert str(path) in "".join(caught.value.__notes__)
    with pytest.raises(DataNotFound, match="2: an array of 3 numbers"):
        sk.open(f"idxpack:{path}:2")
    with pytest.raises(
        InvalidArgument,
        match=r"no collection 3. It has 0: paths 2, no offsets, kind 'tar', the first is 'a.tar'",
    ):
        sk.open(f"idxpack:{path}:3")
    path.write_bytes(pack_bytes(of_lines(files[0]), of_lines(files[1])))
    with pytest.raises(InvalidArgument, match=r"2 collections .* idxpack:PATH:NUMBER, .*:0"):
        sk.open(path)
    assert [len(sk.open(f"idxpack:{path}:{number}")) for number in (0, 1)] == [3, 3]
    path.write_bytes(pack_bytes())
    with pytest.raises(InvalidArgument, match=r"no collections .* It has none"):
        sk.open(path)


def test_files_on_other_machines_and_missing_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.idxpack"
    path.write_bytes(pack_bytes(Packed("jsonl", [("ais://bucket/a.jsonl", numbers([0, 5]))])))
    with pytest.raises(InvalidArgument, match="no package reads addresses of ais://"):
        sk.open(path)
    path.write_bytes(pack_bytes(Packed("jsonl", [("/nowhere/a.jsonl", numbers([0, 5]))])))
    with pytest.raises(DataNotFound, match=r"/nowhere/a\.jsonl"):
        sk.open(path)
    with pytest.raises(DataNotFound, match=r"y\.idxpack"):
        sk.open(tmp_path / "y.idxpack")
    (tmp_path / "z.idxpack").mkdir()
    with pytest.raises(DataNotFound, match="is not a regular file"):
        sk.open(tmp_path / "z.idxpack")
    with pytest.raises(InvalidArgument, match="not complete"):
        sk.open("idxpack:")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_pack_that_may_not_be_read_is_named(pack: Path) -> None:
    pack.chmod(0)
    with pytest.raises(AccessDenied, match=r"corpus\.idxpack"):
        sk.open(pack)


def damaged(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


U64 = (7).to_bytes(8, "little")
SEGMENTS = HEADER + COLLECTION + 2 * SEQUENCE
DAMAGE = {
    "magic": (0, b"IDXPACK9", "begins with b'IDXPACK9'", 0),
    "version": (8, b"\4", "version 4", None),
    "header size": (12, b"\7", "header of 263", None),
    "begin of the sequences": (32, U64, "the sequences begin at byte 7", 40),
    "number of collections": (24, b"\xff\xff\xff", "the collections end at byte", 16),
    "first sequence": (HEADER + 32, U64, "collection 0 has the sequences from 7", HEADER + 32),
    "number of records": (HEADER + 48, U64, "do not add up to 7", HEADER + COLLECTION + 2 * SEQUENCE),
    "kind beyond the texts": (HEADER + 64, b"\xff", "is not among the texts", HEADER + 56),
    "unknown flags of a collection": (HEADER + 68, b"\4", "flags 0x4", HEADER + 68),
    "an array of version 2": (HEADER + 68, b"\2", "flags 0x2 are not known in version 2", HEADER + 68),
    "paths alone, of offsets": (HEADER + 68, b"\1", "of several kinds", HEADER + 68),
    "a segment that is not there": (HEADER + COLLECTION, U64, "a segment 7, of 2", HEADER + COLLECTION),
    "records of a sequence": (HEADER + COLLECTION + 8, U64, "do not add up", HEADER + COLLECTION),
    "path of a segment": (SEGMENTS, bytes(8), "is not among the texts", SEGMENTS),
    "payload of a segment": (SEGMENTS + 8, U64, "begins at byte 7", SEGMENTS + 8),
    "flags of a segment": (SEGMENTS + 20, b"\3", "flags 0x3", SEGMENTS + 20),
    "numbers of a segment": (SEGMENTS + 24, U64, "7 numbers in 32 bytes", SEGMENTS + 24),
    "flags of offsets": (SEGMENTS + 52, b"\1", "of no use there", SEGMENTS + 32),
    "crc": (SEGMENTS + 48, b"\0\0\0\0", "CRC-32", None),
    "size": (SEGMENTS + 32, U64, "end with 30, not with 7", None),
    "a number": (-64 + 8, U64, "CRC-32", None),
    "the key": (HEADER, U64, "the SHA-256 of its layout", 96),
    "the digest": (96, U64, "the SHA-256 of its layout", 96),
    "a path": (SEGMENTS + 2 * SEGMENT + 6, b"x", "the SHA-256 of its layout", 96),
    "a path that is no UTF-8": (SEGMENTS + 2 * SEGMENT + 6, b"\xff", "no UTF-8", SEGMENTS + 2 * SEGMENT + 6),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_an_error_that_names_the_byte(pack: Path, kind: str) -> None:
    at, new, message, byte = DAMAGE[kind]
    data = pack.read_bytes()
    pack.write_bytes(damaged(data, at % len(data), new))
    with pytest.raises(UnsupportedFormat, match=re.escape(message)) as caught:
        sk.open(pack)
    assert str(pack) in str(caught.value)
    assert byte is None or f"at byte {byte:,}:" in str(caught.value)


def test_offsets_that_descend_are_named_by_their_byte(pack: Path, files: list[Path]) -> None:
    index = numbers([0, 20, 10, 30])
    pack.write_bytes(pack_bytes(Packed("jsonl", [(str(files[0]), index)])))
    with pytest.raises(UnsupportedFormat, match=r"descend: 10 behind 20") as caught:
        sk.open(pack)
    payload = pack.read_bytes().index(index)
    assert f"at byte {payload + 16:,}:" in str(caught.value)
    assert zlib.crc32(index)


@pytest.mark.parametrize("cut", [0, 100, 255, 256, 300, -1])
def test_a_pack_that_is_cut_off_or_longer_is_refused(pack: Path, cut: int) -> None:
    data = pack.read_bytes()
    for wrong in (data[:cut], data + bytes(8)):
        pack.write_bytes(wrong)
        with pytest.raises(UnsupportedFormat, match="no whole pack of indexes, at byte"):
            sk.open(pack)


def test_any_byte_changed_gives_the_same_records_or_an_error_of_ours(pack: Path, files: list[Path]) -> None:
    data, drawn = pack.read_bytes(), random.Random(7)
    records = list(sk.open([str(path) for path in files]))
    for _ in range(150):
        at = drawn.randrange(len(data))
        pack.write_bytes(damaged(data, at, bytes([data[at] ^ drawn.randrange(1, 256)])))
        os.utime(pack, (OLD + 1, OLD + 1))
        try:
            found = list(sk.open(pack))
        except (UnsupportedFormat, DataNotFound):
            continue
        assert found == records


@pytest.mark.frameworks(name="lhotse")
def test_packs_are_read_as_lhotse_writes_them(tmp_path: Path, files: list[Path], scanned: list[int]) -> None:
    from lhotse.index_pack import IndexPackArraySpec, IndexPackCollectionSpec, write_index_pack
    from lhotse.indexing import create_jsonl_index

    for path in files:
        create_jsonl_index(path)
    paths = tuple(map(str, files))
    tars = ("a.tar", "b.tar")
    (tmp_path / "ordinals.bin").write_bytes(b"\1\0\0\0\0\0\0\0")
    specs = [
        IndexPackCollectionSpec("manifest", "jsonl", "*.jsonl", paths),
        IndexPackCollectionSpec("audio", "tar", "*.tar", tars, offsets_required=False),
    ]
    array = IndexPackArraySpec("ordinals", "uint32", "*.bin", (tmp_path / "ordinals.bin",))
    packed = (Packed("jsonl", of_lines(*files).files), Packed("tar", [(name, None) for name in tars]))
    for version, more in ((2, ()), (3, (array,))):
        pack = write_index_pack(tmp_path / f"{version}.idxpack", [*specs, *more])
        ours = pack_bytes(*packed, *[Packed("uint32", arrays=[[1, 0]]) for _ in more])
        theirs = pack.read_bytes()
        assert [len(ours), ours[:16], ours[HEADER + 32 : HEADER + 64]] == [
            len(theirs),
            theirs[:16],
            theirs[HEADER + 32 : HEADER + 64],
        ]
        assert (
            ours[HEADER + COLLECTION * len(packed + more) :]
            == theirs[HEADER + COLLECTION * len(packed + more) :]
        )
        assert [str(each)[:1] for each in read_pack(str(pack)).collections] == list("012")[: 2 + len(more)]
        assert [record["id"] for record in sk.open(pack)] == list(range(6))
    assert scanned == []
