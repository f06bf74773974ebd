"""Batches of a loader as tensors on a device of PyTorch; without a GPU, on the CPU."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import seekable as sk

KINDS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]
KINDS += ["uint16", "uint32", "uint64", ">i4", ">f8"]


def features(record: int) -> dict[str, Any]:
    return {
        "id": record,
        "x": np.full(3, record, dtype=np.float32),
        "text": f"number {record}",
        "parts": (np.arange(record % 3), record / 2),
    }


def loader_of(**arguments: Any) -> sk.Loader:
    dataset = sk.from_sequence(range(30), version=1).shuffle(seed=1).map(features)
    return sk.Loader(dataset, **{"batch_size": 4, "device": "cpu", **arguments})


def as_arrays(value: Any) -> Any:
    """Return a batch with lists in the place of arrays and tensors."""
    if isinstance(value, dict):
        return {name: as_arrays(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_arrays(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray | torch.Tensor) else value


@pytest.mark.parametrize("arguments", [{}, {"prefetch": 0}, {"workers": 1}])
def test_arrays_become_tensors_and_all_else_stays(arguments: dict[str, Any]) -> None:
    with loader_of(**arguments) as loader:
        batches = list(loader)
    plain = list(loader_of(device=None))
    assert as_arrays(batches) == as_arrays(plain)
    first = batches[0]
    assert isinstance(first["id"], torch.Tensor)
    assert (first["id"].dtype, first["x"].dtype, first["x"].shape) == (torch.int64, torch.float32, (4, 3))
    assert [type(part) for part in (first["text"], first["text"][0])] == [list, str]
    ragged, halves = first["parts"]
    assert {type(part) for part in ragged} == {torch.Tensor}
    assert halves.dtype == torch.float64


@pytest.mark.parametrize("kind", KINDS)
def test_each_dtype_arrives_as_it_is(kind: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(kind)[:, ::-1]
    batch = next(iter(sk.Loader(sk.from_sequence([array]), batch_size=None, device="cpu")))
    assert batch.tolist() == array.tolist()
    assert batch.numpy().dtype == array.dtype.newbyteorder("=")


def test_a_tensor_of_its_own_memory_is_a_copy() -> None:
    array, tensor, scalar = np.zeros(3), torch.zeros(3), np.array(7)
    array.flags.writeable = False
    (batch,) = sk.Loader(
        sk.from_sequence([(array, tensor, scalar)]), batch_size=None, device=torch.device("cpu")
    )
    batch[0].add_(1)
    batch[1].add_(1)
    assert (array.tolist(), tensor.tolist()) == ([0.0] * 3, [0.0] * 3)
    assert (batch[2].shape, int(batch[2])) == ((), 7)


def test_what_has_no_numbers_stays() -> None:
    record = (np.array(["a"]), np.array([None]), np.array(["2026-01-01"], "datetime64[D]"), None, 3, "x")
    (batch,) = sk.Loader(sk.from_sequence([record]), batch_size=None, device="cpu")
    assert [type(part) for part in batch] == [type(part) for part in record]


def test_a_dtype_that_torch_lacks_is_an_error_in_its_place() -> None:
    loader = sk.Loader(
        sk.from_sequence([np.zeros(1), np.zeros(1, np.longdouble)]), batch_size=None, device="cpu"
    )
    run = iter(loader)
    assert next(run).tolist() == [0]
    with pytest.raises(sk.errors.BadValue, match="PyTorch has no dtype float128"):
        next(run)
    assert loader.step == 1


def test_states_count_what_the_loop_has() -> None:
    with loader_of() as loader:
        whole = as_arrays(list(loader_of()))
        run = iter(loader)
        for step in range(1, 4):
            next(run)
            state = json.loads(json.dumps(loader.state_dict()))
            assert state["step"] == step
            again = loader_of(prefetch=0)
            again.load_state_dict(state)
            assert as_arrays(list(again)) == whole[step:]
    without = loader_of(device=None)
    without.load_state_dict(state)
    assert without.state_dict() == state


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_here_is_refused_when_the_loader_is_made() -> None:
    for device in ("cuda", "cuda:0", torch.device("cuda", 1)):
        with pytest.raises(sk.errors.InvalidArgument, match="PyTorch sees 0 CUDA devices"):
            loader_of(device=device)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "device must be one that PyTorch knows .got 'gpu'"),
        ("cuda:x", "device must be one that PyTorch knows"),
        ("cuda:999", "PyTorch sees . CUDA devices"),
        ("meta", "device must hold data"),
        ("xpu", "device must be there .got 'xpu'"),
    ],
)
def test_no_device_is_refused(device: str, message: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=message):
        loader_of(device=device)


def test_the_loader_says_where_it_delivers() -> None:
    assert loader_of().explain().splitlines()[3] == "device: cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this needs a GPU")
@pytest.mark.parametrize("arguments", [{}, {"prefetch": 0}, {"workers": 1}])
def test_batches_come_to_the_gpu_beside_the_work_there(arguments: dict[str, Any]) -> None:
    """A long kernel runs while the next batches are copied and memory is used again."""
    busy = torch.randn(4000, 4000, device="cuda")
    with loader_of(device="cuda", **arguments) as loader:
        found = []
        for batch in loader:
            assert batch["x"].is_cuda
            busy = (busy @ busy).tanh()
            found.append(batch["x"].clone())
            del batch
        assert as_arrays([part.cpu() for part in found]) == [
            batch["x"].tolist() for batch in loader_of(device=None)
        ]
