"""What specs say, which files of a repository make a split, and ``txt:PATH:COLUMN``."""

from __future__ import annotations

import contextlib
import pickle
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.thrift import ALL

import seekable as sk
from seekable.errors import AccessDenied, DataNotFound, UnsupportedFormat
from seekable.remote.hub_listing import hub_spec
from seekable.remote.splits import shards_of
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from pathlib import Path


def parts(text: str) -> tuple[object, ...]:
    spec = hub_spec(text)
    return spec.repo, spec.revision, spec.config, spec.split, spec.column


def test_the_specs_of_the_hub() -> None:
    assert parts("hf:me/web:train:text") == ("me/web", None, None, "train", "text")
    assert parts("hf:squad:train") == ("squad", None, None, "train", None)
    assert parts("hf:me/web@v1:train:a:b") == ("me/web", "v1", None, "train", "a:b")
    assert parts("hf:me/web@refs/pr/3:de/test:text") == ("me/web", "refs/pr/3", "de", "test", "text")


@pytest.mark.parametrize(
    "text",
    [
        "hf:",
        "hf:me/web",
        "hf:me/web:",
        "hf:me/web:train:",
        "hf:me/web::text",
        "hf:me/web@:train",
        "hf:a/b/c:train",
        "hf:..:train",
        "hf:me/../web:train",
        "hf:me--web:train",
        "hf:/no such folder:train",
        "txt:",
        "txt:a.txt",
        "txt::text",
        "txt:a.txt:",
        "txt:a:b/c.txt",
    ],
)
def test_an_incomplete_spec_is_told(text: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"form is hf:REPO:SPLIT|not complete"):
        sk.open(text)


def test_a_file_of_that_name_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hf:a:train.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "txt:a:b.jsonl").write_text("1\n2\n", encoding="utf-8")
    assert sk.open("hf:a:train.txt")[0] == "one"
    assert len(sk.open("txt:a:b.jsonl")) == 2


def test_specs_go_together_by_other_means(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"'txt:a:text' is opened alone; .* sk.concat"):
        sk.open([str(tmp_path), "txt:a:text"])
    with pytest.raises(sk.errors.InvalidArgument, match="leave format='jsonl' out"):
        sk.open("txt:a.txt:text", format="jsonl")
    with pytest.raises(sk.errors.InvalidArgument, match="format must be one of"):
        sk.open("hf:me/web:train", format="json")
    with pytest.raises(sk.errors.InvalidArgument, match="both choose the columns to read"):
        sk.open("hf:me/web:train:text", columns=["id"])


NAMES = ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test-00000.parquet"]


@pytest.mark.parametrize(
    ("names", "split", "config", "found"),
    [
        (NAMES, "train", None, NAMES[:2]),
        (NAMES, "train", "default", NAMES[:2]),
        (["train.parquet", "test.parquet"], "test", None, ["test.parquet"]),
        (["train/10.parquet", "train/9.parquet"], "train", None, ["train/9.parquet", "train/10.parquet"]),
        (["train/deep/a.parquet", "test/a.parquet"], "train", None, ["train/deep/a.parquet"]),
        (["de/train-0.parquet", "en/train-0.parquet"], "train", "en", ["en/train-0.parquet"]),
        (["data/de/train-0.parquet", "data/en/train-0.parquet"], "train", "de", ["data/de/train-0.parquet"]),
        (["x/a.parquet", "y/b.parquet", "notes.csv"], "train", None, ["x/a.parquet", "y/b.parquet"]),
        (["constraint-0.parquet", "train-0.parquet"], "train", None, ["train-0.parquet"]),
        (
            [".cache/train-0.parquet", "_old/train-0.parquet", "train-0.parquet"],
            "train",
            None,
            ["train-0.parquet"],
        ),
        (["train.csv"], "train", None, []),
        (["dump_2024/a.parquet", "dump_2025/a.parquet"], "dump_2025", None, ["dump_2025/a.parquet"]),
    ],
)
def test_a_split_is_found_by_the_names_of_its_files(
    names: list[str], split: str, config: str | None, found: list[str]
) -> None:
    assert shards_of(reversed(names), None, split=split, config=config, where="it") == found


@pytest.mark.parametrize(
    ("names", "files", "missing"),
    [
        (["train-0-of-3.parquet", "train-2-of-3.parquet"], None, "train-1-of-3.parquet"),
        (["a.parquet"], ["a.parquet", "data/b.parquet"], "data/b.parquet"),
        (["a.parquet", "c.parquet"], ["*.parquet", "./b.parquet"], "b.parquet"),
        (["data/x-1-of-2.parquet"], "data/*", "data/x-0-of-2.parquet"),
    ],
)
def test_a_file_that_is_promised_and_missing_is_named(names: list[str], files: object, missing: str) -> None:
    configs = None if files is None else [{"config_name": "default", "data_files": files}]
    with pytest.raises(DataNotFound, match=re.escape(repr(missing))):
        shards_of(names, configs, split="train", config=None, where="it")


FORMATS = {
    "jsonl": (".jsonl", ".json", ".jsonl.gz", ".json.gz"),
    "csv": (".csv", ".csv.zst"),
    "text": (".txt",),
    "parquet": (".parquet",),
}


@pytest.mark.parametrize(
    ("names", "split", "found"),
    [
        (["en/c4-train.00000-of-00001.json.gz", "en/c4-validation.1.json.gz"], "train", [0]),
        (["train/chunk1/a.JSONL", "test/a.jsonl"], "train", [0]),
        (["corpus_train.csv.zst", "corpus_dev.csv.zst"], "validation", [1]),
        (["dev.jsonl", "val.jsonl"], "validation", [0, 1]),
        (["dev.jsonl", "val.jsonl"], "dev", [0]),
        (["eval/a.csv"], "test", [0]),
        (["a.jsonl", "b.json", "LICENSE.txt", "dataset_infos.json"], "train", [0, 1]),
        (["notice-board.jsonl", "readme-2.txt", "config.json"], "train", [0]),
        (["a.txt", "license.txt", "requirements.txt"], "train", [0]),
        (["train.csv", "train_notes.txt", "train_stats.json"], "train", [0]),
        (["train.json"], "train", [0]),
        (["a.parquet", "b.csv"], "train", [0]),
        (["train-0.parquet", "test.csv"], "test", [1]),
        (["pretrained.jsonl", "latest.jsonl"], "train", [1, 0]),
    ],
)
def test_a_split_of_any_format_is_found_by_the_names_of_its_files(
    names: list[str], split: str, found: list[int]
) -> None:
    shards = shards_of(names, None, split=split, config=None, where="it", suffixes=FORMATS)
    assert shards == [names[number] for number in found]


@pytest.mark.parametrize(
    "names",
    [
        ["train-0.parquet", "train-1.jsonl"],
        ["a.csv", "b.jsonl"],
        ["train/a.csv", "train/b.json.gz", "train/c.txt"],
    ],
)
def test_files_of_several_formats_are_told(names: list[str]) -> None:
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"several formats for the split 'train': .* with format="
    ):
        shards_of(names, None, split="train", config=None, where="it", suffixes=FORMATS)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"data_files": "a/*"}, ["a/1.parquet"]),
        ({"data_files": ["a/1.parquet", "./a/b/*.parquet"]}, ["a/1.parquet", "a/b/2.parquet"]),
        ({"data_files": {"train": "a/**"}}, ["a/1.parquet", "a/b/2.parquet"]),
        ({"data_files": [{"split": "train", "path": ["**/2.parquet"]}]}, ["a/b/2.parquet"]),
        ({"data_dir": "a", "data_files": [{"split": "train", "path": "[0-9].parquet"}]}, ["a/1.parquet"]),
        ({"data_files": [{"path": "a/?.parquet"}]}, ["a/1.parquet"]),
    ],
)
def test_the_readme_says_which_files(config: dict[str, Any], found: list[str]) -> None:
    names = ["a/1.parquet", "a/b/2.parquet", "c/3.parquet", "a/notes.csv"]
    assert shards_of(names, [config], split="train", config=None, where="it") == found


def test_several_datasets_are_told_of() -> None:
    def configs(*names: str, **more: object) -> list[dict[str, object]]:
        return [{"config_name": name, "data_files": f"{name}/*", **more} for name in names]

    names = ["de/1.parquet", "en/2.parquet"]
    with pytest.raises(
        sk.errors.InvalidArgument,
        match=r"write which in front of it, such as de/train. It has de/train, en/train",
    ):
        shards_of(names, configs("de", "en"), split="train", config=None, where="it")
    both = [*configs("de"), *configs("en", default=True)]
    assert shards_of(names, both, split="train", config=None, where="it") == ["en/2.parquet"]
    assert shards_of(names, both, split="train", config="de", where="it") == ["de/1.parquet"]
    with pytest.raises(sk.DataNotFound, match="it has no fr/train; it has de/train"):
        shards_of(names, configs("de"), split="train", config="fr", where="it")
    with pytest.raises(sk.DataNotFound, match=r"says that fr/train is in fr/\*, and has no such file"):
        shards_of(names, configs("fr"), split="train", config=None, where="it")
    with pytest.raises(sk.errors.InvalidArgument, match="several datasets"):
        shards_of(["de/train-0.parquet", "en/train-0.parquet"], None, split="train", config=None, where="it")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["config_name", "data_files", "split", "path", "data_dir", "default", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(junk)
def test_a_readme_that_nobody_understands_is_no_crash(configs: object) -> None:
    with contextlib.suppress(sk.DataNotFound, sk.errors.InvalidArgument, UnsupportedFormat):
        shards_of(["train.parquet"], configs, split="train", config=None, where="it")


@pytest.mark.parametrize(
    "configs", ["train", {"data_files": "*"}, ["en"], [{"data_files": {"train": 4}}], [{"data_files": [1]}]]
)
def test_a_readme_that_says_in_another_form_which_files_are_data_is_not_passed_over(configs: object) -> None:
    with pytest.raises(UnsupportedFormat, match=r"it: the configs in the metadata of its README\.md"):
        shards_of(["train.parquet"], configs, split="train", config=None, where="it")


def test_a_readme_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\n")
    (tmp_path / "README.md").symlink_to("README.md")
    with pytest.raises(AccessDenied, match=r"README\.md' may say which files are data, and cannot be read"):
        sk.open(f"hf:{tmp_path}:train")
    with pytest.raises(sk.errors.InvalidArgument, match=r"is not complete: name the split.*:train'"):
        sk.open(f"hf:{tmp_path}")


LINES = ["one", "", "dré ei", "{} [", "five"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "12:30"
    folder.mkdir()
    (folder / "b2.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (folder / "b10.txt").write_text("six\r\nseven", encoding="utf-8")
    (folder / "c.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    return folder


def test_lines_are_records_of_one_column(folder: Path) -> None:
    ds = sk.open(f"txt:{folder}/*.txt:text")
    assert list(ds) == [{"text": line} for line in [*LINES, "six", "seven"]]
    assert list(sk.open(f"txt:{folder}:text")) == list(ds)
    assert ds[6] == {"text": "seven"}
    assert ds.locate(5).path == str(folder / "b10.txt")
    assert list(sk.open(f"txt:{folder / 'b10.txt'}:line", decode="bytes")) == [
        {"line": b"six"},
        {"line": b"seven"},
    ]
    assert list(sk.open(f"txt:{folder / 'c.jsonl'}:row", decode="json")) == [{"row": {"id": 1}}]
    assert list(pickle.loads(pickle.dumps(ds))) == list(ds)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"decode must be one of 'text', 'bytes', 'json' for txt"
    ):
        sk.open(f"txt:{folder}:text", decode=str)


def test_the_column_is_part_of_what_the_data_is(folder: Path) -> None:
    plain = sk.open(f"{folder}/*.txt")
    found = {sk.open(f"txt:{folder}/*.txt:{column}").fingerprint for column in ("text", "line")}
    assert len({plain.fingerprint, *found}) == 3
    # Only the column, and not how the files were named, enters.
    assert sk.open(f"txt:{folder}:text").fingerprint in found


def test_column_tools_and_keys_take_such_records(folder: Path) -> None:
    ds = sk.open(f"txt:{folder}:text", key="text")
    assert ds.key("seven") == {"text": "seven"}
    assert list(ds.rename({"text": "line"}).take(1)) == [{"line": "one"}]


def test_a_line_that_cannot_be_decoded_is_told_or_replaced(folder: Path) -> None:
    (folder / "b2.txt").write_bytes(b"good\n\xff\n")
    with pytest.raises(sk.CorruptRecord, match="record 1 at byte 5"):
        sk.open(f"txt:{folder}/b2.txt:text")[1]
    replaced = sk.open(f"txt:{folder}/b2.txt:text", errors=lambda error: {"text": str(error.row)})
    assert list(replaced) == [{"text": "good"}, {"text": "1"}]


def test_lines_of_a_column_resume(folder: Path) -> None:
    assert_resumes_exactly(
        lambda: sk.Loader(sk.open(f"txt:{folder}:text").shuffle(seed=1), batch_size=3), new_process=ALL
    )
