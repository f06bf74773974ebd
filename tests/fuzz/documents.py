"""Damage of states, of folders of states, and of pipeline files: they give what was saved, or are refused."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from tests.fuzz.formats import damage

import seekable as sk
from seekable.errors import SeekableError
from seekable.testing.resume import same

if TYPE_CHECKING:
    import random
    from pathlib import Path

VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 7, 2**63, 2**64, 0.5, "", "x", [], [0], {}, {"0": 1})
"""What a field of a document is changed to."""


def odd(number: int) -> bool:
    return number % 2 == 1


def pipelines() -> list[sk.Dataset | sk.Stream]:
    numbers = sk.from_sequence(range(60), version=1)
    mixed = sk.mix([numbers.shuffle(seed=1), numbers.shuffle(seed=2)], weights=[2, 1], seed=3).take(90)
    rows = sk.from_sequence([{"tokens": list(range(row % 7))} for row in range(40)], version=2)
    return [
        numbers.shuffle(seed=1),
        mixed,
        numbers.stream(lanes=2, epochs=2).filter(odd),
        rows.pack(8, seed=1),
    ]


def loader_of(pipeline: sk.Dataset | sk.Stream) -> sk.Loader:
    epochs = None if isinstance(pipeline, sk.Stream) else 2
    return sk.Loader(pipeline, batch_size=4, collate=list, prefetch=0, epochs=epochs)


def begun(pipeline: sk.Dataset | sk.Stream, rng: random.Random) -> tuple[sk.Loader, list[Any]]:
    """Return a loader that has delivered some batches, and those that follow."""
    loader = loader_of(pipeline)
    batches = iter(loader)
    for _ in range(rng.randrange(8)):
        next(batches)
    rest = loader_of(pipeline)
    rest.load_state_dict(loader.state_dict())
    return loader, [batch for _ in range(2) for batch in rest]


def following(loader: sk.Loader) -> list[Any]:
    return [batch for _ in range(2) for batch in loader]


def changed(rng: random.Random, document: Any) -> Any:
    """Return a document with one value changed or left out, at any depth."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.2:
        return rng.choice(VALUES)
    copied: Any = dict(document) if isinstance(document, dict) else list(document)
    at = rng.choice(list(copied) if isinstance(copied, dict) else range(len(copied)))
    if rng.random() < 0.2:
        del copied[at]
    else:
        copied[at] = changed(rng, copied[at])
    return copied


def states(_: Path, rng: random.Random) -> None:
    """Change a value of a state: the rest of the run comes, or the state is refused."""
    pipeline = rng.choice(pipelines())
    loader, rest = begun(pipeline, rng)
    state = changed(rng, json.loads(json.dumps(loader.state_dict())))
    if state == {}:  # stands for no state
        return
    again = loader_of(pipeline)
    try:
        again.load_state_dict(state)
        found = following(again)
    except SeekableError:
        return
    assert same(found, rest), state


def saved_states(folder: Path, rng: random.Random) -> None:
    """Damage a file of a folder of states: the newest whole state is loaded, or the folder is refused."""
    pipeline = rng.choice(pipelines())
    rests = [loader_of(pipeline)]
    allowed = [following(rests[0])]
    for _ in range(2):
        loader, rest = begun(pipeline, rng)
        sk.save_state(folder, loader)
        allowed.append(rest)
    path = damage(rng, [path for path in folder.rglob("*") if path.is_file()])
    again = loader_of(pipeline)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sk.load_state(folder, again)
            found = following(again)
    except SeekableError:
        return
    assert any(same(found, rest) for rest in allowed), path.name


def pipeline_files(folder: Path, rng: random.Random) -> None:
    """Damage a pipeline file: it gives the same pipeline, or is refused."""
    (folder / "a.txt").write_text("".join(f"line {row}\n" for row in range(30)))
    lines = sk.open(folder / "a.txt", index=sk.Index(jobs=1))
    saved = sk.mix(
        [lines.shuffle(seed=4), lines.split({"a": 0.5, "b": 0.5}, seed=1)["a"]], weights=[1, 2], seed=3
    )
    path = folder / "pipeline.json"
    saved.take(50).save(path)
    right = list(saved.take(50))
    if rng.random() < 0.5:
        damage(rng, [path])
    else:
        path.write_text(json.dumps(changed(rng, json.loads(path.read_text()))))
    try:
        found = list(sk.load_pipeline(path))
    except SeekableError:
        return
    assert found == right, path.read_text(errors="replace")
