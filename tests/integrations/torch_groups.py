"""Lives of the processes of a run under torch.distributed: meshes, peers, and checkpoints of DCP."""

from __future__ import annotations

import itertools
import os
import signal
from typing import Any

import torch
import torch.distributed as dist
from tests.integrations.lives import Log, die, serve
from tests.loader.streams.token_streams import stream_loader
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import seekable as sk


def meshes(_: dict[str, Any], note: Log) -> None:
    """Compare the ways to say which processes share the records out, for each order of three dimensions."""
    for names in itertools.permutations(["dp", "cp", "tp"]):
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=names)
        found = sk.distributed(mesh["dp"])
        assert found == sk.distributed(mesh)
        assert found == sk.distributed(group=mesh["dp"].get_group())
        assert found == sk.distributed(dp=2, cp=2, tp=2, order=names)
        note("-".join(names), found)
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
    both = mesh["dp_replicate", "dp_shard"]
    found = sk.distributed(both)
    assert found == sk.distributed(mesh) == sk.distributed(both._flatten("dp"))
    note("replicated", found)
    refusals(mesh)


def refusals(mesh: Any) -> None:
    """Ask for ranks that are not known; each process makes the same groups."""
    assert ranks_of(mesh["tp"]) is None
    assert ranks_of(dp=4, tp=4, order=("dp", "tp")) is None
    mine = (dist.get_rank(), 2) if dist.get_rank() < 2 else None
    assert ranks_of(group=dist.new_group([0, 1])) == mine
    assert ranks_of(DeviceMesh("cpu", torch.arange(2), mesh_dim_names=("dp",))) == mine


def ranks_of(*asked: Any, **given: Any) -> tuple[int, int] | None:
    """Return what ``sk.distributed`` returns, None if it refuses."""
    try:
        return sk.distributed(*asked, **given)
    except sk.errors.InvalidArgument:
        return None


def peers(spec: dict[str, Any], note: Log) -> None:
    """Train on a mesh where several processes have the same records, and save together."""
    names = tuple(spec["mesh"])
    rank, world_size = sk.distributed(
        init_device_mesh("cpu", tuple(spec["mesh"].values()), mesh_dim_names=names)
    )
    loader = stream_loader(rank, world_size)
    sk.load_state(spec["folder"], loader)
    for batch in loader:
        dist.barrier()  # as the model's own messages between processes
        note("train", batch)
        note("rank", [rank])
        sk.save_state(spec["folder"], loader, keep=2)
        if loader.step == spec["die_at"]:
            dist.barrier()
            die()


def checkpoints(spec: dict[str, Any], note: Log) -> None:
    """Train with checkpoints of DCP, and go on from the newest one."""
    rank, world_size = sk.distributed()
    loader = stream_loader(rank, world_size, **{"steps": spec["steps"], **spec.get("loader", {})})
    saved = loader.stateful()
    weights = {"weight": torch.zeros(1)}
    if "resume" in spec:
        load({"data": saved, "model": weights}, checkpoint_id=spec["resume"])
        assert int(weights["weight"]) == loader.step
    for batch in saved:
        note("train", batch)
        weights["weight"] += 1
        if loader.step in spec.get("save_at", ()):
            save({"data": saved, "model": weights}, checkpoint_id=f"{spec['folder']}/{loader.step}")
        if loader.step == spec.get("die_at"):
            die()
        if loader.step == spec.get("stop_at"):
            os.kill(os.getpid(), signal.SIGTERM)


def refused(spec: dict[str, Any], note: Log) -> None:
    """Begin with what could not be saved: the first ``iter`` says so, on every process."""
    rank, world_size = sk.distributed()
    if spec["why"] == "ranks":
        rank = min(rank, 1)  # two processes as one rank, as where the mesh is not said
    seed = rank if spec["why"] == "pipelines" else 1
    loader = stream_loader(rank, world_size, stream={"seed": seed})
    if spec["why"] == "steps":
        loader.skip_batches(rank)
    group = dist.new_group([0, 1]) if spec["why"] == "group" else None
    if group is not None and dist.get_rank() > 1:
        return
    try:
        iter(loader.stateful(group=group))
    except sk.errors.NotResumable as error:
        note(str(error), [rank])


TASKS = {"meshes": meshes, "peers": peers, "checkpoints": checkpoints, "refused": refused}


def live(spec: dict[str, Any]) -> None:
    """Be one process of a run."""
    dist.init_process_group("gloo")
    TASKS[spec["task"]](spec, Log(spec["log"]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    serve(live)
