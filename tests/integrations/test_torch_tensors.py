"""Tensors: from a Loader's collate, through its workers, and from torch's own loader."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.integrations.torch_samplers import corpus, loader_of, numbers, sampled
from torch.utils.data import default_collate

import seekable as sk
from seekable.loader.collate import collate

ROOT = Path(__file__).resolve().parent.parent.parent


def _features(number: int) -> dict[str, Any]:
    return {"x": np.full(3, number, dtype=np.float32), "y": number, "name": f"n{number}"}


def features() -> sk.Dataset:
    return numbers().map(_features)


def _tensors(records: list[Any]) -> Any:
    batch = collate(records)
    return {"x": torch.from_numpy(batch["x"]), "y": torch.from_numpy(batch["y"])}


def _same(one: Any, other: Any) -> bool:
    return all(torch.equal(one[key], other[key]) and one[key].dtype == other[key].dtype for key in ("x", "y"))


@pytest.mark.parametrize(
    "how", [{"workers": 2}, {"workers": sk.Workers(2, type="thread")}, {"prefetch": 2}], ids=str
)
@pytest.mark.parametrize("fn", [_tensors, default_collate])
def test_a_loader_delivers_the_tensors_of_its_collate(fn: Any, how: dict[str, Any]) -> None:
    wanted = list(loader_of(features(), collate=fn))
    with loader_of(features(), collate=fn, **how) as loader:
        found = list(loader)
    assert all(itertools.starmap(_same, zip(found, wanted, strict=True)))
    assert len(found) == 10
    assert wanted[0]["x"].shape == (4, 3)


def test_arrays_become_tensors_without_a_copy() -> None:
    with loader_of(features(), collate=collate, workers=1) as loader:
        for batch in loader:
            tensor = torch.from_numpy(batch["x"])
            assert tensor.data_ptr() == batch["x"].__array_interface__["data"][0]
            tensor += 1
            assert batch["x"][0, 0] == tensor[0, 0]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataloader_collates_as_torch_or_as_seekable_does(workers: int) -> None:
    for fn in (default_collate, _tensors):
        _, loader = sampled(features(), num_workers=workers, collate_fn=fn)
        wanted = list(loader_of(features(), collate=fn))
        found = list(loader)
        assert all(itertools.starmap(_same, zip(found, wanted, strict=True)))
    _, loader = sampled(features(), num_workers=workers, collate_fn=collate)
    assert next(iter(loader))["name"] == next(iter(loader_of(features(), collate=collate)))["name"]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="memory is pinned then")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")
def test_a_dataloader_that_would_pin_memory_delivers_the_same() -> None:
    sampler, loader = sampled(features(), num_workers=2, collate_fn=_tensors, pin_memory=True)
    for found, wanted in zip(loader, loader_of(features(), collate=_tensors), strict=True):
        assert _same(found, wanted)
    assert sampler.epoch == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pinned_memory_and_exact_states_on_a_gpu() -> None:
    wanted = loader_of(features(), collate=_tensors)
    sampler, loader = sampled(features(), num_workers=2, collate_fn=_tensors, pin_memory=True)
    for found, batch in zip(sampler.counting(loader), wanted, strict=True):
        assert found["x"].is_pinned()
        assert _same(found, batch)
        assert sampler.state_dict() == wanted.state_dict()
    with loader_of(features(), collate=_tensors, workers=2) as plain:
        for batch in plain:
            assert batch["x"].pin_memory().to("cuda", non_blocking=True).sum() == batch["x"].sum()


def test_killed_runs_resume_with_other_workers(tmp_path: Path) -> None:
    """Pytorch 36650: where an epoch was, with workers running ahead, could not be saved."""
    ds = corpus(tmp_path / "data")
    places = [str(tmp_path / name) for name in ("data", "states", "log")]
    for workers, die_after in [(2, 7), (1, 13), (0, 0)]:
        script = [
            sys.executable,
            "-m",
            "tests.integrations.torch_train",
            *places,
            str(workers),
            str(die_after),
        ]
        done = subprocess.run(script, cwd=ROOT, check=False, timeout=120)
        assert done.returncode == (-signal.SIGKILL if die_after else 0)
    lines = (tmp_path / "log").read_text().splitlines()
    loader = loader_of(ds.shuffle(seed=1))
    wanted = [[record["id"] for record in batch] for batch in itertools.chain(loader, loader)]
    assert [json.loads(line) for line in lines] == wanted


def _odd_tensors(records: list[Any]) -> list[Any]:
    number = float(records[0]["y"])
    wide = torch.full((400, 300), number)
    return [
        torch.tensor(number),
        torch.zeros(0, 3),
        wide,
        wide.t(),
        wide[::2, 1:],
        wide.to(torch.bfloat16),
        torch.tensor([True, False]),
        torch.ones(3, dtype=torch.complex64).conj(),
        torch.ones(4).expand(5, 4),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.eye(3).to_sparse(),
    ]


def test_every_kind_of_tensor_crosses_from_a_worker() -> None:
    with loader_of(features(), collate=_odd_tensors, workers=1, steps=2) as loader:
        batches = list(loader)
    for found, wanted in zip(batches, loader_of(features(), collate=_odd_tensors, steps=2), strict=True):
        for one, other in zip(found, wanted, strict=True):
            assert type(one) is type(other)
            assert (one.dtype, one.requires_grad) == (other.dtype, other.requires_grad)
            assert torch.equal(one.to_dense(), other.to_dense())
        found[2] += 1


def _shared(records: list[Any]) -> dict[str, torch.Tensor]:
    tensor = torch.full((50_000,), float(len(records)))
    return {"a": tensor, "b": tensor}


def test_a_tensor_that_comes_twice_in_a_batch_is_still_one() -> None:
    with loader_of(features(), collate=_shared, workers=1, steps=1) as loader:
        batch = next(iter(loader))
    assert batch["a"] is batch["b"]
