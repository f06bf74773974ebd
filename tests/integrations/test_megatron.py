"""Megatron's datasets: recorded items, a builder of lists, caches, and going on at consumed_samples."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xxhash
from tests.integrations.megatron_cases import as_dataset, equal_items, random_case, write_pair

import seekable as sk
from seekable.integrations.megatron import from_cache, gpt_datasets
from seekable.packing.order.megatron_order import blend_weighted, build_indexes

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [[10 * document + token for token in range(n)] for document, n in enumerate((3, 5, 2, 4, 6))]


def digest(datasets: dict[str, sk.Dataset]) -> str:
    text = b"".join(
        name.encode() + values.tobytes()
        for dataset in datasets.values()
        for item in dataset
        for name, values in item.items()
    )
    return xxhash.xxh3_64_hexdigest(text)


# The digests of the items of megatron-core 0.16.1, which are the same.
RECORDED: dict[int, tuple[dict[str, int], str]] = {
    4: ({"train": 108, "valid": 54, "test": 141}, "7db7037d05b7b637"),  # weights
    8: ({"train": 43, "valid": 45, "test": 26}, "e5f5ae53ec90089f"),  # none, a blend for each split
    16: ({"train": 28, "valid": 98, "test": 39}, "7e43dd4fb53c485c"),  # one source, a partial sample
    22: ({"valid": 90, "test": 4}, "90b8055b039d1efe"),  # no extra token
    24: ({"train": 17, "valid": 18, "test": 123}, "d097abea55c8ea99"),  # partial samples in a blend
}


@pytest.mark.parametrize("number", RECORDED)
def test_the_items_are_the_recorded_ones(number: int) -> None:
    case = random_case(number)
    made = gpt_datasets(**case.ours([as_dataset(documents) for documents in case.documents]))
    sizes, expected = RECORDED[number]
    assert {name: len(dataset) for name, dataset in made.items()} == sizes
    assert digest(made) == expected


def test_an_item_is_a_sample_with_labels_masks_and_positions() -> None:
    made = gpt_datasets(as_dataset(DOCUMENTS), split="1,0,0", sequence_length=4, seed=1234)
    assert list(made) == ["train"]
    item = made["train"][1]
    assert item["tokens"].tolist() == [44, 45, 0, 1]
    assert item["labels"].tolist() == [45, 0, 1, 2]
    assert item["loss_mask"].tolist() == [1, 1, 1, 1]
    assert item["position_ids"].tolist() == [0, 1, 2, 3]
    assert [values.dtype for values in item.values()] == [np.int64, np.int64, np.float32, np.int64]


def test_options_mask_and_reset_at_the_end_of_documents() -> None:
    documents = as_dataset([[7, 8, 0, 5, 0, 9, 9]])
    one: dict[str, Any] = {"split": "1,0,0", "sequence_length": 6, "seed": 1, "eod": 0}
    item = gpt_datasets(documents, **one, reset_position_ids=True, eod_mask_loss=True)["train"][0]
    assert item["position_ids"].tolist() == [0, 1, 2, 0, 1, 0]
    assert item["loss_mask"].tolist() == [1, 1, 0, 1, 0, 1]
    # The pad token is masked as a label and becomes 0, unless it is the end of documents too.
    item = gpt_datasets(documents, **one, pad=9)["train"][0]
    assert item["tokens"].tolist() == [7, 8, 0, 5, 0, 0]
    assert item["labels"].tolist() == [8, 0, 5, 0, 0, 0]
    assert item["loss_mask"].tolist() == [1, 1, 1, 1, 0, 0]
    assert gpt_datasets(documents, **one, pad=0)["train"][0]["loss_mask"].tolist() == [1] * 6


def test_without_the_extra_token_the_last_label_is_masked() -> None:
    made = gpt_datasets(
        as_dataset([[7, 8, 5, 6]]), split="1", sequence_length=4, seed=1, add_extra_token=False
    )
    item = made["train"][0]
    assert item["labels"].tolist() == [8, 5, 6, 0]
    assert item["loss_mask"].tolist() == [1, 1, 1, 0]


def test_partial_samples_of_validation_are_kept_and_masked() -> None:
    given: dict[str, Any] = {"split": "1,1,0", "sequence_length": 4, "seed": 3}
    documents = as_dataset([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11, 12]])
    assert [len(made) for made in gpt_datasets(documents, **given).values()] == [1, 1]
    made = gpt_datasets(documents, **given, drop_last_partial_validation=False)
    assert [len(dataset) for dataset in made.values()] == [1, 2]
    masks = sorted(item["loss_mask"].tolist() for item in made["valid"])
    assert masks == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_splits_are_runs_of_documents() -> None:
    documents = as_dataset([[number] * 3 for number in range(10)])
    made = gpt_datasets(documents, split="70,20,10", sequence_length=3, seed=1, add_extra_token=False)
    seen = {name: sorted({int(item["tokens"][0]) for item in dataset}) for name, dataset in made.items()}
    assert seen == {"train": [0, 1, 2, 3, 4, 5, 6], "valid": [7, 8], "test": [9]}


def test_a_blend_draws_as_megatron_blends() -> None:
    sources = [as_dataset([[number] * 5] * 40) for number in (1, 2)]
    given: dict[str, Any] = {"split": "1,0,0", "sequence_length": 4, "seed": 5, "samples": (20, 0, 0)}
    (made,) = gpt_datasets((sources, [0.7, 0.3]), **given).values()
    drawn = [item["tokens"][0] - 1 for item in made]
    assert drawn == blend_weighted([0.7, 0.3], 20)[0].tolist()
    assert drawn == [item["dataset_id"] for item in made]
    flat = gpt_datasets([70, sources[0], 30, sources[1]], **given)["train"]
    assert flat.fingerprint == made.fingerprint
    # Without weights and sizes each sample of each source comes once.
    (made,) = gpt_datasets(sources, split="1,0,0", sequence_length=4, seed=5).values()
    assert sorted(int(item["dataset_id"]) for item in made) == [0] * 49 + [1] * 49


def test_a_split_without_samples_is_left_out() -> None:
    documents = as_dataset(DOCUMENTS)
    given: dict[str, Any] = {"sequence_length": 4, "seed": 1}
    assert list(gpt_datasets(documents, split="969,30,1", **given)) == ["train"]
    assert list(gpt_datasets(documents, split="1,1,1", samples=(0, 3, 0), **given)) == ["valid"]
    parts = [documents, None, documents]
    assert list(gpt_datasets(parts, split=None, **given)) == ["train", "test"]
    assert gpt_datasets(as_dataset([[1]]), split="1", **given) == {}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"samples": (9, 9, 9), "split": "969,30,1"}, sk.errors.InvalidArgument, "none of its 5 documents"),
        ({"samples": (9, 9)}, sk.errors.InvalidArgument, "three numbers"),
        ({"samples": 9}, sk.errors.WrongType, "samples"),
        ({"surplus": "x"}, sk.errors.WrongType, "surplus must be a number"),
        ({"surplus": float("nan")}, sk.errors.InvalidArgument, "surplus must be at least 0, and finite"),
        ({"surplus": -0.5}, sk.errors.InvalidArgument, "surplus must be at least 0, and finite"),
        ({"blend": 5, "split": None}, sk.errors.WrongType, "a list of three blends"),
        ({"samples": (9, -1, 0)}, sk.errors.InvalidArgument, "samples"),
        ({"split": ""}, sk.errors.InvalidArgument, "split"),
        ({"split": "1,1,1,1"}, sk.errors.InvalidArgument, "split"),
        ({"split": "0,0"}, sk.errors.InvalidArgument, "split"),
        ({"split": 1}, sk.errors.WrongType, "split"),
        ({"seed": 2**32}, sk.errors.InvalidArgument, "seed"),
        ({"seed": -1}, sk.errors.InvalidArgument, "seed"),
        ({"seed": 1.5}, sk.errors.WrongType, "seed"),
        ({"sequence_length": 0}, sk.errors.InvalidArgument, "sequence_length"),
        ({"reset_position_ids": True}, sk.errors.InvalidArgument, "eod"),
        ({"eod_mask_loss": True}, sk.errors.InvalidArgument, "eod"),
        (
            {"blend_per_split": ["a", None, None]},
            sk.errors.InvalidArgument,
            "write the three blends as blend",
        ),
        ({"blend": None}, sk.errors.WrongType, "a blend is a prefix"),
        ({"blend": ["a"], "split": None}, sk.errors.InvalidArgument, "three blends"),
        ({"blend": []}, sk.errors.InvalidArgument, "at least one"),
        ({"blend": 7}, sk.errors.WrongType, "blend"),
        ({"blend": [7]}, sk.errors.WrongType, "prefixes"),
        ({"blend": ["1", "a", "b", "c"]}, sk.errors.InvalidArgument, "weight before it"),
        ({"blend": (["a", "b"], [1.0])}, sk.errors.InvalidArgument, "one weight for each"),
        ({"blend": {"a": 0}}, sk.errors.InvalidArgument, "above 0"),
        ({"blend": {"a": "much"}}, sk.errors.WrongType, "weights"),
        ({"blend": "no/such/prefix"}, sk.DataNotFound, "no/such/prefix"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments = {"blend": as_dataset(DOCUMENTS), "sequence_length": 4, "seed": 1, **given}
    with pytest.raises(error, match=message):
        gpt_datasets(**arguments)


def test_a_blend_with_weights_needs_a_size() -> None:
    documents = as_dataset(DOCUMENTS)
    with pytest.raises(sk.errors.InvalidArgument, match="number of its samples"):
        gpt_datasets({documents: 1.0}, sequence_length=4, seed=1)


def test_a_run_goes_on_at_consumed_samples(tmp_path: Path) -> None:
    prefix = write_pair(tmp_path / "corpus_text_document", [[n] * (n % 7 + 1) for n in range(60)])
    (train,) = gpt_datasets(prefix, split="1", sequence_length=8, seed=9, samples=(60, 0, 0)).values()
    expected = [train[row]["tokens"].tolist() for row in range(24, 60)]
    for ranks in (1, 2, 3):
        found: dict[int, list[list[int]]] = {}
        for rank in range(ranks):
            loader = sk.Loader(train, global_batch_size=6, rank=rank, world_size=ranks)
            loader.load_state_dict(sk.state_from_sample_index(24, loader))
            for step, batch in zip(range(6), loader, strict=False):
                found.setdefault(step, []).extend(batch["tokens"].tolist())
        for step in range(6):
            assert sorted(found[step]) == sorted(expected[6 * step : 6 * step + 6])


# --- caches


def cache_of(
    folder: Path, prefix: str, documents: list[list[int]], *, samples: int | None, seed: int = 5
) -> dict[str, Any]:
    """Write the files that Megatron leaves of one source, and return its description."""
    described = {
        "class": "GPTDataset",
        "dataset_path": prefix,
        "num_samples": samples,
        "index_split": "train",
        "random_seed": seed,
        "sequence_length": 4,
    }
    offsets = np.cumsum([0, *map(len, documents)])
    made = build_indexes(offsets, length=4, extra=1, seed=seed, samples=samples)
    base = f"{hash_of(described)}-GPTDataset-train"
    folder.mkdir(exist_ok=True)
    (folder / f"{base}-description.txt").write_text(json.dumps(described, indent=4))
    np.save(folder / f"{base}-document_index.npy", made.documents)
    np.save(folder / f"{base}-sample_index.npy", made.samples)
    np.save(folder / f"{base}-shuffle_index.npy", made.shuffle)
    return described


def hash_of(described: dict[str, Any]) -> str:
    return hashlib.md5(json.dumps(described, indent=4).encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def cached(tmp_path: Path) -> tuple[Path, str]:
    prefix = write_pair(tmp_path / "corpus", DOCUMENTS)
    cache_of(tmp_path / "cache", prefix, DOCUMENTS, samples=7)
    return tmp_path / "cache", prefix


def file_of(folder: Path, which: str) -> Path:
    (path,) = folder.glob(f"*-{which}*")
    return path


def test_the_order_of_a_cache_is_the_order_of_the_run(cached: tuple[Path, str]) -> None:
    folder, prefix = cached
    (expected,) = gpt_datasets(prefix, split="1", sequence_length=4, seed=5, samples=(7, 0, 0)).values()
    for found in (from_cache(folder), from_cache(str(folder), prefix)):
        assert len(found) == len(expected)
        assert all(equal_items(found[row], expected[row]) for row in range(len(expected)))


def test_data_that_moved_are_named(cached: tuple[Path, str], tmp_path: Path) -> None:
    folder, prefix = cached
    expected = [item["tokens"].tolist() for item in from_cache(folder)]
    for path in tmp_path.glob("corpus.*"):
        path.rename(path.with_stem("moved"))
    with pytest.raises(sk.DataNotFound):
        from_cache(folder)
    for place in (str(tmp_path / "moved"), as_dataset(DOCUMENTS)):
        found = from_cache(folder, moved={prefix: place})
        assert [item["tokens"].tolist() for item in found] == expected
    with pytest.raises(sk.errors.WrongType, match="moved"):
        from_cache(folder, moved={prefix: 7})  # type: ignore[dict-item]  # that is the test


def test_a_blend_of_a_cache_is_found_with_its_parts(tmp_path: Path) -> None:
    sources = [[[number] * 5] * 20 for number in (1, 2)]
    folder = tmp_path / "cache"
    parts = [
        cache_of(folder, write_pair(tmp_path / f"part{number}", documents), documents, samples=20)
        for number, documents in enumerate(sources)
    ]
    described = {"class": "BlendedDataset", "datasets": parts, "split": "train", "weights": [1], "size": 20}
    base = f"{hash_of(described)}-BlendedDataset-train"
    (folder / f"{base}-description.txt").write_text(json.dumps(described, indent=4))
    which, rows = blend_weighted([0.5, 0.5], 20)
    np.save(folder / f"{base}-dataset_index.npy", which)
    np.save(folder / f"{base}-dataset_sample_index.npy", rows)
    found = from_cache(folder)
    assert [int(item["dataset_id"]) for item in found] == which.tolist()
    assert [int(item["tokens"][0]) - 1 for item in found] == which.tolist()
    assert "dataset_id" not in from_cache(folder, parts[0]["dataset_path"])[0]
    np.save(folder / f"{base}-dataset_sample_index.npy", rows + 99)
    with pytest.raises(sk.IndexStale, match="beyond the last of a source"):
        from_cache(folder)
    (folder / f"{hash_of(parts[1])}-GPTDataset-train-description.txt").unlink()
    with pytest.raises(sk.DataNotFound, match="part 1 of the blend"):
        from_cache(folder)


def test_which_order_is_meant_must_be_said(cached: tuple[Path, str], tmp_path: Path) -> None:
    folder, prefix = cached
    other = cache_of(folder, prefix, DOCUMENTS, samples=3)
    for asked in (None, prefix):
        with pytest.raises(sk.errors.InvalidArgument, match=f"2 orders.*{hash_of(other)}"):
            from_cache(folder, asked)
    assert len(from_cache(folder, hash_of(other))) == 4
    with pytest.raises(sk.DataNotFound, match=r"no order of the split 'train' for 'else'.*samples 7"):
        from_cache(folder, "else")
    with pytest.raises(sk.DataNotFound, match="no order of the split 'valid'"):
        from_cache(folder, split="valid")
    with pytest.raises(sk.errors.InvalidArgument, match="split"):
        from_cache(folder, split="dev")
    with pytest.raises(sk.DataNotFound, match="no folder"):
        from_cache(tmp_path / "nothing")


def test_rewritten_data_are_refused(cached: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = cached
    changes = {
        "begins at token": [*DOCUMENTS[:2], [1] * 3, *DOCUMENTS[3:]],
        "documents beyond the last": DOCUMENTS[:4],
        "begins": [[1], *DOCUMENTS[1:]],
    }
    for message, documents in changes.items():
        write_pair(tmp_path / "corpus", documents)
        with pytest.raises(sk.IndexStale, match=message):
            from_cache(folder)


def test_another_extra_token_is_refused(tmp_path: Path) -> None:
    documents = [[1, 2, 3, 4]] * 3
    prefix = write_pair(tmp_path / "corpus", documents)
    cache_of(tmp_path / "cache", prefix, documents, samples=None)
    with pytest.raises(sk.errors.InvalidArgument, match="add_extra_token="):
        from_cache(tmp_path / "cache", add_extra_token=False)


@pytest.mark.parametrize("which", ["document_index", "sample_index", "shuffle_index"])
def test_damaged_files_are_refused(cached: tuple[Path, str], which: str) -> None:
    folder, _ = cached
    path = file_of(folder, which)
    whole = path.read_bytes()
    for torn in (b"", whole[:20], whole[:-1], b"\x80\x04]\x94."):
        path.write_bytes(torn)
        with pytest.raises(sk.errors.CorruptTokens, match=which):
            from_cache(folder)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(sk.errors.CorruptTokens, match=which):
        from_cache(folder)
    np.save(path, np.zeros(3))
    with pytest.raises(sk.errors.CorruptTokens, match="float64"):
        from_cache(folder)
    path.unlink()
    with pytest.raises(sk.DataNotFound, match="killed"):
        from_cache(folder)


def test_a_shuffle_that_repeats_is_refused(cached: tuple[Path, str]) -> None:
    folder, _ = cached
    path = file_of(folder, "shuffle_index")
    shuffle = np.load(path)
    shuffle[0] = shuffle[1]
    np.save(path, shuffle)
    with pytest.raises(sk.IndexStale, match="twice"):
        from_cache(folder)
    file_of(folder, "description").write_text("{")
    with pytest.raises(sk.errors.CorruptTokens, match="description"):
        from_cache(folder)
