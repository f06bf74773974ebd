"""Samples of a fixed number of tokens, byte for byte as data-forager writes them for the same texts."""

from __future__ import annotations

import contextlib
import io
import json
import random
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.dataset.test_write_tokens import characters
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import wider

import seekable as sk
from seekable.formats.tokens.token_store_arguments import tokenizing, tokens_of, with_samples
from seekable.formats.tokens.token_store_format import AskedTypes
from seekable.writing.write import WritePolicy, write
from seekable.writing.write_dataset import dataset_source

with warnings.catch_warnings(action="ignore"):  # The logging of data-forager warns when it is imported.
    from data_forager.datasets.tokens import TokensDataset
    from data_forager.datasets.tokens_with_aux import TokensWithAuxDataset
    from data_forager.indexers.tokenization_indexer import (
        create_tokenize_and_index_jsonl_text_func,
        create_tokenize_and_index_with_aux_func,
    )
    from data_forager.sample_generators.aux import LossMaskGenerator, Part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.writing.manifest import Written

AUX = {"loss_mask": LossMaskGenerator(), "kind": LossMaskGenerator({"response"}, mask_eos=True)}


def samples(  # noqa: PLR0913 - the options of a case
    ds: sk.Dataset,
    folder: Path,
    size: int,
    *,
    dtype: str = "uint16",
    aux: Any = None,
    rows: int = 3,
    jobs: int = 1,
    overwrite: bool = False,
) -> Written:
    store = sk.formats.TokenStore(dtype=dtype, align=aux or (), sample_size=size)
    made = tokenizing(characters, store, column="text", eos=0, given=None)
    asked = AskedTypes(made.dtype, tuple((array.name, array.dtype) for array in made.aligned))
    form = tokens_of(made, asked, idx=False, given={"sample_size": size})
    return write(
        dataset_source(ds._node, "samples()"),
        folder,
        with_samples(form, ds._node, size),
        rows_per_file=rows,
        policy=WritePolicy(resume=True, overwrite=overwrite, check_code=True),
        jobs=jobs,
        executor=None,
        progress=None,
    )


def corpus(folder: Path, counts: dict[str, int], *, parts: bool = False) -> list[str]:
    """Write files of texts of zero to 12 letters, or of typed parts; return their paths."""
    folder.mkdir(parents=True)
    draw = random.Random(5)
    paths = []
    for name, count in counts.items():
        lines = []
        for _ in range(count):
            texts = ["".join(draw.choices("abcdef", k=draw.randrange(13))) for _ in range(3)]
            kinds = draw.choices(["system", "prompt", "response"], k=3)
            typed = [{"type": kind, "text": text} for kind, text in zip(kinds, texts, strict=True)]
            lines.append(json.dumps({"parts": typed} if parts else {"text": texts[0]}))
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        paths.append(str(folder / f"{name}.jsonl"))
    return paths


def by_forager(paths: list[str], folder: Path, size: int, dtype: str, *, parts: bool = False) -> None:
    def typed(line: bytes) -> list[Part]:
        return [Part(type=part["type"], text=part["text"]) for part in json.loads(line)["parts"]]

    options: dict[str, Any] = {
        "tokenizer_func": characters,
        "eos_idx": 0,
        "input_file_paths": paths,
        "output_base_path": str(folder),
        "sample_size": size,
        "token_dtype": np.dtype(dtype),
    }
    with contextlib.redirect_stdout(io.StringIO()):
        if parts:
            create_tokenize_and_index_with_aux_func(typed, aux_generators=AUX, **options)()
        else:
            create_tokenize_and_index_jsonl_text_func(**options)()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


COUNTS = {"a": 7, "b": 0, "c": 1, "d.e": 9}


@pytest.mark.parametrize("size", [1, 4, 64, 1000])
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_the_files_are_those_of_forager(size: int, dtype: str, tmp_path: Path) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS)
    by_forager(paths, tmp_path / "theirs", size, dtype)
    written = samples(sk.open(paths), tmp_path / "ours", size, dtype=dtype)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")
    assert (written.rows, len(written.paths)) == (17, 4)
    again = samples(sk.open(paths), tmp_path / "ours", size, dtype=dtype)
    assert (again.kept, again.bytes, again.rows) == (4, written.bytes, 17)
    read = TokensDataset.create_from_index_on_filesystem(str(tmp_path / "ours"), token_dtype=np.dtype(dtype))
    texts = [record["text"] for record in sk.open(paths)]
    ids = [number for text in texts for number in (*characters(text), 0)]
    assert [read[place].tolist() for place in range(len(read))] == [
        ids[start : start + size] for start in range(0, len(ids) // size * size, size)
    ]


@pytest.mark.parametrize("size", [1, 5, 64])
def test_the_files_with_arrays_are_those_of_forager(size: int, tmp_path: Path) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS, parts=True)
    by_forager(paths, tmp_path / "theirs", size, "uint32", parts=True)
    samples(sk.open(paths), tmp_path / "ours", size, dtype="uint32", aux=AUX)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")
    read = TokensWithAuxDataset.create_from_index_on_filesystem(str(tmp_path / "ours"))
    assert list(read[0]) == ["tokens", "kind", "loss_mask"]


@pytest.mark.parametrize("aux", [None, AUX], ids=["tokens", "arrays"])
def test_samples_are_opened_without_a_word_of_their_type(aux: Any, tmp_path: Path) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS, parts=aux is not None)
    samples(sk.open(paths), tmp_path / "ours", 4, dtype="uint32", aux=aux)
    tk = sk.open(tmp_path / "ours")
    kind = TokensDataset if aux is None else TokensWithAuxDataset
    options = {"token_dtype": np.uint32} if aux is None else {}
    read = kind.create_from_index_on_filesystem(str(tmp_path / "ours"), **options)
    theirs = [read[place] for place in range(len(read))]
    wanted = [{"tokens": each} if aux is None else each for each in theirs]
    assert len(tk) == len(read)
    for found, record in zip(tk, wanted, strict=True):
        assert {name: values.tolist() for name, values in found.items()} == {
            name: values.tolist() for name, values in record.items()
        }


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_parts_of_any_size_make_the_same_samples(rows: int, tmp_path: Path) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS)
    samples(sk.open(paths), tmp_path / "three", 4)
    samples(sk.open(paths), tmp_path / "other", 4, rows=rows)
    assert contents(tmp_path / "other") == contents(tmp_path / "three")


def test_texts_of_no_files_and_of_shuffled_ones(tmp_path: Path) -> None:
    ds = sk.from_sequence([{"text": "abcd"}] * 3)
    written = samples(ds, tmp_path / "memory", 5)
    assert [path.rpartition("/")[2] for path in written.paths] == ["tokenized-samples-tokenized-samples.bin"]
    paths = corpus(tmp_path / "corpus", COUNTS)
    shuffled = sk.open(paths).shuffle(seed=1)
    samples(shuffled, tmp_path / "shuffled", 4)
    read = TokensDataset.create_from_index_on_filesystem(str(tmp_path / "shuffled"), token_dtype=np.uint16)
    ids = [number for record in shuffled for number in (*characters(record["text"]), 0)]
    assert [token for place in range(len(read)) for token in read[place]] == ids[: len(read) * 4]


def test_what_cannot_be_samples_is_refused(tmp_path: Path) -> None:
    paths = corpus(tmp_path / "one", {"a": 2}) + corpus(tmp_path / "two", {"a": 2})
    with pytest.raises(sk.errors.InvalidArgument, match="would both become the samples of 'a'"):
        samples(sk.open(paths), tmp_path / "out", 4)
    samples(sk.open(paths[0]), tmp_path / "out", 4)
    with pytest.raises(sk.StateMismatch, match="sample_size was 4, is 5"):
        samples(sk.open(paths[0]), tmp_path / "out", 5)
    samples(sk.open(paths[1]), tmp_path / "out", 5, overwrite=True)
    assert sorted(contents(tmp_path / "out")) == [
        "index/file_location.txt",
        "index/sample_locations.bin",
        "tokenized-samples/a-tokenized-samples.bin",
    ]


def of_ones(record: dict[str, Any]) -> dict[str, list[int]]:
    return {"tokens": [1] * len(record["text"])}


def test_tokenize_writes_samples(tmp_path: Path) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS)
    tk = sk.tokenize(
        paths,
        to=tmp_path / "ones",
        tokenizer=characters,
        eos=0,
        store=sk.formats.TokenStore(parts=of_ones, sample_size=5),
    )
    ids = [number for record in sk.open(paths) for number in (*of_ones(record)["tokens"], 0)]
    assert [record["tokens"].tolist() for record in tk] == [
        ids[start : start + 5] for start in range(0, len(ids) // 5 * 5, 5)
    ]
    with pytest.raises(sk.errors.InvalidArgument, match="fewer tokens than one sample of 1,000"):
        sk.tokenize(
            paths,
            to=tmp_path / "few",
            tokenizer=characters,
            eos=0,
            store=sk.formats.TokenStore(sample_size=1000),
        )


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def write_over(folder: Path, paths: list[str], jobs: int = 1) -> Written:
    return samples(sk.open(paths), folder, 5, aux=AUX, jobs=jobs, overwrite=True)


def write_before(folder: Path, paths: list[str]) -> Written:
    return samples(sk.open(paths[2:]), folder, 7, aux=AUX)


def check_after_a_kill(folder: Path, paths: list[str]) -> None:
    write_over(folder, paths)
    assert contents(folder) == contents(folder.parent / "wanted")


def test_killed_at_a_rename_or_a_removal_the_next_call_has_the_bytes(tmp_path: Path, killer: Killer) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS, parts=True)
    write_over(tmp_path / "wanted", paths)
    write_before(tmp_path / "all", paths)
    kinds = killer.operations(tmp_path / "all", write_over, tmp_path / "all", paths)
    for kind, number in one_of_each_kind([kind for kind in kinds if kind in ("os.rename", "os.remove")]):
        folder = tmp_path / kind
        write_before(folder, paths)
        assert killer.kill_at(number, folder, write_over, folder, paths, kind=kind) == KILLED
        check_after_a_kill(folder, paths)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("jobs", "step"), [(1, 1), (2, 5), (5, 7)])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    jobs: int, step: int, tmp_path: Path, killer: Killer
) -> None:
    paths = corpus(tmp_path / "corpus", COUNTS, parts=True)
    write_over(tmp_path / "wanted", paths)
    step, codes = wider(step), list[int]()
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if len(codes) % 2:
            write_before(folder, paths)
        codes.append(killer.kill_at(1 + step * len(codes), folder, write_over, folder, paths, jobs))
        check_after_a_kill(folder, paths)
    assert codes.count(KILLED) * wider(1) >= 10
