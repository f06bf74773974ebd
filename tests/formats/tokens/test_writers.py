"""What Megatron-core and datatrove write is read as their own readers read it."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests import tokens_apart
from tests.formats.tokens.token_formats import FORMS, datatrove, drawn, megatron

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DTYPES = [(np.uint8, 1), (np.int8, 2), (np.int16, 3), (np.int32, 4), (np.int64, 5), (np.uint16, 8)]


@pytest.fixture
def megatron_core() -> Any:
    """The writer and the reader of indexed datasets of Megatron-core, whose import warns."""
    tokens_apart.add_to_path()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("megatron.core.datasets.indexed_dataset")


def tokens_of(asked: str | Path, **options: Any) -> list[NDArray[Any]]:
    form = sk.formats.Tokens(**options) if options else None
    return [record["tokens"] for record in sk.open(asked, format=form)]


@pytest.mark.frameworks(name="torch")
@pytest.mark.parametrize(("dtype", "code"), DTYPES)
@pytest.mark.parametrize("modes", [False, True])
def test_what_megatron_writes(tmp_path: Path, megatron_core: Any, dtype: Any, code: int, modes: Any) -> None:
    rng = np.random.default_rng(code)
    for case in range(5):
        prefix = str(tmp_path / f"{case}")
        builder = megatron_core.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype, multimodal=modes)
        written = []
        for _ in range(int(rng.integers(1, 20))):
            lengths = [int(length) for length in rng.integers(0, 9, int(rng.integers(1, 4)))]
            lengths[0] += 1  # Their reader maps no empty file.
            sequence = rng.integers(0, 100, sum(lengths))
            builder.add_document(sequence, lengths, [1] * len(lengths) if modes else None)
            written += np.split(sequence, np.cumsum(lengths)[:-1])
        builder.finalize(f"{prefix}.idx")
        found = tokens_of(f"megatron:{prefix}")
        theirs = megatron_core.IndexedDataset(prefix, multimodal=modes)
        their_items = [theirs[row][0] if modes else theirs[row] for row in range(len(written))]
        for one, other, last in zip(found, written, their_items, strict=True):
            assert one.dtype == dtype
            assert one.tolist() == other.tolist() == last.tolist()


@pytest.mark.frameworks(name="torch")
def test_our_bytes_of_megatron_are_theirs(tmp_path: Path, megatron_core: Any) -> None:
    some = drawn(np.random.default_rng(3), FORMS["megatron"])
    for modes, (dtype, code) in ((False, (np.uint16, 8)), (True, (np.int32, 4))):
        builder = megatron_core.IndexedDatasetBuilder(str(tmp_path / "a.bin"), dtype=dtype, multimodal=modes)
        for document in some:
            builder.add_document(document, [len(document)], [1] if modes else None)
        builder.finalize(str(tmp_path / "a.idx"))
        form = np.dtype(dtype).newbyteorder("<").str
        for name, data in megatron(some, dtype=form, code=code, modes=modes).items():
            assert (tmp_path / name).read_bytes() == data


@pytest.mark.frameworks(name="torch")
@pytest.mark.parametrize("width", [2, 4])
def test_what_datatrove_writes(tmp_path: Path, width: int) -> None:
    tokens_apart.add_to_path()
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile
    from datatrove.utils.dataset import DatatroveFileDataset

    rng = np.random.default_rng(width)
    some = [rng.integers(0, 60_000, int(length)) for length in rng.integers(1, 50, 30)]
    loss = [rng.random(len(document)) < 0.5 for document in some]
    file = TokenizedFile(str(tmp_path), "00000_unshuffled.ds", save_loss_metadata=True, token_size=width,
                         save_final_metadata=True, tokenizer_name_or_path="gpt2|x")  # fmt: skip
    for document, mask in zip(some, loss, strict=True):
        file.write(document.tolist(), mask)
    file.close()
    dataset = sk.open(tmp_path)
    assert [record["tokens"].tolist() for record in dataset] == [document.tolist() for document in some]
    assert [record["loss_mask"].astype(bool).tolist() for record in dataset] == [
        mask.tolist() for mask in loss
    ]
    ordering = rng.permutation(len(some))
    shuffled = file.copy("shuffled", ordering, file.output_folder)
    shuffled.close()
    found = tokens_of(tmp_path / "shuffled_00000_00000_shuffled.ds")
    assert [tokens.tolist() for tokens in found] == [some[row].tolist() for row in ordering]
    theirs = DatatroveFileDataset(str(tmp_path / "00000_unshuffled.ds"), seq_len=9, token_size=width)
    flat = np.concatenate([record["tokens"] for record in dataset])
    for row in range(len(theirs)):
        assert theirs[row]["input_ids"].tolist() == flat[10 * row : 10 * row + 10].tolist()


def test_bytes_of_datatrove() -> None:
    files = datatrove([np.array([5, 6, 7]), np.array([9])])
    assert files["a.ds.index"] == bytes.fromhex("03000000000000000400000000000000")
    assert files["a.ds"] == bytes.fromhex("05000000060000000700000009000000")
