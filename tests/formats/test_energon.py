"""Datasets of Energon: the shards of a split, without the samples that are excluded; no code of it is run."""

from __future__ import annotations

import io
import json
import logging
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import output

import seekable as sk
from seekable._optional import optional
from seekable.errors import (
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KeyNotFound,
    MissingDependency,
    SeekableError,
    UnsupportedFormat,
)
from seekable.formats.tar import energon

if TYPE_CHECKING:
    from pathlib import Path

SPLITS = """\
exclude: []
split_parts:
  train:
  - shard_{000..001}.tar
  val:
  - shard_002.tar
  test: []
"""
SAMPLES = 4


def write_dataset(folder: Path, *, splits: str = SPLITS, shards: int = 3, yaml: bool = False) -> Path:
    """Write a folder as ``energon prepare`` leaves it: sample ``i`` of shard ``s`` has the key ``s/i.5``."""
    (folder / ".nv-meta").mkdir(parents=True)
    counts = {}
    for shard in range(shards):
        name = f"shard_{shard:03}.tar"
        counts[name] = SAMPLES
        with tarfile.open(folder / name, "w") as file:
            for sample in range(SAMPLES):
                for field, content in (("txt", f"{shard}-{sample}"), ("json", json.dumps(sample))):
                    info = tarfile.TarInfo(f"{shard}/{sample}.{field}")
                    info.size = len(content)
                    file.addfile(info, io.BytesIO(content.encode()))
    described: dict[str, Any] = {"energon_version": "7.4.1", "shard_counts": counts}
    if yaml:
        lines = "".join(f"  {name}: {count}\n" for name, count in counts.items())
        (folder / ".nv-meta/.info.yaml").write_text(f"shard_counts:\n{lines}")
    else:
        (folder / ".nv-meta/.info.json").write_text(json.dumps(described))
    (folder / ".nv-meta/split.yaml").write_text(splits)
    (folder / ".nv-meta/dataset.yaml").write_text("sample_loader: boom.py:boom\n")
    (folder / ".nv-meta/boom.py").write_text("raise SystemExit('code of a dataset was run')\n")
    (folder / ".nv-meta/index.sqlite").write_bytes(b"")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data:set")


def texts(ds: sk.Dataset) -> list[str]:
    return [record["txt"] for record in ds]


TRAIN = [f"{shard}-{sample}" for shard in (0, 1) for sample in range(SAMPLES)]


@pytest.mark.parametrize("yaml", [False, True])
def test_a_split_is_its_shards(tmp_path: Path, *, yaml: bool) -> None:
    folder = write_dataset(tmp_path / "it", yaml=yaml)
    ds = sk.open(f"energon:{folder}:train")
    assert texts(ds) == TRAIN
    assert texts(sk.open(f"energon:{folder}:val")) == [f"2-{sample}" for sample in range(SAMPLES)]
    assert ds.key("1/2") == {"__key__": "1/2", "txt": "1-2", "json": 2}
    assert ds.fingerprint == sk.open([str(folder / f"shard_{n:03}.tar") for n in (0, 1)]).fingerprint
    assert sk.open(f"energon:{folder}:train", columns=["json"])[5] == {"json": 1}
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == [
        ".nv-meta",
        ".seekable",
    ]


def test_what_is_not_read_is_logged_and_not_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "seekable"):
        sk.open(f"energon:{folder}:train")
    assert "dataset.yaml' is not read" in caplog.text


def test_the_order_is_that_of_the_dataset(tmp_path: Path) -> None:
    splits = "split_parts: {train: [shard_002.tar, 'shard_{000..001}.tar']}\n"
    folder = write_dataset(tmp_path / "it", splits=splits)
    assert texts(sk.open(f"energon:{folder}")) == [*TRAIN, *(f"2-{sample}" for sample in range(SAMPLES))]


def test_shards_and_samples_are_excluded(tmp_path: Path) -> None:
    exclude = "exclude: [shard_001.tar, 'shard_000.tar/0/{1,3}', shard_002.tar/2/0]\n"
    folder = write_dataset(tmp_path / "it", splits=SPLITS.replace("exclude: []\n", exclude))
    ds = sk.open(f"energon:{folder}:train")
    assert texts(ds) == ["0-0", "0-2"]
    assert [ds.locate(row).row for row in (0, 1)] == [0, 2]
    assert ds.key("0/2")["txt"] == "0-2"
    with pytest.raises(KeyError):
        ds.key("0/1")
    assert texts(sk.open(f"energon:{folder}:val")) == ["2-1", "2-2", "2-3"]
    assert sorted(texts(ds.shuffle(seed=1))) == ["0-0", "0-2"]
    ds.save(tmp_path / "pipeline.json")
    assert texts(sk.load_pipeline(tmp_path / "pipeline.json")) == ["0-0", "0-2"]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("energon:{}", InvalidArgument, "names no split, and there is 'train', 'val'"),
        ("energon:{}:", InvalidArgument, "not complete"),
        ("energon:", InvalidArgument, "not complete"),
        ("energon:{}:dev", DataNotFound, "no split 'dev'; there is 'train', 'val'"),
        ("energon:{}:test", DataNotFound, "no shard that is not excluded"),
        ("energon:{}/nowhere:train", DataNotFound, "names no folder"),
        ("energon:{}/..:train", DataNotFound, "no prepared dataset of Energon"),
        ("{}", UnsupportedFormat, r"energon:.*:SPLIT'\); there is 'train', 'val'"),
    ],
)
def test_a_wrong_name_is_an_error_with_the_splits(
    folder: Path, asked: str, error: type[SeekableError], message: str
) -> None:
    with pytest.raises(error, match=message):
        sk.open(asked.format(folder))


REFUSED = UnsupportedFormat
DAMAGE = {
    "another count": (".info.json", '{"shard_counts": {"shard_000.tar": 4, "shard_001.tar": 5}}', IndexStale,
                      r"shard_001\.tar' has 4 samples, and the list of counts in \.nv-meta says 5"),
    "no counts": (".info.json", '{"shard_counts": {}}', UnsupportedFormat, "no shard_counts"),
    "a count that is text": (".info.json", '{"shard_counts": {"a.tar": "4"}}', REFUSED, "no number"),
    "not JSON": (".info.json", "{", UnsupportedFormat, "cannot be parsed"),
    "an array": (".info.json", "[]", UnsupportedFormat, "no mapping"),
    "not YAML": ("split.yaml", "a: [", UnsupportedFormat, "cannot be parsed"),
    "code in YAML": ("split.yaml", "!!python/object/apply:os.system ['false']", UnsupportedFormat, "parsed"),
    "no split_parts": ("split.yaml", "exclude: []", REFUSED, "no split_parts"),
    "a split that is no list": ("split.yaml", "split_parts: {train: 7}", REFUSED, "no list of names: 7"),
    "a shard without a count": ("split.yaml", "split_parts: {train: [x.tar]}", REFUSED, "'x.tar', of which"),
    "an unknown exclusion": ("split.yaml", SPLITS.replace("[]", "[shard_9.tar/1]", 1), REFUSED,
                             "is no shard"),
    "an excluded key that is not there": ("split.yaml", SPLITS.replace("[]", "[shard_000.tar/x]", 1),
                                          KeyNotFound,
                                          r"shard_000\.tar/x is excluded"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_description_is_an_error_that_names_the_file(folder: Path, kind: str) -> None:
    name, content, error, message = DAMAGE[kind]
    (folder / ".nv-meta" / name).write_text(content)
    with pytest.raises(error, match=message):
        sk.open(f"energon:{folder}:train")


@pytest.mark.parametrize("shard", ["../x.tar", "/data/x.tar", "s3://bucket/x.tar"])
def test_a_shard_elsewhere_is_refused(folder: Path, shard: str) -> None:
    (folder / ".nv-meta" / ".info.json").write_text(json.dumps({"shard_counts": {shard: 4}}))
    (folder / ".nv-meta" / "split.yaml").write_text(f"split_parts: {{train: ['{shard}']}}")
    with pytest.raises(UnsupportedFormat, match=rf"names '{shard}', which is not below"):
        sk.open(f"energon:{folder}:train")


def test_a_missing_shard_is_named(folder: Path) -> None:
    (folder / "shard_001.tar").unlink()
    with pytest.raises(DataNotFound, match=r"shard_001\.tar"):
        sk.open(f"energon:{folder}:train")


def test_without_pyyaml_the_error_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energon, "yaml", optional("no_such_package", extra="energon"))
    with pytest.raises(MissingDependency, match=r"seekable\[energon\]"):
        sk.open(f"energon:{folder}:train")


def test_commands_leave_out_the_excluded_samples(tmp_path: Path) -> None:
    exclude = "exclude: [shard_000.tar/0/1]\n"
    folder = write_dataset(tmp_path / "it", splits=SPLITS.replace("exclude: []\n", exclude))
    shown = output("head", "-n", "2", f"energon:{folder}:train").splitlines()
    assert [json.loads(line)["__key__"] for line in shown] == ["0/0", "0/2"]
    assert json.loads(output("get", f"energon:{folder}:train", "-1"))["__key__"] == "1/3"
    assert b"good: 8 records in 2 files" in output("verify", "--deep", f"energon:{folder}:train")
