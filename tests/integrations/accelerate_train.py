"""Lives of a training loop with Accelerate that logs which records it is given."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch._dynamo  # each optimizer imports it, which takes a second: once for all lives
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from tests.integrations.lives import Log, die, serve, stop
from tests.integrations.records import dataset_of, loader_of
from tests.loader.streams.token_streams import stream_loader
from torch.utils.data import DataLoader

import seekable as sk
from seekable.integrations.torch import BatchSampler


class Steps:
    """Counts the optimizer steps of all lives, in the checkpoints of Accelerate."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]


def live_stateful(spec: dict[str, Any], note: Log) -> None:
    """Train for one life over a StatefulDataLoader that Accelerate makes."""
    configuration = DataLoaderConfiguration(use_stateful_dataloader=True)
    accelerator = Accelerator(cpu=True, dataloader_config=configuration)
    data: Any = dataset_of()
    sampler = BatchSampler(data, batch_size=4)
    plain: Any = DataLoader(data, batch_sampler=sampler, collate_fn=torch.tensor, num_workers=spec["workers"])
    loader, steps = accelerator.prepare(plain), Steps()
    accelerator.register_for_checkpointing(steps)
    if os.path.isdir(spec["folder"]):
        accelerator.load_state(spec["folder"])
        loader.set_epoch(steps.count // len(loader))
    while steps.count < spec["steps"]:
        for batch in loader:
            note("train", batch)
            steps.count += 1
            if steps.count in spec["save_at"]:
                accelerator.save_state(spec["folder"])
            if steps.count == spec.get("die_at"):
                die()


def live_stream(spec: dict[str, Any], note: Log) -> None:
    """Deliver a stream for one life; each rank has its own lanes."""
    accelerator = Accelerator(cpu=True)
    rank, world_size = sk.distributed()
    loader = stream_loader(rank, world_size, steps=spec["steps"])
    saved = loader.stateful()
    accelerator.register_for_checkpointing(saved)
    if os.path.isdir(spec["folder"]):
        accelerator.load_state(spec["folder"])
    for batch in saved:
        note("train", batch)
        if loader.step in spec["save_at"]:
            accelerator.save_state(spec["folder"])
        if loader.step == spec.get("die_at"):
            die()
        if loader.step == spec.get("stop_at"):
            stop()


def live(spec: dict[str, Any]) -> None:
    """Train for one life."""
    note = Log(spec["log"])
    if spec.get("stream"):
        live_stream(spec, note)
        return
    if "workers" in spec:
        live_stateful(spec, note)
        return
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
