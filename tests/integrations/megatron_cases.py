"""Random blends of documents, as pairs of files and as datasets, and the arguments of Megatron's builder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import seekable as sk
from seekable.packing.order.megatron_order import split_bounds

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class BlendCase:
    """One configuration of Megatron's builder, and the documents of each of its sources."""

    documents: list[list[list[int]]]
    length: int
    extra: bool
    seed: int
    pad: int | None
    weights: list[float] | None
    samples: list[int | None]
    split: str
    per_split: bool
    keep_last: bool
    options: dict[str, bool] = field(default_factory=dict)

    def ours(self, sources: list[Any]) -> dict[str, Any]:
        """Return the arguments of ``gpt_datasets``."""
        blend = (sources, self.weights)
        which = (
            {"blend": [blend] * 3, "split": None} if self.per_split else {"blend": blend, "split": self.split}
        )
        return {
            **which,
            "sequence_length": self.length,
            "seed": self.seed,
            "samples": self.samples,
            "drop_last_partial_validation": not self.keep_last,
            **self.items(),
        }

    def items(self) -> dict[str, Any]:
        """Return the arguments of ``gpt_datasets`` and ``from_cache`` alike."""
        return {"add_extra_token": self.extra, "eod": 0, "pad": self.pad, **self.options}

    def never_returns(self) -> bool:
        """Return True if Megatron would add 0 tokens for ever: samples of a part without tokens."""
        for documents in self.documents:
            lengths = [len(document) for document in documents]
            bounds = [(0, len(lengths))] * 3
            if not self.per_split:
                bounds = split_bounds([float(share) for share in self.split.split(",")], len(lengths))
            for (start, stop), wanted in zip(bounds, self.samples, strict=True):
                is_sized = self.weights is not None or len(self.documents) == 1
                if is_sized and wanted is not None and not sum(lengths[start:stop]):
                    return True
        return False


def random_case(number: int) -> BlendCase:
    # Its numbers never change, and recorded digests stand for them.
    rng = np.random.RandomState(number)
    sources = 1 if rng.random_sample() < 0.3 else int(rng.randint(2, 21))
    shortest = int(rng.randint(0, 2))
    documents = [[_document(rng, shortest) for _ in range(int(rng.randint(6, 40)))] for _ in range(sources)]
    extra, keep_last = bool(rng.random_sample() < 0.7), bool(rng.random_sample() < 0.3)
    pad = None if rng.random_sample() < 0.5 else int(rng.choice([0, 7]))
    weights = None if rng.random_sample() < 0.4 else (rng.random_sample(sources) + 0.05).tolist()
    samples = [
        None if weights is None and rng.random_sample() < 0.5 else int(rng.randint(1, 150)) for _ in range(3)
    ]
    # A GPTDataset that keeps masks for all items masks the pads of its first item in all of them.
    masked = bool(keep_last or pad or rng.random_sample() < 0.5)
    return BlendCase(
        documents=documents,
        length=int(rng.randint(1, 9)),
        extra=extra,
        seed=int(rng.randint(0, 2**32, dtype=np.uint32)),
        pad=pad,
        weights=weights,
        samples=samples,
        split="60,30,10" if rng.random_sample() < 0.7 else "1,1,1",
        per_split=bool(rng.random_sample() < 0.2),
        keep_last=keep_last,
        options={"reset_position_ids": bool(rng.random_sample() < 0.5), "eod_mask_loss": masked},
    )


def _document(rng: np.random.RandomState, shortest: int) -> list[int]:
    tokens: list[int] = rng.randint(1, 30, rng.randint(shortest, int(rng.choice([3, 8, 30])))).tolist()
    return [*tokens, 0] if rng.random_sample() < 0.7 else tokens


def as_dataset(documents: list[list[int]]) -> sk.Dataset:
    return sk.from_sequence([{"tokens": np.array(tokens, dtype=np.uint16)} for tokens in documents])


def write_pair(prefix: Path, documents: list[list[int]]) -> str:
    """Write the pair of files of some documents by hand, uint16, and return its prefix."""
    lengths = np.array([len(tokens) for tokens in documents], dtype="<i4")
    begins = (np.cumsum(lengths) - lengths).astype("<i8") * 2
    ends = np.arange(len(documents) + 1, dtype="<i8")
    header = b"MMIDIDX\x00\x00" + (1).to_bytes(8, "little") + b"\x08"
    counts = len(documents).to_bytes(8, "little") + len(ends).to_bytes(8, "little")
    index = header + counts + lengths.tobytes() + begins.tobytes() + ends.tobytes()
    prefix.with_name(f"{prefix.name}.idx").write_bytes(index)
    tokens = np.array([token for document in documents for token in document], dtype="<u2")
    prefix.with_name(f"{prefix.name}.bin").write_bytes(tokens.tobytes())
    return str(prefix)


def equal_items(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compare two items: names, values and types."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one
    )
