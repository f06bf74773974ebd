"""The data-parallel rank of this process, where several processes hold one copy of the model.

Processes that differ in their place along a tensor, pipeline or context dimension work on the same records.
Those that differ along a data-parallel dimension share the records out. A place in the mesh is made of the
number of the process by arithmetic: the last dimension of the order changes fastest.
"""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seekable._arguments import AT_ONCE, checked_count
from seekable.errors import AmbiguousRank, InvalidArgument, WrongType
from seekable.loader.arguments import rank_around

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["distributed"]

_SPLITTING = ("dp", "dp_replicate", "dp_shard")
"""The dimensions along which records are shared out; along all others they are the same."""

_PARTS = frozenset({"ep", "etp", "efsdp", "fsdp", "hsdp", "loss", "shard", "replica", "replicate"})
"""Names of dimensions that may be a part of the data-parallel one, or its product with another: the ``fsdp``
of torchtitan contains the context dimension, and experts lie across data-parallel ranks in most frameworks.
"""

_UNCLEAR = _PARTS | {"data", "batch"}
"""Names of dimensions that may be of either kind beside others."""

_NO_SIZES = {
    **dict.fromkeys(("mesh", "device_mesh"), "sk.distributed(mesh), without a name"),
    **dict.fromkeys(("process_group", "pg"), "group="),
    **dict.fromkeys(("rank", "world_size"), "sk.Loader(..., rank=rank, world_size=world_size)"),
}
"""Words that people type for what is no dimension, and what to write."""

_SAME = frozenset({"tp", "pp", "cp", "sp"})
"""Along these no framework shares records out."""


@runtime_checkable
class Mesh(Protocol):
    """What is asked of a ``torch.distributed.device_mesh.DeviceMesh``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        ...

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions, if they have any."""
        ...

    def get_coordinate(self) -> Sequence[int] | None:
        """Return the place of this process along each dimension; None if it is not in the mesh."""
        ...


def distributed(
    mesh: Mesh | None = None, /, *, group: Any = None, order: Sequence[str] | None = None, **sizes: int
) -> tuple[int, int]:
    """Return the rank of this process and the count of ranks, as a Loader takes them.

    With no arguments each process is a rank. They are counted by ``torch.distributed`` if it is initialised,
    else by ``RANK`` and ``WORLD_SIZE`` of the environment, which torchrun sets. Without these there is one
    rank, 0. Where several processes hold one copy of the model, say which share the records out, in one of
    three ways:

    Args:
        mesh: torch's ``DeviceMesh``: the data-parallel dimension, ``mesh["dp"]``, or a mesh with named
            dimensions. Of these ``dp``, ``dp_replicate`` and ``dp_shard`` share the records out.
        group: the data-parallel process group of ``torch.distributed``.
        order: the names in ``sizes``, as in ``mesh_dim_names`` of torch: the last one changes fastest from
            process to process. Meshes differ in it, and a wrong one repeats and loses records.
        sizes: the size of each dimension, such as ``dp=2, tp=4``; their product is the number of processes.
            ``dp``, ``dp_replicate`` and ``dp_shard`` share the records out; along others, such as ``tp``,
            ``pp``, ``cp`` and names of your own, processes get the same records.

    Raises:
        AmbiguousRank: the environment names a number of ranks and not which of them this is, or no number;
            or nothing was said, and Megatron or Accelerate has several processes for one copy of the model.
        InvalidArgument: the process is not in the mesh or the group; the sizes do not make the number of
            processes; or a dimension is left out of the order, or may be of either kind.
        WrongType: an argument has a wrong type.

    Example:
        >>> import seekable as sk
        >>> rank, world_size = sk.distributed()
        >>> loader = sk.Loader(
        ...     sk.from_sequence(range(9)), global_batch_size=3, rank=rank, world_size=world_size
        ... )
        >>> sk.distributed(dp=1, tp=1, order=("dp", "tp"))
        (0, 1)
    """
    ways = {"a mesh": mesh, "group=": group, "sizes": sizes or order}
    said = [name for name, given in ways.items() if given is not None]
    if len(said) > 1:
        message = f"say in one way which processes share the records out (got {' and '.join(said)})"
        raise InvalidArgument(message)
    if mesh is not None:
        return _of_mesh(mesh)
    if group is not None:
        return _of_group(group)
    rank, count = rank_around()
    if sizes or order is not None:
        return data_rank(rank, _dimensions(sizes, order, count))
    if count > 1 and (hint := _copies_around(count)):
        raise AmbiguousRank(hint)
    return rank, count


def data_rank(rank: int, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Return the data-parallel rank of a process, and the number of these ranks.

    Args:
        rank: the number of the process among all.
        sizes: the size of each dimension; the last one changes fastest.

    Example:
        >>> [data_rank(rank, {"dp": 2, "tp": 2}) for rank in range(4)]
        [(0, 2), (0, 2), (1, 2), (1, 2)]
        >>> [data_rank(rank, {"tp": 2, "dp": 2}) for rank in range(4)]
        [(0, 2), (1, 2), (0, 2), (1, 2)]
    """
    place, rest = [], rank
    for size in reversed([*sizes.values()]):
        rest, at = divmod(rest, size)
        place.append(at)
    return _of_place(place[::-1], sizes)


def _of_place(place: Sequence[int], sizes: Mapping[str, int]) -> tuple[int, int]:
    """Return the data-parallel rank at a place in a mesh, and the number of these ranks."""
    rank, count = 0, 1
    for name, at, size in zip(sizes, place, sizes.values(), strict=True):
        if name in _SPLITTING:
            rank, count = rank * size + at, count * size
    return rank, count


def _dimensions(sizes: Mapping[str, int], order: Sequence[str] | None, count: int) -> dict[str, int]:
    """Return the sizes in their order, checked."""
    for name in _NO_SIZES.keys() & sizes:
        raise InvalidArgument(f"{name}= is no dimension of a mesh: write {_NO_SIZES[name]}")
    checked = {name: checked_count(name, size, least=1, below=AT_ONCE) for name, size in sizes.items()}
    said = ", ".join(f"{name}={size}" for name, size in checked.items()) or "nothing"
    names = _names(order, checked, said)
    _check_kinds(checked, f"got {said}")
    if (product := math.prod(checked.values())) != count:
        raise InvalidArgument(
            f"the sizes of all dimensions must multiply to the number of processes, {count} by "
            f"torch.distributed or WORLD_SIZE (got {said}, which is {product}): name each dimension of the "
            f"mesh, and start as many processes"
        )
    return {name: checked[name] for name in names}


def _names(order: Sequence[str] | None, sizes: Mapping[str, int], said: str) -> list[str]:
    """Return the names of the dimensions, slowest first, checked."""
    if order is None:
        raise InvalidArgument(
            f"order= is needed beside sizes (got {said}), because meshes differ: name the dimensions as "
            f"mesh_dim_names of torch does, the one last that changes fastest from process to process, such "
            f"as order={_usual(sizes)!r}"
        )
    if isinstance(order, str):
        raise WrongType(
            f"order must be a tuple of names, the one last that changes fastest (got {order!r}); Megatron's "
            f'"tp-cp-dp-pp" names that one first, so it is ("pp", "dp", "cp", "tp") here'
        )
    try:
        names = [*order]
    except TypeError:
        raise WrongType(f"order must be a tuple of names (got {order!r:.100})") from None
    if sorted(map(str, names)) != sorted(sizes):
        message = f"order must name each dimension once (got {said}, and order={order!r:.100})"
        raise InvalidArgument(message)
    return names


def _usual(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names in the order of most meshes: pipeline, data, context, tensor."""
    usual = ["pp", *_SPLITTING, "cp", "sp", "tp"]
    return tuple(sorted(sizes, key=lambda name: usual.index(name) if name in usual else len(usual)))


def _check_kinds(sizes: Mapping[str, int], got: str) -> None:
    """Refuse a mesh without a data-parallel dimension, and dimensions that may be of either kind."""
    unclear = [name for name, size in sizes.items() if size > 1 and _is_unclear(name)]
    if unclear:
        raise InvalidArgument(
            f"the dimension {unclear[0]!r} may share records out or not ({got}): call it dp, dp_replicate or "
            f"dp_shard where it does, as experts do that lie across data-parallel ranks; another name, such "
            f"as model, where its processes get the same records; or give the data-parallel dimension alone, "
            f'sk.distributed(mesh["dp"])'
        )
    if not any(name in _SPLITTING for name in sizes):
        raise InvalidArgument(
            f"one dimension must be dp, dp_replicate or dp_shard, which share records out ({got}): "
            f"say dp=1 where all processes get the same records"
        )


def _is_unclear(name: str) -> bool:
    """Return True for the name of a dimension along which records may be shared out or not.

    Example:
        >>> [_is_unclear(name) for name in ("dp", "tp", "model", "fsdp", "dp_cp", "ep")]
        [False, False, False, True, True, True]
    """
    return name not in _SPLITTING and (name in _UNCLEAR or "dp" in name)


def _of_mesh(mesh: Mesh) -> tuple[int, int]:
    if not isinstance(mesh, Mesh):
        raise WrongType(
            f"sk.distributed() takes a DeviceMesh of torch (got {mesh!r:.100} of type "
            f'{type(mesh).__name__}): mesh["dp"], or group=, or sizes and order='
        )
    place, shape, names = mesh.get_coordinate(), tuple(mesh.shape), mesh.mesh_dim_names
    if place is None:
        raise InvalidArgument(
            f"this process, {rank_around()[0]}, is not in {mesh!r:.200}: give it no loader, or take the mesh "
            f"that has it"
        )
    if len(shape) == 1:
        if names is not None:
            _check_single(names[0], shape[0], mesh)
        return place[0], shape[0]
    if names is None:
        raise InvalidArgument(
            f"a mesh of {len(shape)} dimensions must have names, of which dp, dp_replicate and dp_shard "
            f'share records out (got {mesh!r:.200}): say mesh_dim_names= where it is made, or give mesh["dp"]'
        )
    sizes = dict(zip(names, shape, strict=True))
    _check_kinds(sizes, f"got {mesh!r:.200}")
    return _of_place(place, sizes)


def _check_single(name: str, size: int, mesh: Mesh) -> None:
    """Refuse one dimension that does not alone say which processes share the records out."""
    if same := sorted(_SAME.intersection(name.split("_"))):
        raise InvalidArgument(
            f'along {same[0]!r} processes get the same records (got {mesh!r:.200}): give mesh["dp"], or what '
            f"the data-parallel dimension is called"
        )
    count = rank_around()[1]
    if name in _PARTS and size != count:
        raise InvalidArgument(
            f"the dimension {name!r} has {size} of {count} processes, and does not say which of the others "
            f"get the same records (got {mesh!r:.200}): give the dimensions together that share records out, "
            f'called mesh["dp"] or mesh["dp_replicate", "dp_shard"]; or sizes and order='
        )


def _of_group(group: Any) -> tuple[int, int]:
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        raise InvalidArgument(
            f"group= is a process group of torch.distributed, which is not initialised here (got "
            f"{group!r:.100}): call torch.distributed.init_process_group() first"
        )
    outside = group == module.GroupMember.NON_GROUP_MEMBER
    if not outside and not isinstance(group, module.ProcessGroup):
        raise WrongType(
            f"group must be a process group of torch.distributed (got {group!r:.100} of type "
            f'{type(group).__name__}): mesh["dp"].get_group(), or that of your framework'
        )
    try:
        rank, count = (-1, 0) if outside else (module.get_rank(group), module.get_world_size(group))
    except (ValueError, RuntimeError) as error:
        raise InvalidArgument(f"torch.distributed does not know the group any more: {error}") from error
    if rank < 0:
        raise InvalidArgument(
            f"this process, {module.get_rank()}, is not in the group: give it no loader, or pass the "
            f"data-parallel group that has it"
        )
    return rank, count


def _copies_around(count: int) -> str | None:
    """Return what to write where a framework says that several processes hold one copy of the model.

    torch keeps no public list of its meshes, so that of it nothing is known.
    """
    megatron = sys.modules.get("megatron.core.parallel_state")
    if megatron is not None and megatron.model_parallel_is_initialized():
        ranks = megatron.get_data_parallel_world_size()
        if ranks != count:
            return (
                f"Megatron has {ranks} data-parallel ranks among {count} processes, so several get the same "
                f"records: write sk.distributed(group=parallel_state.get_data_parallel_group())"
            )
    copy = _processes_of_accelerate()
    if copy > 1:
        return (
            f"Accelerate has {copy} processes for one copy of the model (parallelism_config), which get the "
            f"same records: write sk.distributed(accelerator.torch_device_mesh)"
        )
    return None


def _processes_of_accelerate() -> int:
    """Return the number of processes that hold one copy of the model under Accelerate."""
    module = sys.modules.get("accelerate.state")
    if module is not None and module.is_initialized():
        config = getattr(module.AcceleratorState(), "parallelism_config", None)
        return 1 if config is None else int(config.non_data_parallel_size)
    # What `accelerate launch` tells a program that has not made its Accelerator yet.
    sizes = (os.environ.get(f"PARALLELISM_CONFIG_{name}_SIZE", "1") for name in ("TP", "CP", "SP"))
    return math.prod(int(size) for size in sizes if size.isdecimal())
