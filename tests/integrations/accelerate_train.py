"""Lives of a training loop with Accelerate that logs which records it is given."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch._dynamo  # each optimizer imports it, which takes a second: once for all lives
from accelerate import Accelerator
from tests.integrations.lives import Log, die, serve
from tests.integrations.records import loader_of

import seekable as sk


def live(spec: dict[str, Any]) -> None:
    """Train for one life."""
    note = Log(spec["log"])
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rank, world_size = sk.distributed()
    loader = loader_of(rank=rank, world_size=world_size, **spec.get("loader", {}))
    if spec.get("prepare"):
        model, optimizer, prepared = accelerator.prepare(model, optimizer, loader)
        assert prepared is loader
    else:
        model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(loader)
    if os.path.isdir(spec["folder"]):
        accelerator.load_state(spec["folder"])
    while loader.epoch < spec["epochs"]:
        for batch in loader:
            with accelerator.accumulate(model):
                note("train", batch)
                inputs = torch.as_tensor(batch, dtype=torch.float32, device=accelerator.device)[:, None]
                accelerator.backward(model(inputs / 100).square().mean())
                optimizer.step()
                optimizer.zero_grad()
            if loader.step in spec["save_at"]:
                accelerator.save_state(spec["folder"])
            if loader.step == spec.get("die_at"):
                die()


if __name__ == "__main__":
    serve(live)
