"""Tables and objects of Kaldi in stores: extended filenames, readers, scripts that name addresses."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.remote.index.counting_store import CountingStore

import seekable as sk
from seekable import kaldi
from seekable.errors import CorruptRecord, UnsupportedFormat
from seekable.remote import mounts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

MATRICES = {f"utt{row:02}": np.full((row + 1, 3), row, np.float32) for row in range(12)}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """A bucket with an archive, its script, whose lines are addresses, and other files."""
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", "0")
    monkeypatch.setenv("SEEKABLE_INDEX_DIR", str(tmp_path / "indexes"))
    made = CountingStore(f"s3://kaldi-{tmp_path.name.lower().replace('_', '-')}")
    monkeypatch.setitem(mounts._stores, (made.mount, os.getpid()), made)
    with kaldi.Writer(f"ark,scp:{tmp_path}/feats.ark,{tmp_path}/feats.scp", "matrix") as writer:
        for key, value in MATRICES.items():
            writer.write(key, value)
    script = (tmp_path / "feats.scp").read_text()
    made.objects = {
        "feats.ark": (tmp_path / "feats.ark").read_bytes(),
        "feats.scp": script.replace(str(tmp_path), made.mount).encode(),
        "near.scp": script.replace(f"{tmp_path}/", "").encode(),
        "feats.ark.gz": gzip.compress((tmp_path / "feats.ark").read_bytes()),
        "one.mat": b"\0BFM \4\2\0\0\0\4\1\0\0\0" + np.arange(2, dtype=np.float32).tobytes(),
        "names": b"utt1 utt03\nutt2 utt05\n",
        "empty": b"",
    }
    return made


def same(found: Any, wanted: dict[str, Any]) -> bool:
    pairs = list(found)
    return [key for key, _ in pairs] == list(wanted) and all(
        np.array_equal(value, wanted[key]) for key, value in pairs
    )


def test_a_file_is_opened_as_a_whole_or_at_a_byte(store: CountingStore) -> None:
    data = store.objects["feats.ark"]
    with kaldi.open_rx(f"{store.mount}/feats.ark", header=False) as file:
        assert file.read() == data
        file.seek(7)
        assert file.read(3) == data[7:10]
    with kaldi.open_rx(f"{store.mount}/feats.ark:6") as file:
        assert (file.binary, file.tell(), file.read(3)) == (True, 8, data[8:11])
    with kaldi.open_rx(f"{store.mount}/feats.ark.gz:7", header=False) as file:
        assert file.read() == data[7:]
    with kaldi.open_rx(f"{store.mount}/empty") as file:
        assert (file.binary, file.read()) == (False, b"")
    with pytest.raises(sk.DataNotFound, match=r"nothing\.ark"):
        kaldi.open_rx(f"{store.mount}/nothing.ark")
    with pytest.raises(sk.errors.CorruptTable, match="the file has"):
        kaldi.open_rx(f"{store.mount}/feats.ark:99999")


def test_objects_are_read_by_name(store: CountingStore) -> None:
    assert kaldi.read(f"{store.mount}/one.mat", "matrix").tolist() == [[0], [1]]
    assert kaldi.read(f"{store.mount}/one.mat[1:1]", "matrix").tolist() == [[1]]
    (first, *_), count = kaldi.read_script(f"{store.mount}/feats.scp"), len(MATRICES)
    assert first.xfilename == f"{store.mount}/feats.ark:6"
    assert len(list(kaldi.iter_script(f"{store.mount}/feats.scp"))) == count


@pytest.mark.parametrize("spec", ["ark:{}/feats.ark", "ark:{}/feats.ark.gz", "scp:{}/feats.scp"])
def test_tables_are_read_in_order_and_by_key(store: CountingStore, spec: str) -> None:
    spec = spec.format(store.mount)
    with kaldi.SequentialReader(spec, "matrix") as reader:
        assert same(reader, MATRICES)
    with kaldi.RandomAccessReader(spec, "matrix") as table:
        for key in ("utt09", "utt02", "utt11"):
            assert np.array_equal(table[key], MATRICES[key])
        assert "utt99" not in table
    with kaldi.MappedReader(spec, f"ark:{store.mount}/names", "matrix") as mapped:
        assert np.array_equal(mapped["utt2"], MATRICES["utt05"])


@pytest.mark.parametrize(
    "line",
    [
        "LOCAL/feats.ark:6",
        "cat LOCAL/feats.ark |",
        "file://LOCAL/feats.ark:6",
        "../feats.ark:6",
        "s3://another-bucket/feats.ark:6",
        "https://127.0.0.1:1/feats.ark:6",
    ],
)
def test_a_script_of_a_store_names_nothing_elsewhere(
    store: CountingStore, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.objects["away.scp"] = f"utt00 {line}\n".replace("LOCAL", str(tmp_path)).encode()
    spec = f"scp:{store.mount}/away.scp"
    with pytest.raises(CorruptRecord, match=r"opy the script to this machine"):
        sk.open(spec, format=sk.formats.Kaldi(holder="matrix"))[0]
    with (
        kaldi.RandomAccessReader(spec, "matrix") as table,
        pytest.raises(UnsupportedFormat, match="opy the script"),
    ):
        table["utt00"]


@pytest.mark.parametrize("name", ["feats.scp", "near.scp"])
def test_a_script_names_files_of_stores_and_beside_it(
    store: CountingStore, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    ds = sk.open(f"scp:{store.mount}/{name}")
    assert same(ds, MATRICES)
    assert np.asarray(sk.kaldi.shapes(ds)).tolist() == [list(value.shape) for value in MATRICES.values()]
    assert np.array_equal(ds.key("utt04")[1], MATRICES["utt04"])


def test_a_script_of_this_machine_names_files_of_a_store(store: CountingStore, tmp_path: Path) -> None:
    path = tmp_path / "lines.scp"
    path.write_bytes(store.objects["feats.scp"])
    assert same(sk.open(f"scp:{path}"), MATRICES)


def test_options_of_a_script_reach_the_addresses_in_its_lines(
    store: CountingStore, tmp_path: Path, bucket: Bucket
) -> None:
    bucket.upload({"feats.ark": store.objects["feats.ark"], "names": store.objects["names"]})
    path = tmp_path / "lines.scp"
    path.write_bytes(store.objects["feats.scp"].replace(store.mount.encode(), bucket.url.encode()))
    mounts.mount(bucket.url, {"endpoint": "http://127.0.0.1:1"})  # An earlier call, for another store.
    options = bucket.options
    with kaldi.SequentialReader(f"scp:{path}", "matrix", storage_options=options) as reader:
        assert same(reader, MATRICES)
    with kaldi.RandomAccessReader(f"scp:{path}", "matrix", storage_options=options) as table:
        assert np.array_equal(table["utt02"], MATRICES["utt02"])
    (tmp_path / "names").write_bytes(store.objects["names"])
    for names in (f"ark:{tmp_path}/names", f"ark:{bucket.url}/names"):
        with kaldi.MappedReader(f"scp:{path}", names, "matrix", storage_options=options) as mapped:
            assert np.array_equal(mapped["utt2"], MATRICES["utt05"])
    for kind in (kaldi.SequentialReader, kaldi.RandomAccessReader):
        with pytest.raises(sk.errors.InvalidArgument, match="is neither: leave it out"):
            kind(f"ark:{tmp_path}/names", "token", storage_options=options)
    local = f"ark:{tmp_path}/names"
    with pytest.raises(sk.errors.InvalidArgument, match="is neither: leave it out"):
        kaldi.MappedReader(local, local, "token", storage_options=options)


def test_a_line_that_cannot_be_read_is_named(store: CountingStore) -> None:
    lines = {
        "beyond": f"utt {store.mount}/feats.ark:99999\n",
        "missing": f"utt {store.mount}/none.ark:5\n",
        "other": f"utt {store.mount}/feats.ark:11\n",
    }
    wanted = {"beyond": "the end of the file at byte", "missing": "none.ark", "other": "not the key"}
    for name, line in lines.items():
        store.objects[f"{name}.scp"] = line.encode()
        with pytest.raises(sk.CorruptRecord, match=wanted[name]):
            sk.open(f"scp:{store.mount}/{name}.scp", format=sk.formats.Kaldi(holder="matrix"))[0]


def test_an_object_that_was_written_again_is_read_again(store: CountingStore) -> None:
    vectors = [np.full(1 << 18, row, np.float32) for row in range(2)]
    head = b"u \0BFV \4" + np.int32(1 << 18).tobytes()
    store.objects["big.ark"] = b"".join(head + vector.tobytes() for vector in vectors)
    places = [2, 2 + len(head) + vectors[0].nbytes]
    lines = (f"u{row} {store.mount}/big.ark:{place}\n" for row, place in enumerate(places))
    store.objects["big.scp"] = "".join(lines).encode()
    ds = sk.open(f"scp:{store.mount}/big.scp", format=sk.formats.Kaldi(holder="vector"))
    assert np.array_equal(ds[0][1], vectors[0])
    store.objects["big.ark"] = b"".join(head + (vector + 7).tobytes() for vector in vectors)
    assert np.array_equal(ds[1][1], vectors[1] + 7)
    with kaldi.RandomAccessReader(f"scp:{store.mount}/big.scp", "vector") as table:
        assert np.array_equal(table["u0"], vectors[0] + 7)


def test_objects_of_a_batch_are_fetched_at_once(store: CountingStore) -> None:
    lines = []
    for row in range(12):
        store.objects[f"wav/{row}.mat"] = store.objects["one.mat"]
        lines.append(f"a{row} {store.mount}/wav/{row}.mat\n")
    store.objects["apart.scp"] = "".join(lines).encode()
    for name, files in (("feats", 1), ("apart", 12)):
        ds = sk.open(f"scp:{store.mount}/{name}.scp", format=sk.formats.Kaldi(holder="matrix"))
        store.forget()
        assert len(ds._node.fetch(np.arange(12))) == 12
        objects = [key for key, _, _ in store.reads if not key.endswith(".scp")]
        assert len(objects) == len(store.stats) == files


def test_a_directory_is_validated(store: CountingStore) -> None:
    store.objects |= {"train/text": b"utt2 good\nutt1 day\n", "train/utt2spk": b"utt1 a\nutt2 a\n"}
    problems = kaldi.validate_directory(f"{store.mount}/train")
    assert [each.line for each in problems if each.level == "error" and each.line] == [2]
    with pytest.raises(sk.DataNotFound, match="no data directory"):
        kaldi.validate_directory(f"{store.mount}/none")


def test_the_options_of_a_store_are_arguments(bucket: Bucket, store: CountingStore) -> None:
    content = {"feats.ark": store.objects["feats.ark"]}
    content["feats.scp"] = store.objects["feats.scp"].replace(store.mount.encode(), bucket.url.encode())
    bucket.upload(content)
    options: dict[str, Any] = {"storage_options": bucket.options}
    with kaldi.open_rx(f"{bucket.url}/feats.ark:6", **options) as file:
        assert file.binary
    for spec in (f"ark:{bucket.url}/feats.ark", f"scp:{bucket.url}/feats.scp"):
        with kaldi.SequentialReader(spec, "matrix", **options) as reader:
            assert same(reader, MATRICES)
        assert same(sk.open(spec, storage=sk.Storage(options=bucket.options)), MATRICES)
    with pytest.raises(sk.errors.InvalidArgument, match="endpoint"):
        kaldi.open_rx(f"{bucket.url}/feats.ark", storage_options={"endpiont": "http://x"})


@pytest.mark.parametrize("name", ["feats.ark:6", "gunzip -c feats.gz |", "-"])
def test_options_for_what_is_no_file_of_a_store_are_refused(name: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="is for addresses"):
        kaldi.open_rx(name, storage_options={"anonymous": True})
