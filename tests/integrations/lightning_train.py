"""Lives of a Lightning training run that logs which records it is given."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import lightning as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.utilities import CombinedLoader
from tests.integrations.lives import Log, die, serve, stop
from tests.integrations.records import loader_of
from tests.loader.streams.token_streams import stream_loader

import seekable as sk


class Loaders:
    """The hooks that a module and a data module have in common."""

    spec: dict[str, Any]

    def train_dataloader(self) -> Any:
        rank, world_size = sk.distributed()
        if "stream" in self.spec:
            stream = stream_loader(rank, world_size, **self.spec["stream"])
            return stream if self.spec.get("bare") else stream.stateful()
        loader = loader_of(rank=rank, world_size=world_size, **self.spec.get("loader", {}))
        if "short" in self.spec:
            both = {"long": loader, "short": loader_of(**self.spec["short"])}
            return CombinedLoader(both, self.spec["mode"]) if "mode" in self.spec else both
        return loader

    def val_dataloader(self) -> Any:
        if "val" not in self.spec:
            return []
        return sk.Loader(sk.from_sequence(range(1000, 1010)), batch_size=3, **self.spec["val"])


class Model(pl.LightningModule):
    """One parameter, and a log."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        self.spec = spec
        self.layer = torch.nn.Linear(1, 1)
        self.note = Log(spec["log"])
        self.seen = 0

    def training_step(self, batch: Any) -> torch.Tensor:
        if isinstance(batch, dict):
            if batch["short"] is not None:  # as it is where the mode goes on without the shorter one
                self.note("short", batch["short"])
            batch = batch["long"]
        self.note("train", batch)
        self.seen += 1
        inputs = torch.as_tensor(batch, dtype=torch.float32)[:, None] / 100
        result: torch.Tensor = self.layer(inputs).square().mean()
        return result

    def on_train_batch_end(self, *_: Any) -> None:
        if self.seen == self.spec.get("die_after"):
            die()
        if self.seen == self.spec.get("stop_after"):
            stop()

    def validation_step(self, batch: Any) -> None:
        self.note("val", batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.001)


class Whole(Loaders, Model):
    """Has the loaders itself."""


class Data(Loaders, pl.LightningDataModule):
    """Has the loaders, for a model that has none."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__()
        self.spec = spec


def live(spec: dict[str, Any]) -> None:
    """Train for one life."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    saver = ModelCheckpoint(dirpath=spec["folder"], save_top_k=-1, save_last=True, **spec.get("saver", {}))
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[saver],
        **spec.get("trainer", {}),
    )
    apart = spec.get("data_module")
    trainer.fit(
        Model(spec) if apart else Whole(spec),
        datamodule=Data(spec) if apart else None,
        ckpt_path=spec.get("resume"),
    )
    if spec.get("save_at_end"):
        trainer.save_checkpoint(f"{spec['folder']}/end.ckpt")


if __name__ == "__main__":
    serve(live)
