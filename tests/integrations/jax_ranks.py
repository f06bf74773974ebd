"""One of several JAX processes: `jax_ranks.py DATA STATES STEPS PROCESS PROCESSES PORT`.

Each has two devices. It goes on at the saved state, makes some steps, saves, and prints a line a step.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

import seekable as sk

TRACED: list[int] = []


def numbers(record: dict[str, Any]) -> dict[str, Any]:
    return {"id": np.int32(record["id"]), "tokens": np.full(3, record["id"], dtype=np.int32)}


@jax.jit
def total(batch: Any) -> Any:
    TRACED.append(1)
    return batch["tokens"].sum()


def main(data: str, states: str, steps: int) -> None:
    loader = sk.Loader(
        sk.open(f"{data}/*.jsonl").shuffle(seed=1).map(numbers),
        global_batch_size=16,
        rank=jax.process_index(),
        world_size=jax.process_count(),
        end="drop",
    )
    sk.load_state(states, loader)
    sharding = NamedSharding(jax.make_mesh((jax.device_count(),), ("data",)), PartitionSpec("data"))
    for local in itertools.islice(loader, steps):
        batch = {name: jax.make_array_from_process_local_data(sharding, part) for name, part in local.items()}
        here = [shard.data.tolist() for shard in batch["id"].addressable_shards]
        ids = multihost_utils.process_allgather(batch["id"], tiled=True)
        said = {"ids": ids.tolist(), "here": here, "total": int(total(batch)), "shape": batch["tokens"].shape}
        sys.stdout.write(json.dumps({**said, "traced": len(TRACED)}) + "\n")
        sk.save_state(states, loader)


if __name__ == "__main__":
    folder, saved, count, process, processes, port = sys.argv[1:]
    if processes != "1":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"localhost:{port}", num_processes=int(processes), process_id=int(process))
    main(folder, saved, int(count))
