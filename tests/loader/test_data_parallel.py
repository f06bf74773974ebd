"""The data-parallel rank, where several processes hold one copy of the model: by names, sizes and order.

torch's own meshes and groups are in tests/integrations/test_torch_groups.py.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import AmbiguousRank, InvalidArgument, WrongType
from seekable.loader.data_parallel import data_rank

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = ["dp", "dp_replicate", "dp_shard", "tp", "pp", "cp", "sp", "model"]
SPLITTING = {"dp", "dp_replicate", "dp_shard"}
MESHES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), max_size=5)


def rank_in(monkeypatch: pytest.MonkeyPatch, rank: int, count: int) -> None:
    """Let the environment say which process this is, as torchrun does."""
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(count))


def by_numpy(sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return what each process gets: the place in the mesh without the other dimensions."""
    mesh = np.arange(math.prod(sizes.values())).reshape([*sizes.values()])
    kept = [axis for axis, name in enumerate(sizes) if name in SPLITTING]
    count = math.prod(mesh.shape[axis] for axis in kept)
    order = np.moveaxis(mesh, kept, range(len(kept))).reshape(count, -1)
    ranks = {process: rank for rank, same in enumerate(order.tolist()) for process in same}
    return [(ranks[process], count) for process in range(mesh.size)]


@given(MESHES)
def test_the_rank_is_the_place_along_the_data_parallel_dimensions(sizes: dict[str, int]) -> None:
    assert [data_rank(rank, sizes) for rank in range(math.prod(sizes.values()))] == by_numpy(sizes)


@given(MESHES)
def test_each_copy_of_the_model_has_each_rank_once(sizes: dict[str, int]) -> None:
    total = math.prod(sizes.values())
    found = Counter(data_rank(rank, sizes) for rank in range(total))
    count = math.prod(size for name, size in sizes.items() if name in SPLITTING)
    assert found == {(rank, count): total // count for rank in range(count)}


def test_the_ranks_of_two_by_two_by_two() -> None:
    """Golden values: the last name changes fastest."""
    ranks = {
        order: [data_rank(rank, dict.fromkeys(order, 2))[0] for rank in range(8)]
        for order in itertools.permutations(["dp", "cp", "tp"])
        if order.index("cp") < order.index("tp")
    }
    assert ranks == {
        ("dp", "cp", "tp"): [0, 0, 0, 0, 1, 1, 1, 1],
        ("cp", "dp", "tp"): [0, 0, 1, 1, 0, 0, 1, 1],
        ("cp", "tp", "dp"): [0, 1, 0, 1, 0, 1, 0, 1],
    }
    replicated = {"pp": 2, "dp_replicate": 2, "dp_shard": 2}
    assert [data_rank(rank, replicated) for rank in range(8)] == [(n, 4) for n in (0, 1, 2, 3)] * 2


def test_sizes_and_order_are_of_the_processes_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, mine in enumerate([0, 0, 1, 1]):
        rank_in(monkeypatch, rank, 4)
        assert sk.distributed(dp=2, tp=2, order=("dp", "tp")) == (mine, 2)
        assert sk.distributed(tp=2, dp=2, ep=1, order=["dp", "ep", "tp"]) == (mine, 2)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    assert sk.distributed(dp=1, order=("dp",)) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dp": 2, "tp": 2}, r"order= is needed .*such as order=\('dp', 'tp'\)"),
        ({"tp": 2, "cp": 1, "dp": 2}, r"such as order=\('dp', 'cp', 'tp'\)"),
        ({"dp": 2, "tp": 2, "order": ("dp",)}, r"order must name each dimension once \(got dp=2, tp=2"),
        ({"dp": 4, "order": ("dp", "tp")}, "order must name each dimension once"),
        ({"dp": 4, "order": ("dp", 3)}, "order must name each dimension once"),
        ({"dp": 2, "tp": 4, "order": ("dp", "tp")}, r"multiply to the number of processes, 4 .*which is 8"),
        ({"tp": 4, "order": ("tp",)}, "one dimension must be dp, dp_replicate or dp_shard"),
        ({"order": ()}, r"one dimension must be dp.*got nothing"),
        ({"dp": 2, "ep": 2, "order": ("dp", "ep")}, "the dimension 'ep' may share records out or not"),
        ({"dp": 2, "fsdp": 2, "order": ("dp", "fsdp")}, "the dimension 'fsdp' may share"),
        ({"dp_cp": 4, "order": ("dp_cp",)}, "the dimension 'dp_cp' may share"),
        ({"dp": 0, "order": ("dp",)}, r"dp must be at least 1 \(got 0\)"),
        ({"dp": -1, "order": ("dp",)}, r"dp must be at least 1 \(got -1\)"),
        (
            {"mesh": object()},
            r"mesh= is no dimension of a mesh: write sk\.distributed\(mesh\), without a name",
        ),
        ({"process_group": object()}, "process_group= is no dimension of a mesh: write group="),
        ({"rank": 1}, r"rank= is no dimension of a mesh: write sk\.Loader"),
        ({"group": 3}, "group= is a process group of torch.distributed, which is not initialised"),
        ({"group": 3, "dp": 4}, "say in one way .*got group= and sizes"),
    ],
    ids=str,
)
def test_what_may_be_wrong_is_refused(
    arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_in(monkeypatch, 1, 4)
    with pytest.raises(InvalidArgument, match=message):
        sk.distributed(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "tp-cp-dp-pp", "dp": 4}, r'it is \("pp", "dp", "cp", "tp"\) here'),
        ({"order": 5, "dp": 4}, "order must be a tuple of names"),
        ({"dp": "4", "order": ("dp",)}, "dp must be an integer"),
        ({"dp": 2.0, "order": ("dp",)}, "dp must be an integer"),
    ],
    ids=str,
)
def test_wrong_types_are_named(
    arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_in(monkeypatch, 1, 4)
    with pytest.raises(WrongType, match=message):
        sk.distributed(**arguments)


@pytest.mark.parametrize("mesh", [8, "dp", object(), SimpleNamespace(shape=(2, 2))])
def test_what_is_no_mesh_is_refused(mesh: Any) -> None:
    with pytest.raises(WrongType, match="takes a DeviceMesh of torch"):
        sk.distributed(mesh)


@dataclass(frozen=True)
class Mesh:
    """What is asked of a mesh of torch."""

    shape: tuple[int, ...]
    mesh_dim_names: tuple[str, ...] | None
    place: tuple[int, ...] | None

    def get_coordinate(self) -> tuple[int, ...] | None:
        return self.place


@pytest.mark.parametrize(
    ("mesh", "found"),
    [
        (Mesh((4,), None, (3,)), (3, 4)),
        (Mesh((4,), ("data",), (3,)), (3, 4)),
        (Mesh((8,), ("fsdp",), (3,)), (3, 8)),
        (Mesh((2, 4), ("dp", "tp"), (1, 3)), (1, 2)),
        (Mesh((2, 2, 2), ("dp_replicate", "dp_shard", "cp"), (1, 0, 1)), (2, 4)),
        (Mesh((2, 1, 4), ("pp", "fsdp", "dp"), (1, 0, 3)), (3, 4)),
    ],
    ids=str,
)
def test_a_mesh_says_its_data_parallel_place(
    mesh: Mesh, found: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_in(monkeypatch, 3, 8)
    assert sk.distributed(mesh) == found


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (Mesh((2, 2), None, (0, 0)), "a mesh of 2 dimensions must have names"),
        (Mesh((2, 4), ("fsdp", "tp"), (0, 0)), "the dimension 'fsdp' may share"),
        (Mesh((2, 4), ("pp", "tp"), (0, 0)), "one dimension must be dp"),
        (Mesh((4,), ("tp",), (0,)), "along 'tp' processes get the same records"),
        (Mesh((4,), ("dp_shard_cp",), (0,)), "along 'cp' processes get the same records"),
        (Mesh((4,), ("fsdp",), (0,)), "the dimension 'fsdp' has 4 of 8 processes"),
        (Mesh((4,), ("dp",), None), "this process, 3, is not in "),
    ],
    ids=str,
)
def test_a_mesh_that_may_be_the_wrong_one_is_refused(
    mesh: Mesh, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank_in(monkeypatch, 3, 8)
    with pytest.raises(InvalidArgument, match=message):
        sk.distributed(mesh)


def test_where_a_framework_has_several_processes_for_a_copy_nothing_is_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rank_in(monkeypatch, 3, 8)
    monkeypatch.setenv("PARALLELISM_CONFIG_TP_SIZE", "2")
    monkeypatch.setenv("PARALLELISM_CONFIG_CP_SIZE", "2")
    with pytest.raises(AmbiguousRank, match=r"4 processes for one copy .*accelerator\.torch_device_mesh"):
        sk.distributed()
    assert sk.distributed(dp=2, tp=4, order=("dp", "tp")) == (0, 2)
    monkeypatch.setenv("PARALLELISM_CONFIG_TP_SIZE", "1")
    monkeypatch.setenv("PARALLELISM_CONFIG_CP_SIZE", "1")
    assert sk.distributed() == (3, 8)


def test_a_loader_that_is_told_nothing_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    rank_in(monkeypatch, 3, 8)
    with pytest.raises(AmbiguousRank, match=r"sk\.distributed\(mesh\) where several ranks hold one copy"):
        sk.Loader(sk.from_sequence(range(8)))
