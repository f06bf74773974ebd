"""The saved states of the corpus: folders of ``sk.save_state``, of one rank and of several; checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.corpus import functions
from tests.corpus.held import plain
from tests.corpus.nodes import DOCUMENTS, NUMBERS, Parts

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDER = "saved"

_STEPS = 2


def _mixture(parts: Parts) -> sk.Dataset:
    """Mix lines and tables by a schedule, below rows that a file keeps."""
    even = parts.lines.map(dict, version=1).shuffle(seed=1)
    ordered = parts.tables.sort("text", reverse=True, save=parts.kept("order"), version=5, jobs=1)
    return sk.mix({"a": even, "b": ordered}, weights=[(0, {"a": 2, "b": 1}), (7, {"a": 1, "b": 1})], seed=4)


def _packed(_: Parts) -> sk.Stream:
    return (
        DOCUMENTS.stream(lanes=6)
        .shuffle(buffer=3, seed=2)
        .pack(5, key="tokens", align=["mask"], method="best_fit", bins=2)
    )


RUNS: dict[str, tuple[Callable[[Parts], sk.Dataset | sk.Stream], int]] = {
    "dataset": (_mixture, 1),
    "dataset-of-2": (_mixture, 2),
    "stream": (_packed, 1),
    "stream-of-3": (_packed, 3),
}
"""What is delivered, and to how many ranks, by the name of the folder."""


def loader_of(pipeline: sk.Dataset | sk.Stream, rank: int, ranks: int) -> sk.Loader:
    return sk.Loader(
        pipeline, global_batch_size=6, collate=list, prefetch=0, rank=rank, world_size=ranks, steps=20
    )


def save(name: str, root: Path) -> None:
    """Save the states of all ranks after two steps, and after one more."""
    build, ranks = RUNS[name]
    pipeline = build(Parts(root))
    loaders = [loader_of(pipeline, rank, ranks) for rank in range(ranks)]
    runs = [iter(loader) for loader in loaders]
    for steps in (_STEPS, 1):
        for loader, run in zip(loaders, runs, strict=True):
            for _ in range(steps):
                next(run)
            sk.save_state(root / FOLDER / name, loader)


def loaded(name: str, root: Path, resume: Any = "exact") -> list[sk.Loader]:
    """Return loaders of all ranks that have the saved state."""
    build, ranks = RUNS[name]
    pipeline = build(Parts(root))
    loaders = [loader_of(pipeline, rank, ranks) for rank in range(ranks)]
    for loader in loaders:
        assert sk.load_state(root / FOLDER / name, loader, resume=resume)
    return loaders


def known(name: str, root: Path) -> dict[str, Any]:
    """Return what follows the newest saved state on each rank."""
    found: dict[str, Any] = {"ranks": RUNS[name][1]}
    for resume in ("exact", "rows"):
        loaders = loaded(name, root, resume)
        found[f"sources {resume}"] = loaders[0].sources()
        found[f"after {resume}"] = [
            [plain(batch) for _, batch in zip(range(_STEPS), loader, strict=False)] for loader in loaders
        ]
    return found


def checkpoint(root: Path) -> dict[str, Any]:
    """Return checkpoints of other libraries' forms, and what follows them."""
    ds = sk.concat([NUMBERS.map(functions.doubled), sk.open(f"{root}/formats/text/*.txt")])
    loader = loader_of(ds, 0, 1)
    first = next(iter(loader))
    found: dict[str, Any] = {"first": plain(first)}
    for name, document in (
        ("sample_index", {"sample_index": 6}),
        ("resume_state", loader.resume_state()),
    ):
        again = loader_of(ds, 0, 1)
        again.load_state_dict(document)
        found[name] = document
        found[f"after {name}"] = plain(next(iter(again)))
    return found
