"""Folders of tokens as their own tools write them, compared with what these tools read."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray


def documents(random: Random, dtype: str, *, least: int = 0) -> list[NDArray[Any]]:
    sizes = [random.randint(least, 40) for _ in range(random.randint(1, 60))]
    return [np.array([random.randrange(100) for _ in range(size)], dtype) for size in sizes]


@pytest.mark.frameworks(name="torch")
@pytest.mark.filterwarnings("ignore")
def test_chunks_that_litdata_writes(tmp_path: Path) -> None:
    from tests.tokens_apart import add_to_path

    add_to_path()
    writer = importlib.import_module("litdata.streaming.writer")
    litdata = importlib.import_module("litdata")
    torch = importlib.import_module("torch")
    random = Random(1)
    for number in range(20):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        dtype = random.choice(["uint16", "int32", "int64", "uint8"])
        of_torch = number % 2 == 0
        written = documents(random, dtype, least=number % 3 % 2)
        binary = writer.BinaryWriter(
            str(folder), chunk_bytes=random.choice([100, 400, 1 << 20]), item_loader=litdata.TokensLoader()
        )
        for at, document in enumerate(written):
            binary[at] = torch.from_numpy(document) if of_torch else document
        binary.done()
        binary.merge()
        ds = sk.open(folder)
        assert [record["tokens"].tolist() for record in ds] == [each.tolist() for each in written]
        assert ds[0]["tokens"].dtype == dtype
        if not all(chunk["dim"] for chunk in json.loads((folder / "index.json").read_text())["chunks"]):
            continue  # a first document without tokens: LitData itself cannot read the chunk
        block = random.randint(1, 7)
        theirs = litdata.StreamingDataset(str(folder), item_loader=litdata.TokensLoader(block_size=block))
        paths = [
            folder / name for name in dict.fromkeys(origin.path for origin in map(ds.locate, range(len(ds))))
        ]
        blocks: list[list[int]] = []
        for path in paths:
            tokens = np.concatenate([record["tokens"] for record in sk.open(f"tokens:{path}")])
            blocks += tokens[: tokens.size // block * block].reshape(-1, block).tolist()
        assert [theirs[at].tolist() for at in range(len(theirs))] == blocks


COLUMNS: list[dict[str, str]] = [
    {"tokens": "ndarray:int32:8"},
    {"tokens": "ndarray:uint16"},
    {"tokens": "ndarray"},
    {"tokens": "bytes"},
    {"input_ids": "ndarray:uint32", "text": "str", "n": "int", "attention_mask": "ndarray:uint8:3"},
]


@pytest.mark.frameworks(name="streaming")
@pytest.mark.filterwarnings("ignore")
def test_shards_that_mosaicml_streaming_writes(tmp_path: Path) -> None:
    from tests.docs.streaming_alone import streaming

    package = streaming()
    random = Random(2)
    for number in range(20):
        columns = COLUMNS[number % len(COLUMNS)]
        name = "tokens" if "tokens" in columns else "input_ids"
        kind = columns[name].split(":")
        dtype = kind[1] if len(kind) > 1 else "int64"
        written = documents(random, dtype, least=1)
        if len(kind) > 2:
            written = [np.arange(8, dtype=dtype) + at for at in range(len(written))]
        folder = tmp_path / f"{number}"
        limit = random.choice([400, 2000, 1 << 20])
        with package.MDSWriter(columns=columns, out=str(folder), size_limit=limit) as writer:
            for at, document in enumerate(written):
                value = document.tobytes() if kind == ["bytes"] else document
                others = {"text": "x" * (at % 5), "n": at, "attention_mask": np.ones(3, np.uint8)}
                writer.write({name: value, **{each: others[each] for each in columns if each != name}})
        ds = sk.open(folder, format=sk.formats.Tokens(dtype=dtype if kind == ["bytes"] else None))
        assert len(ds) == len(written)
        for record, document in zip(ds, written, strict=True):
            assert record["tokens"].dtype == document.dtype
            assert record["tokens"].tolist() == document.tolist()


def characters(text: str) -> list[int]:
    return [ord(character) + at for at, character in enumerate(text)]


@pytest.fixture
def forager() -> Iterator[Callable[[str], Any]]:
    """Give an import of modules of Forager, which prints, and changes the logging of the process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()):
        yield lambda name: importlib.import_module(f"data_forager.{name}")
    logging.disable(logging.NOTSET)
    root.handlers[:] = handlers
    root.setLevel(level)


def corpus(folder: Path, random: Random) -> None:
    for name in ("a2.jsonl", "a10.jsonl", "sub/b.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "text": "x" * random.randrange(20),
                "parts": [
                    {"type": random.choice(["prompt", "response"]), "text": "y" * random.randrange(9)}
                    for _ in range(random.randint(1, 3))
                ],
            }
            for _ in range(random.randint(1, 20))
        ]
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("sample_size", [8, None])
@pytest.mark.filterwarnings("ignore:basics.logging")
def test_samples_that_forager_tokenises(
    tmp_path: Path, sample_size: int | None, forager: Callable[[str], Any]
) -> None:
    indexer = forager("indexers.tokenization_indexer")
    datasets = forager("datasets.tokens")
    random = Random(3)
    for dtype in ("uint16", "uint32"):
        folder = tmp_path / dtype
        corpus(folder, random)
        indexer.create_tokenize_and_index_jsonl_text_func(
            tokenizer_func=characters,
            eos_idx=1,
            input_base_path=str(folder),
            sample_size=sample_size,
            token_dtype=np.dtype(dtype).type,
        )()
        theirs = datasets.TokensDataset.create_from_index_on_filesystem(str(folder), token_dtype=dtype)
        expected = [theirs[at].tolist() for at in range(len(theirs))]
        ds = sk.open(folder, format=sk.formats.Tokens(dtype=dtype))
        assert [record["tokens"].tolist() for record in ds] == expected
        assert len(ds) > 3


@pytest.mark.filterwarnings("ignore:basics.logging")
def test_samples_with_arrays_that_forager_tokenises(tmp_path: Path, forager: Callable[[str], Any]) -> None:
    indexer = forager("indexers.tokenization_indexer")
    aux = forager("sample_generators.aux")
    datasets = forager("datasets.tokens_with_aux")
    corpus(tmp_path, Random(4))

    def parts(line: bytes) -> list[Any]:
        return [aux.Part(type=part["type"], text=part["text"]) for part in json.loads(line)["parts"]]

    indexer.create_tokenize_and_index_with_aux_func(
        process_parts_func=parts,
        tokenizer_func=characters,
        eos_idx=1,
        aux_generators={"loss_mask": aux.LossMaskGenerator()},
        input_base_path=str(tmp_path),
        sample_size=8,
    )()
    theirs = datasets.TokensWithAuxDataset.create_from_index_on_filesystem(str(tmp_path))
    expected = [theirs[at] for at in range(len(theirs))]
    ds = sk.open(tmp_path)
    assert len(ds) == len(expected) > 3
    for record, sample in zip(ds, expected, strict=True):
        assert list(record) == list(sample) == ["tokens", "loss_mask"]
        for name, array in sample.items():
            assert record[name].dtype == array.dtype
            assert record[name].tolist() == array.tolist()


def test_rows_that_safetensors_writes(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    rows = np.random.default_rng(0).integers(0, 60_000, (50, 17)).astype(np.uint16)
    numpy.save_file({"tokens": rows, "scores": rows.astype(np.float32)}, tmp_path / "a.safetensors")
    assert [record["tokens"].tolist() for record in sk.open(tmp_path / "a.safetensors")] == rows.tolist()
