"""TRL's SFTTrainer on a seekable stream goes on from its checkpoints, batch for batch."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.streams.token_streams import stream_of

import seekable as sk

pytest.importorskip("trl", reason="TRL is not installed")

import transformers
import trl

from seekable.integrations.trl import SFTTrainerMixin

if TYPE_CHECKING:
    from pathlib import Path

    import torch

BATCH, STEPS = 4, 7


def tokens(sequence: dict[str, Any]) -> dict[str, Any]:
    """Return a packed sequence as TRL takes it."""
    return {"input_ids": sequence["tokens"] % 64, "labels": sequence["tokens"] % 64}


class Logged(SFTTrainerMixin, trl.SFTTrainer):  # type: ignore[misc]
    """Keeps what it is given."""

    def training_step(self, model: Any, inputs: Any, *rest: Any) -> torch.Tensor:
        self.seen.append(inputs["input_ids"].tolist())
        loss: torch.Tensor = super().training_step(model, inputs, *rest)
        return loss


def tokenizer() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{number}": number for number in range(62)} | {"<unk>": 62, "<eos>": 63}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    kind: Any = transformers.PreTrainedTokenizerFast
    return kind(tokenizer_object=model, eos_token="<eos>", pad_token="<eos>", unk_token="<unk>")


def train(folder: Path, steps: int, data: Any, *, resume: bool = False, **given: Any) -> list[list[int]]:
    """Train a tiny model, and return what it was given."""
    shape: dict[str, Any] = {"n_layer": 1, "n_embd": 8, "n_head": 1, "n_positions": 16, "vocab_size": 64}
    arguments = trl.SFTConfig(
        str(folder),
        per_device_train_batch_size=BATCH,
        max_steps=steps,
        save_steps=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        **given,
    )
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    trainer = Logged(model, arguments, train_dataset=data, processing_class=tokenizer())
    trainer.seen = []
    trainer.train(resume_from_checkpoint=resume)
    seen: list[list[int]] = trainer.seen
    return seen


@pytest.mark.filterwarnings("ignore")
def test_a_stream_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    data = stream_of(lanes=4).map(tokens)
    first = train(tmp_path, 4, data)
    rest = train(tmp_path, STEPS, data, resume=True)
    wanted = sk.Loader(data, batch_size=BATCH, steps=STEPS, collate=list)
    assert first + rest == [[each["input_ids"].tolist() for each in batch] for batch in wanted]


@pytest.mark.filterwarnings("ignore")
def test_what_trl_would_do_before_the_first_step_is_refused(tmp_path: Path) -> None:
    data = stream_of(lanes=4)
    with pytest.raises(sk.errors.InvalidArgument, match="records must be dicts with 'input_ids'"):
        train(tmp_path, 1, data)
    with pytest.raises(sk.errors.InvalidArgument, match="pack in the pipeline"):
        train(tmp_path, 1, data.map(tokens), packing=True)
    with pytest.raises(sk.errors.WrongType, match="train_dataset must be a seekable dataset or stream"):
        train(tmp_path, 1, [1, 2])
    assert [*itertools.chain(tmp_path.glob("checkpoint-*"))] == []
