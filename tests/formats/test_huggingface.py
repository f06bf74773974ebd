"""Folders that Hugging Face datasets wrote, opened as they are."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.hub_folders import data_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def hf() -> Any:
    """Return the package datasets, which takes a second to import."""
    return importlib.import_module("datasets")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    hf().disable_progress_bars()
    yield
    hf().enable_progress_bars()


def labelled(rows: int = 300) -> Any:
    made = hf().Dataset.from_dict(
        {
            "id": list(range(rows)),
            "text": [f"text {row}" for row in range(rows)],
            "tokens": [list(range(row % 5)) for row in range(rows)],
            "label": [row % 3 for row in range(rows)],
        }
    )
    return made.cast_column("label", hf().ClassLabel(names=["a", "b", "c"]))


def saved(made: Any, folder: Path, **options: Any) -> Path:
    made.save_to_disk(folder, **options)
    return folder


def test_a_dataset_that_was_saved(tmp_path: Path) -> None:
    made = labelled()
    ds = sk.open(saved(made, tmp_path / "d", num_shards=12))
    assert list(ds) == list(made)
    assert ds[[250, 3]] == [made[250], made[3]]
    assert ds.locate(299).path == str(tmp_path / "d" / "data-00011-of-00012.arrow")
    assert list(sk.open(str(tmp_path / "d"), columns=["id"])[:3]) == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.parametrize("choice", ["filter", "shuffle", "select"])
def test_rows_that_were_chosen_before_it_was_saved(tmp_path: Path, choice: str) -> None:
    choices: dict[str, Callable[[Any], Any]] = {
        "filter": lambda made: made.filter(lambda record: record["id"] % 2 == 1),
        "shuffle": lambda made: made.shuffle(seed=1),
        "select": lambda made: made.select([5, 3, 200]),
    }
    made = choices[choice](labelled())
    assert list(sk.open(saved(made, tmp_path / "d"))) == list(made)


def test_the_order_is_that_of_the_state(tmp_path: Path) -> None:
    folder = saved(labelled(), tmp_path / "d", num_shards=3)
    state = json.loads((folder / "state.json").read_text())
    state["_data_files"] = state["_data_files"][::-2]
    (folder / "state.json").write_text(json.dumps(state))
    assert [record["id"] for record in sk.open(folder)] == [*range(200, 300), *range(100)]
    assert list(sk.open(folder)) == list(hf().load_from_disk(str(folder)))
    assert verify(folder).problems == ()


def test_values_are_what_is_stored(tmp_path: Path) -> None:
    features = hf().Features(
        {
            "image": hf().Image(decode=False),
            "sound": hf().Audio(decode=False),
            "kind": hf().ClassLabel(names=["x", "y"]),
        }
    )
    record = {
        "image": {"bytes": b"png", "path": "a.png"},
        "sound": {"bytes": b"wav", "path": None},
        "kind": 1,
    }
    table = pa.Table.from_pylist([record] * 3, schema=features.arrow_schema)
    made = hf().Dataset(hf().table.InMemoryTable(table))
    assert made.features == features
    assert list(sk.open(saved(made, tmp_path / "d"))) == [record] * 3


def test_a_dict_of_splits_says_what_to_open(tmp_path: Path) -> None:
    made = hf().DatasetDict({"train": labelled(20), "test": labelled(5)})
    folder = saved(made, tmp_path / "d")
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"splits of a DatasetDict, 'train', 'test'.*as '.*/d/train'"
    ):
        sk.open(folder)
    assert list(sk.open(folder / "test")) == list(made["test"])


@pytest.mark.parametrize("key", ["_indices_data_files", "_indices_files"])
def test_rows_that_are_kept_beside_the_data_are_refused(tmp_path: Path, key: str) -> None:
    folder = saved(labelled(5), tmp_path / "d")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, key: None}))
    assert len(sk.open(folder)) == 5
    (folder / "state.json").write_text(json.dumps({**state, key: [{"filename": "indices.arrow"}]}))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=f"choice of rows beside the data.*{key}.*save it again"
    ):
        sk.open(folder)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (
            "{",
            sk.errors.UnsupportedFormat,
            "state.json', which describes a dataset of Hugging Face, is damaged",
        ),
        ("[]", sk.errors.UnsupportedFormat, "is damaged"),
        ("{}", sk.DataNotFound, "names no data file"),
        ('{"_data_files": []}', sk.DataNotFound, "names no data file"),
        (
            '{"_data_files": [{"filename": "gone.arrow"}]}',
            sk.DataNotFound,
            "names 'gone.arrow', which is not",
        ),
        (
            '{"_data_files": [{"filename": "../a.arrow"}]}',
            sk.DataNotFound,
            "names '../a.arrow', which is not",
        ),
        ('{"_data_files": [{"filename": ["x"]}]}', sk.errors.UnsupportedFormat, "is damaged: Expected `str`"),
        ('{"_data_files": ["x"]}', sk.errors.UnsupportedFormat, "is damaged: Expected `object`"),
        ('{"_data_files": 5}', sk.errors.UnsupportedFormat, "is damaged: Expected `array`"),
    ],
)
def test_a_state_that_is_damaged(tmp_path: Path, state: str, error: type[Exception], message: str) -> None:
    folder = saved(labelled(5), tmp_path / "d")
    (tmp_path / "a.arrow").write_bytes(b"")
    (folder / "state.json").write_text(state)
    with pytest.raises(error, match=message):
        sk.open(folder)


def cached(folder: Path, splits: list[str]) -> Any:
    """Have datasets build some splits into a cache folder, and return them."""
    for split in splits:
        (folder / f"{split}.jsonl").write_text(
            "".join(f'{{"a": {row}, "of": "{split}"}}\n' for row in range(90))
        )
    files = {split: str(folder / f"{split}.jsonl") for split in splits}
    return hf().load_dataset("json", data_files=files, cache_dir=str(folder / "cache"))


def test_a_cache_folder_is_what_was_built_without_what_was_kept_of_it(tmp_path: Path) -> None:
    made = cached(tmp_path, ["train"])["train"]
    made.map(lambda record: {"b": record["a"] + 1})
    made.filter(lambda record: record["a"] > 50)
    (folder,) = {path.parent for path in (tmp_path / "cache").rglob("*.arrow")}
    kept = sorted(folder.glob("cache-*.arrow"))
    assert len(kept) == 2
    assert list(sk.open(folder)) == list(made)
    assert sorted(len(sk.open(path)) for path in kept) == [39, 90]


def test_a_cache_folder_of_several_splits_says_what_to_open(tmp_path: Path) -> None:
    made = cached(tmp_path, ["train", "test"])
    (folder,) = {path.parent for path in (tmp_path / "cache").rglob("*.arrow")}
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"several splits, 'train', 'test'.*/\*-test\*\.arrow'"
    ):
        sk.open(folder)
    assert list(sk.open(str(folder / "*-test*.arrow"))) == list(made["test"])


def test_shards_of_a_split_come_in_their_order() -> None:
    names = ["x-test.arrow", *(f"x-train-{n:05d}-of-00012.arrow" for n in range(12)), "x-train2.arrow"]
    assert data_files("/d", names) == names


def test_descriptions_beside_other_data_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("a.jsonl", "below/state.json"):
        (tmp_path / name).write_text(f'{{"of": "{name}"}}\n')
    for name in ("dataset_infos.json", "below/dataset_info.json"):
        (tmp_path / name).write_text('{"features": {}}')
    assert list(sk.open(tmp_path)) == [{"of": "a.jsonl"}, {"of": "below/state.json"}]
    assert list(sk.open(tmp_path / "below" / "dataset_info.json")) == [{"features": {}}]


def test_a_folder_of_nothing_but_a_description(tmp_path: Path) -> None:
    (tmp_path / "dataset_infos.json").write_text("{}")
    with pytest.raises(sk.DataNotFound, match="has no data file"):
        sk.open(tmp_path)
