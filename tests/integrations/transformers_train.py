"""Lives of a run of Hugging Face's Trainer that logs which records it is given."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo  # each optimizer imports it, which takes a second: once for all lives
from accelerate import ParallelismConfig
from tests.integrations.lives import Log, die, serve, stop
from tests.integrations.records import dataset_of
from tests.loader.streams.token_streams import stream_of
from transformers import TrainingArguments

import seekable as sk
from seekable.integrations.transformers import Trainer


class Model(torch.nn.Module):
    """Two parameters."""

    tp_size: int | None = None
    """On how many processes Accelerate thinks that the parameters lie."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, number: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.layer(number.reshape(-1, 1) / 100).square().mean()}


class Logged(Trainer):
    """Notes what it is given, and dies after some of it."""

    note: Log
    die_after: int | None
    stop_after: int | None
    seen = 0

    def training_step(self, model: Any, inputs: Any, *rest: Any) -> torch.Tensor:
        self.note("train", inputs["number"].flatten())
        self.seen += 1
        loss: torch.Tensor = super().training_step(model, inputs, *rest)
        return loss

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        super()._maybe_log_save_evaluate(*args, **kwargs)
        if self.die_after is not None and self.seen >= self.die_after:
            die()
        if self.stop_after is not None and self.seen >= self.stop_after:
            stop()

    def prediction_step(self, model: Any, inputs: Any, *rest: Any, **kwargs: Any) -> Any:
        self.note("val", inputs["number"])
        return super().prediction_step(model, inputs, *rest, **kwargs)


def floats(sequence: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens of a sequence as the model takes them."""
    return {"number": sequence["tokens"].astype("float32")}


def live(spec: dict[str, Any]) -> None:
    """Train for one life."""
    mesh, model = spec.get("mesh"), Model()
    if mesh:
        # Accelerate makes meshes of all processes, and refuses those of CPUs, where it shards no model.
        ParallelismConfig._validate_accelerator = lambda *_: None
        spec["arguments"]["parallelism_config"] = ParallelismConfig(**mesh)
    arguments = TrainingArguments(
        output_dir=spec["folder"],
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **{"per_device_train_batch_size": 4, "save_strategy": "steps", **spec.get("arguments", {})},
    )
    reads = Log(spec["log"])

    def read(number: int) -> dict[str, Any]:
        if spec.get("log_reads"):
            reads("read", [number])
        return {"number": float(number), "unused": "x"}

    held_out = sk.from_sequence([{"number": float(number)} for number in range(1000, 1010)])
    data: Any = dataset_of(**spec.get("data", {})).map(read)
    if "stream" in spec:
        data = stream_of(**spec["stream"]).map(floats)
    trainer = Logged(model, arguments, train_dataset=data, eval_dataset=held_out)
    if mesh:
        model.tp_size = mesh["tp_size"]
    if "autotp" in spec:
        model._tp_size = spec["autotp"]
    trainer.note, trainer.die_after = Log(spec["log"]), spec.get("die_after")
    trainer.stop_after = spec.get("stop_after")
    trainer.train(resume_from_checkpoint=spec.get("resume"))
    trainer.note("done", [trainer.state.global_step, round(100 * trainer.state.epoch)])


if __name__ == "__main__":
    serve(live)
