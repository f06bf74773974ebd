"""Folders of other tools are refused by name, however they are opened; files that the user names are not."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest
from tests.formats.forager import write_data, write_index

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.refusals import OTHER_TOOLS

if TYPE_CHECKING:
    from pathlib import Path

LINE = b'{"a": 1}\n'
CUTS = gzip.compress(b'{"id": "utt-1", "recording": {"sources": [{"type": "shar", "source": ""}]}}\n')
MEGATRON = b"MMIDIDX\x00\x00" + bytes(25)
MDS = json.dumps({"shards": [{"column_encodings": ["str"], "format": "mds"}], "version": 2}).encode()
LITDATA = json.dumps({"chunks": [{"chunk_bytes": 9, "filename": "chunk-0-0.bin"}], "config": {}}).encode()

SHAR = "a folder of Lhotse Shar"
"""It is opened where it is named by itself."""

LISTED = "a dataset of tokens, of LitData, MDS or Forager"
"""It is opened where it is named by itself, too."""

Files = dict[str, bytes]

FOLDERS: dict[str, tuple[str, Files]] = {
    LISTED: (
        "open it alone, as sk.open('",
        {
            "a.jsonl": LINE,
            "tokenized-samples/a-tokenized-samples.bin": bytes(8),
            "index/file_location.txt": b"tokenized-samples/a-tokenized-samples.bin\n",
            "index/sample_locations.bin": bytes(24),
        },
    ),
    SHAR: (
        "sk.open('shar:",
        {
            "cuts.000000.jsonl.gz": CUTS,
            "recording.000000.tar": bytes(1024),
            "recording.000000.tar.idx": bytes(16),
        },
    ),
    "a dataset of Energon": (
        "megatron.energon",
        {"shard_000.tar": b"", ".nv-meta/.info.json": b"{}", ".nv-meta/split.yaml": b"", "notes.txt": b"x\n"},
    ),
    "a dataset of MosaicML Streaming (MDS)": (
        "streaming.StreamingDataset",
        {"index.json": MDS, "shard.00000.mds": b""},
    ),
    "a dataset of LitData": ("litdata.StreamingDataset", {"index.json": LITDATA, "chunk-0-0.bin": b""}),
    "a table of Lance": (
        "Parquet",
        {"_versions/1.manifest": b"", "_transactions/0.txn": b"", "data/0.lance": b""},
    ),
    "an indexed dataset of Megatron or fairseq": (
        "sk.open('megatron:",
        {"web_text_document.bin": b"", "web_text_document.idx": MEGATRON, "web.jsonl": LINE},
    ),
    "tokens of datatrove": (
        "sk.open('tokens:",
        {"00000.ds": b"", "00000.ds.index": b"", "00000.ds.metadata": b"", "a.jsonl": LINE},
    ),
    "a data directory of Kaldi": (
        "kaldi:",
        {"wav.scp": b"u1 a.wav\n", "text": b"u1 hello\n", "notes.txt": b"x\n"},
    ),
    "a table of Delta Lake": ("file_uris", {"_delta_log/0.json": b"{}", "part-0.parquet": b""}),
    "a table of Iceberg": ("pyiceberg", {"metadata/v1.metadata.json": b"{}", "data/a.parquet": b""}),
    "a table of Hudi": ("last version", {".hoodie/hoodie.properties": b"", "a.parquet": b""}),
    "a dataset of TensorFlow Datasets": (
        "tensorflow_datasets",
        {"features.json": b"{}", "dataset_info.json": b"{}", "d-train.tfrecord-00000-of-00001": b""},
    ),
    "arrays of Zarr": ("zarr.open", {"zarr.json": b"{}", "c/0": b""}),
}

AGAIN: dict[str, tuple[str, Files]] = {
    "Shar without numbers": ("Lhotse Shar", {"cuts.jsonl.gz": CUTS, "features.tar": b""}),
    "Shar of cuts and texts": (
        "Lhotse Shar",
        {"cuts.000003.jsonl": b"{}\n", "text.000003.jsonl": b'{"cut_id": "utt-1"}\n'},
    ),
    "MDS of JSON lines": (
        "MDS",
        {
            "index.json": json.dumps({"version": 2, "shards": [{"format": "json"}]}).encode(),
            "shard.00000.jsonl": LINE,
        },
    ),
    "MDS with its index elsewhere": ("MDS", {"shard.00000.mds.zstd": b"", "a.jsonl": LINE}),
    "MDS without samples": ("MDS", {"index.json": b'{"shards": [], "version": 2}'}),
    "MDS whose index alone is here": ("MDS", {"index.json": MDS}),
    "LitData compressed": ("LitData", {"chunk-0-0.zstd.bin": b""}),
    "Lance without transactions": ("Lance", {"_versions/1.manifest": b"", "data/0.lance": b""}),
    "fairseq": ("Megatron or fairseq", {"train.bin": b"", "train.idx": b"TNTIDX\x00\x00" + bytes(50)}),
    "feats": ("Kaldi", {"feats.scp": b"u1 a.ark:5\n", "utt2spk": b"u1 s1\n"}),
    "Zarr 2": ("Zarr", {".zgroup": b"{}", "a.txt": b"x\n"}),
}

PLAIN: dict[str, Files] = {
    "an index.json of records": {"index.json": b'{"shards": 3, "chunks": []}\n'},
    "a manifest of Lhotse": {
        "cuts.jsonl.gz": gzip.compress(LINE),
        "recordings.jsonl.gz": gzip.compress(LINE),
    },
    "cuts alone": {"cuts.000000.jsonl.gz": gzip.compress(LINE)},
    "a manifest beside tar files": {"manifest.jsonl": LINE, "audio_0.tar": b"", "audio_1.tar": b""},
    "an index of Forager of other lines": {
        "a.jsonl": LINE,
        "notes/index/file_location.txt": b"a.log\n",
        "notes/index/sample_locations.bin": bytes(24),
    },
    "an archive beside": {"corpus.jsonl": LINE, "corpus.tar": b""},
    "a folder of the name index": {"index/a.jsonl": LINE, "a.jsonl": LINE},
    "files of no record beside": {"a.jsonl": LINE, "a.wav": b"", "model.bin": b"", "README.md": b"# x\n"},
    "names of Megatron without its bytes": {"a.jsonl": LINE, "a.bin": b"", "a.idx": b"something else"},
    "tokens below": {"a.jsonl": LINE, "tokens/a.bin": b"", "tokens/a.idx": MEGATRON},
    "audio below": {"a.jsonl": LINE, "audio/0.tar": b"", "audio/1.tar": b""},
    "a table of Lance below": {"a.jsonl": LINE, "t.lance/_versions/1": b"", "t.lance/data/0.lance": b""},
    "skipped": {"a.jsonl": LINE, "_old/index.json": MDS, ".cache/wav.scp": b""},
}


def made(folder: Path, files: Files) -> Path:
    write_data(folder, files)
    return folder


def test_each_tool_has_a_case() -> None:
    assert {tool.name for tool, _ in OTHER_TOOLS} <= FOLDERS.keys()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_another_tool_is_refused_by_name(tmp_path: Path, name: str) -> None:
    way_out, files = FOLDERS[name]
    folder = made(tmp_path / "it", files)
    alone = () if name in (SHAR, LISTED) else (folder, f"{folder}/")
    for asked in (*alone, f"{folder}/*", f"{folder}/**", [folder]):
        with pytest.raises(sk.errors.UnsupportedFormat, match=re.escape(repr(str(folder)))) as caught:
            sk.open(asked)
        assert name in str(caught.value)
        assert "cannot be opened" in str(caught.value)
        assert way_out in str(caught.value)
        assert "DIR" not in str(caught.value)
    for other in (lambda: sk.open_stream(str(folder)), lambda: verify([folder])):
        with pytest.raises(sk.errors.UnsupportedFormat, match=re.escape(name)):
            other()
    assert not (folder / ".seekable").exists()


@pytest.mark.parametrize("name", AGAIN)
def test_other_forms_are_recognised_too(tmp_path: Path, name: str) -> None:
    told, files = AGAIN[name]
    with pytest.raises(sk.errors.UnsupportedFormat, match=f"{told}.*cannot be opened"):
        sk.open([made(tmp_path, files)])


@pytest.mark.parametrize("name", PLAIN)
def test_folders_that_only_look_like_them_are_opened(tmp_path: Path, name: str) -> None:
    assert len(sk.open(made(tmp_path, PLAIN[name]))) == sum(
        path.count(b"\n") or 1
        for file, path in PLAIN[name].items()
        if ".json" in file and file[0] not in "_."
    )


@pytest.mark.parametrize("name", [SHAR, [*FOLDERS][3]])
def test_a_folder_below_is_refused_where_its_files_look_like_data(tmp_path: Path, name: str) -> None:
    made(tmp_path, {"a.jsonl": LINE})
    inner = made(tmp_path / "web" / "part 1", FOLDERS[name][1])
    for asked in (tmp_path, f"{tmp_path}/**"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=re.escape(f"{str(inner)!r} is {name}")):
            sk.open(asked)


def test_splits_below_are_refused_where_there_is_nothing_else(tmp_path: Path) -> None:
    for split in ("train", "val"):
        made(tmp_path / split, {"a.bin": b"", "a.idx": MEGATRON})
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"train' is an indexed dataset of Megatron"):
        sk.open(tmp_path)


def test_files_that_the_user_names_are_opened_as_what_they_are(tmp_path: Path) -> None:
    shar = made(tmp_path / "shar", FOLDERS[SHAR][1])
    for asked in (
        f"{shar}/cuts*.jsonl.gz",
        f"{shar}/cuts.*.jsonl.gz",
        f"{shar}/*.jsonl.gz",
        [f"{shar}/cuts.000000.jsonl.gz"],
    ):
        assert sk.open(asked)[0]["id"] == "utt-1"
    tokens = made(tmp_path / "tokens", FOLDERS["an indexed dataset of Megatron or fairseq"][1])
    assert list(sk.open(f"{tokens}/*.jsonl")) == [{"a": 1}]


def test_a_format_says_what_the_files_are(tmp_path: Path) -> None:
    shar = made(tmp_path / "shar", FOLDERS[SHAR][1])
    assert sk.open(shar, format="jsonl")[0]["id"] == "utt-1"
    assert next(iter(sk.open_stream(str(shar), format="jsonl")))["id"] == "utt-1"
    assert verify(shar, format="jsonl").records == 1


def test_a_text_spec_of_a_folder_leaves_out_the_index_of_forager(tmp_path: Path) -> None:
    made(tmp_path, {"a.txt": b"one\ntwo\n", "b.jsonl": LINE})
    write_index(tmp_path, ["b.jsonl"])
    assert list(sk.open(f"txt:{tmp_path}:text")) == [{"text": "one"}, {"text": "two"}]


def test_the_index_of_forager_alone_is_no_data(tmp_path: Path) -> None:
    made(tmp_path, {"b.jsonl": LINE})
    write_index(tmp_path, ["b.jsonl"])
    for asked in (tmp_path / "index", f"{tmp_path}/index/*"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"is the index of Forager, .*file_location"):
            sk.open(asked)
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(sk.errors.UnsupportedFormat, match="is the index of Forager"):
        sk.open(tmp_path)


def test_a_folder_below_may_have_an_index_of_forager(tmp_path: Path) -> None:
    made(tmp_path, {"a.jsonl": LINE, "web/b.jsonl": LINE})
    write_index(tmp_path / "web", ["b.jsonl"])
    (tmp_path / "web/index/sample_schema.json").write_text("{}")
    assert len(sk.open(tmp_path)) == 2
    made(tmp_path, {"web/index/file_location.txt": b"../tokens/b.bin\n"})
    assert len(sk.open(f"{tmp_path}/*.jsonl")) == 1
    with pytest.raises(sk.errors.UnsupportedFormat, match=rf"web' is {LISTED}"):
        sk.open(tmp_path)


def test_the_way_out_of_a_folder_of_kaldi_works(tmp_path: Path) -> None:
    made(tmp_path, FOLDERS["a data directory of Kaldi"][1])
    assert sk.open(f"kaldi:{tmp_path}", columns=["key", "text"])[0] == {"key": "u1", "text": "hello"}


def test_a_folder_of_files_of_one_unread_format_says_which(tmp_path: Path) -> None:
    made(tmp_path, {"a/b.WAV": b"", "notes": b""})
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"'a/b\.WAV' in it is a piece of audio.*ds\.map"):
        sk.open(tmp_path)
    with pytest.raises(sk.DataNotFound, match="no data file"):
        sk.open(made(tmp_path / "other", {"a.unknown": b""}))


@pytest.mark.exhaustive
def test_folders_that_the_real_packages_wrote(tmp_path: Path) -> None:
    lhotse = pytest.importorskip("lhotse")
    webdataset = pytest.importorskip("webdataset")
    testing = pytest.importorskip("lhotse.testing.dummies")
    recordings = [testing.dummy_recording(number, with_data=True) for number in range(3)]
    cuts = lhotse.CutSet.from_cuts([recording.to_cut() for recording in recordings])
    (tmp_path / "shar").mkdir()
    cuts.to_shar(tmp_path / "shar", fields={"recording": "wav"}, shard_size=2, create_index=False)
    (tmp_path / "wds").mkdir()
    with webdataset.ShardWriter(f"{tmp_path}/wds/x-%06d.tar", maxcount=2, verbose=0) as writer:
        for number in range(3):
            writer.write({"__key__": str(number), "txt": "x"})
    assert [len(sk.open(tmp_path / folder)) for folder in ("shar", "wds")] == [3, 3]
    assert len(sk.open(f"{tmp_path}/shar/cuts.*.jsonl.gz")) == 3
