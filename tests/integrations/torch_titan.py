"""Lives of the ranks of a run over the dataloader of torchtitan, with its checkpoints through DCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from tests.integrations.lives import Log, die, serve, stop
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.tokenizer import BaseTokenizer

from seekable.integrations.torchtitan import DataLoaderMixin, text_stream

if TYPE_CHECKING:
    import seekable as sk

SEQUENCES = 12
"""Sequences of a step over all ranks."""


class Tokenizer(BaseTokenizer):  # type: ignore[misc]
    """A token for each number in a text."""

    def encode(self, text: str, *, add_bos: bool, add_eos: bool) -> list[int]:
        return [0] * add_bos + [int(word) for word in text.split()] + [1] * add_eos

    def decode(self, tokens: list[int]) -> str:
        return " ".join(map(str, tokens))

    def get_vocab_size(self) -> int:
        return 100_000


class DataLoader(DataLoaderMixin, BaseDataLoader):  # type: ignore[misc]
    """The dataloader of a run, as docs/howto/llm-trainers.md shows it."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):  # type: ignore[misc]
        seed: int = 0

        def pipeline(self, tokenizer: Any, seq_len: int) -> sk.Stream:
            return text_stream(self.dataset_path, tokenizer, seq_len, seed=self.seed, lanes=12)


def live(spec: dict[str, Any]) -> None:
    """Train for one life, on two processes for each data-parallel rank."""
    dist.init_process_group("gloo")
    note, ranks = Log(spec["log"]), dist.get_world_size() // 2
    config = DataLoader.Config(dataset_path=spec["data"], **spec.get("config", {}))
    loader = config.build(
        dp_world_size=ranks,
        dp_rank=dist.get_rank() // 2,
        tokenizer=Tokenizer(),
        seq_len=8,
        local_batch_size=SEQUENCES // ranks,
        snapshot_every_n_steps=2,
    )
    if "resume" in spec:
        load({"dataloader": loader}, checkpoint_id=spec["resume"])
    for step, (inputs, labels) in zip(range(loader.loader.step + 1, spec["steps"] + 1), loader, strict=False):
        assert inputs["input"].shape == inputs["positions"].shape == labels.shape
        note("train", inputs["input"].flatten())
        if step in spec.get("save_at", ()):
            save({"dataloader": loader}, checkpoint_id=f"{spec['folder']}/{step}")
        if step == spec.get("die_at"):
            die()
        if step == spec.get("stop_at"):
            stop()
    loader.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    serve(live)
