"""The nodes of the corpus: for each kind pipelines whose arguments are not the defaults."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.corpus import functions
from tests.corpus.formats import CSV
from tests.corpus.formats import FOLDER as DATA
from tests.corpus.functions import SEQUENCES
from tests.corpus.held import FORMER, plain, relative
from tests.formats.tokens.token_formats import BOS

import seekable as sk
from seekable.dataset.pipeline.pipeline_file import indented
from seekable.packing.nodes.blend import MegatronBlend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Builder = Callable[["Parts"], sk.Dataset]

FOLDER = "nodes"

_BATCHES = 2
"""The number of batches before the state, and of those after it."""


@dataclass(frozen=True)
class Parts:
    """What pipelines are built over: the data of formats in the unpacked corpus, and sequences."""

    root: Path

    @functools.cached_property
    def lines(self) -> sk.Dataset:
        return self.open("jsonl/*.jsonl", key="id")

    @functools.cached_property
    def tables(self) -> sk.Dataset:
        return self.open("parquet", storage=sk.Storage(max_open_files=1))

    @functools.cached_property
    def tokens(self) -> sk.Dataset:
        return sk.open(f"megatron:{self.root}/{DATA}/tokens-megatron/a")

    def open(self, path: str, **options: Any) -> sk.Dataset:
        return sk.open(f"{self.root}/{DATA}/{path}", **options)

    def kept(self, name: str) -> Path:
        """Return the path of a file of rows that a node keeps."""
        return self.root / FOLDER / "kept" / f"{name}.u64"


@functools.cache
def sequence(name: str) -> sk.Dataset:
    return sk.from_sequence(SEQUENCES[name], version=name)


NUMBERS, OTHERS, DOCUMENTS = (sequence(name) for name in ("numbers", "others", "documents"))


def _blocks() -> sk.Dataset:
    return sk.concat([NUMBERS[:5], NUMBERS[5:8], NUMBERS[8:], OTHERS])


def _siblings(parts: Parts) -> sk.Dataset:
    folder = f"{parts.root}/{DATA}/siblings"
    return sk.open(
        {"image": f"{folder}/a/*.tar", "caption": f"{folder}/b/*.tar"},
        format=sk.formats.Tar(suffix={"caption": "_b"}),
    )


NODES: dict[str, list[Builder]] = {
    "alias": [lambda parts: parts.lines.rename({"text": "body"}, keep=True)],
    "batch": [lambda _: NUMBERS.shuffle(seed=5).batch(3)],
    "continued": [lambda _: NUMBERS.shuffle(seed=7), lambda parts: parts.lines.shuffle(2, window=1, lanes=2)],
    "cast": [lambda parts: parts.tables.cast({"id": "float32", "text": str})],
    "computed": [
        lambda parts: parts.lines.map_batches(functions.lengths, size=4, column="length", version=2)
    ],
    "concat": [lambda parts: sk.concat([parts.lines, parts.tables.shuffle(seed=1)])],
    "described": [lambda _: NUMBERS],
    "described_map": [lambda _: NUMBERS.map(functions.doubled)],
    "drop_columns": [lambda parts: parts.tables.drop_columns(["text"])],
    "epoch": [lambda _: NUMBERS.shuffle(seed=5).epoch(2)],
    "exact_split": [lambda _: NUMBERS.split({"a": 3, "b": None, "c": 4}, seed=6)["c"]],
    "files": [
        lambda parts: parts.open("jsonl/*.jsonl", key=functions.key_of, version=1, errors=functions.replaced),
        lambda parts: parts.open(
            "text", decode=functions.read_line, version=3, storage=sk.Storage(max_open_files=1)
        ),
        lambda parts: parts.open("csv-options/a.txt", **CSV),
        lambda parts: sk.open(f"ark:{parts.root}/{DATA}/ark/*.ark", format=sk.formats.Kaldi(holder="matrix")),
        lambda parts: sk.open(f"txt:{parts.root}/{DATA}/text/*.txt:line"),
        lambda parts: parts.open("jsonl-blocks"),
    ],
    "fill": [lambda parts: parts.lines.fill({"text": "none", "more": [1, b"\x00"]})],
    "filter": [
        lambda parts: NUMBERS.filter(functions.is_odd, save=parts.kept("odd"), version=1, jobs=1),
        lambda parts: parts.tables.filter(where=[("id", ">=", 2), ("text", "!=", "text 5")]),
        lambda parts: parts.lines.filter(files="*1.jsonl"),
        lambda _: NUMBERS.filter(functions.is_odd, limit=3, jobs=1),
        lambda _: NUMBERS.split({"a": 0.5, "b": 0.5}, seed=6, by=functions.is_odd)["a"],
        lambda parts: parts.open("hive", format=sk.formats.Tables(partitions="hive")).filter(
            where=[("year", "==", 2025)]
        ),
        lambda parts: parts.open("arrow/a.arrow").filter(where=[("id", "<", 9)]),
    ],
    "flatten": [
        lambda parts: NUMBERS.flatten(functions.twice, save=parts.kept("twice"), version=4, jobs=1),
    ],
    "interleave": [lambda _: NUMBERS.shuffle(seed=5).interleave(lanes=5)],
    "join": [
        lambda parts: sk.join(parts.tables, sequence("right"), on="id", how="left", duplicates="all", jobs=1),
        lambda parts: sk.join(parts.lines, parts.tables.rename({"text": "body"})[:11], on="id", jobs=1),
    ],
    "map": [
        lambda _: NUMBERS.map(functions.drawn, rng=True, seed=4, version="b"),
        lambda _: NUMBERS.map(functions.SCALED).map(functions.doubled),
    ],
    "map_batches": [lambda _: NUMBERS.map_batches(functions.all_doubled, size=5, version=7)],
    "map_columns": [
        lambda parts: parts.lines.rename({"a1*": {"text": "body"}, "*": {"id": "n"}}, missing="none"),
    ],
    "megatron_blend": [
        lambda _: sk.Dataset(MegatronBlend((NUMBERS.shuffle(seed=5)._node, OTHERS._node), (0.7, 0.3), 10)),
        lambda _: sk.Dataset(MegatronBlend((NUMBERS._node, OTHERS._node), None, 21)),
    ],
    "mix": [
        lambda parts: sk.mix(
            {"a": parts.lines.shuffle(1), "b": parts.tables},
            weights={"a": 0.75, "b": 0.25},
            seed=3,
            stop="all",
        ),
        lambda _: sk.mix([NUMBERS.shuffle(1), OTHERS], weights=[(0, [2, 1]), (5, [1, 3])], seed=8),
        lambda _: sk.mix(
            [_blocks().shuffle(1, window=2, lanes=4), OTHERS.interleave(lanes=2)], weights=[2, 1], seed=3
        ),
        lambda _: sk.mix([NUMBERS, OTHERS], weights=[1, 1], seed=2, stop="never"),
    ],
    "pack": [
        lambda parts: parts.tokens.pack(
            7, seed=3, method=sk.Packing(order="table", positions="document"), jobs=1
        ),
        lambda _: DOCUMENTS.pack(
            4, seed=3, method=sk.Packing(order="exchange"), labels="within", align=["mask"], jobs=1
        ),
        lambda _: DOCUMENTS.pack(4, seed=3, fim=sk.Fim(0, 1, 2, 3), jobs=1),
        lambda _: DOCUMENTS.pack(
            5, seed=3, method=sk.Packing("best_fit", most=2, long="truncate", pad=-1), jobs=1
        ),
        lambda _: DOCUMENTS.pack(
            4, seed=3, method=sk.Packing(order="megatron", samples=9), next_token=True, jobs=1
        ),
    ],
    "partitions": [lambda parts: parts.open("hive", format=sk.formats.Tables(partitions="hive"))],
    "rename": [lambda parts: parts.tables.rename({"text": "body", "more": "less"}, missing="none")],
    "repeat": [lambda _: NUMBERS.shuffle(seed=5).repeat(3)],
    "sample": [lambda _: NUMBERS.sample(8, seed=9)],
    "samples": [
        lambda parts: parts.open(
            "tar", columns=["txt", "__key__"], format=sk.formats.Tar(missing="none", splitname="last")
        ),
        lambda parts: parts.open(
            "tar-key", format=sk.formats.Tar(group="key"), decode={"txt": "text", "jpg": functions.read_line}
        ),
    ],
    "select": [
        lambda _: NUMBERS.shuffle(seed=5).select([7, 0, 3, 7, 11, 2, 2]),
        lambda _: NUMBERS.repeat(10).select(range(0, 100, 1)),
        lambda parts: sk.open(f"energon:{parts.root}/{DATA}/energon:train"),
    ],
    "select_columns": [lambda parts: parts.tables.select_columns(["more", "id"], missing="none")],
    "sequence": [lambda _: OTHERS],
    "shar": [lambda parts: parts.open("shar", columns=["recording"])],
    "shuffle": [lambda _: NUMBERS.shuffle(5, fixed=True), lambda parts: parts.lines.shuffle(2**64 - 1)],
    "siblings": [_siblings],
    "slice": [lambda _: NUMBERS.shuffle(seed=5)[10:2:-2], lambda parts: parts.tables.skip(3)],
    "sorted": [
        lambda parts: parts.tables.sort("text", reverse=True, save=parts.kept("order"), version=5, jobs=1),
        lambda _: NUMBERS.sort(functions.remainder, jobs=1),
    ],
    "source_column": [lambda parts: parts.lines.shuffle(3).source_column("file", row="row", relative=True)],
    "split": [
        lambda _: NUMBERS.split({"train": 0.8, "test": 0.2}, seed=6, stable=True)["train"],
    ],
    "table": [
        lambda parts: parts.open("parquet/a.parquet", columns=["text"], decode="numpy", key="text"),
        lambda parts: parts.open("hive", format=sk.formats.Tables(strict=True)),
        lambda parts: parts.open("saved-by-datasets"),
    ],
    "tokens": [
        lambda parts: sk.open(
            f"tokens:{parts.root}/{DATA}/tokens-llm-c/a.bin", format=sk.formats.Tokens(bos=BOS)
        ),
        lambda parts: parts.open("token-store"),
    ],
    "unify_columns": [
        lambda parts: sk.concat([parts.lines, parts.tables], columns="union").rename(
            {"*": {"text": "body"}}, missing="none", columns="union"
        ),
    ],
    "windowed_shuffle": [
        lambda _: _blocks().shuffle(5, window=3, lanes=2, fixed=True),
        lambda parts: parts.lines.shuffle(5, window=1, lanes=2, block_rows=4),
    ],
    "windows": [lambda parts: parts.tokens.windows(9, next_token=True, jobs=1)],
    "with_holes": [lambda _: NUMBERS.shuffle(seed=5).without([NUMBERS.locate(3)], fill="hole")],
    "without": [lambda _: NUMBERS.shuffle(seed=5).without([NUMBERS.locate(3), NUMBERS.locate(8)])],
    "zip": [lambda parts: sk.zip([parts.lines, parts.tables[:11].shuffle(seed=2)])],
}
"""Pipelines by the kind of their last node; by that of a node that a run over them adds, see `EARLIER`."""

EARLIER: dict[str, Builder] = {
    "continued-0": lambda _: NUMBERS.shuffle(seed=5).map(functions.doubled),
    "continued-1": lambda parts: parts.lines.interleave(lanes=3),
}
"""The pipeline that a run began with, before it went on by rows with another one."""

CASES = {
    f"{kind}-{number}": (kind, build)
    for kind, builders in NODES.items()
    for number, build in enumerate(builders)
}
"""The same by name."""


def pipeline_file(name: str, root: Path) -> Path:
    return root / FOLDER / f"{name}.json"


def pipeline_text(path: Path, root: Path) -> bytes:
    """Return a pipeline file as it would be if all had been in the former folder of the corpus."""
    document = json.loads(relative(path.read_text(encoding="utf-8"), root))
    for folder in _folders(document):
        folder["relative"] = os.path.relpath(folder["folder"], f"{FORMER}/{FOLDER}")
    return indented(document)


def _folders(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of a pipeline file that say where files lie."""
    if isinstance(document, dict):
        if {"folder", "relative"} <= document.keys():
            yield document
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from _folders(part)


def load(name: str, root: Path) -> sk.Dataset:
    """Return the dataset of a pipeline file of the unpacked corpus."""
    path = pipeline_file(name, root)
    return sk.load_pipeline(path, functions=functions.FUNCTIONS, sequences=SEQUENCES)


def loader_of(pipeline: sk.Dataset | sk.Stream) -> sk.Loader:
    return sk.Loader(pipeline, batch_size=2, collate=list, prefetch=0, rank=0, world_size=1)


def batches(loader: sk.Loader) -> list[Any]:
    """Return the next batches as JSON."""
    return [plain(batch) for _, batch in zip(range(_BATCHES), loader, strict=False)]


def known(pipeline: sk.Dataset | sk.Stream, earlier: sk.Dataset | None = None) -> dict[str, Any]:
    """Return what is written down of a run over a pipeline; its states have the description.

    Args:
        pipeline: the pipeline.
        earlier: the one that the run began with, if it went on by rows.
    """
    loader = loader_of(pipeline)
    if earlier is not None:
        begun = loader_of(earlier)
        batches(begun)
        loader.load_state_dict(begun.state_dict(), resume="rows")
    before = batches(loader)
    state = loader.state_dict()
    return {
        "fingerprint": pipeline.fingerprint,
        "before": before,
        "state": state,
        "after": after(pipeline, state, "exact"),
        "after by rows": after(pipeline, state, "rows"),
    }


def after(pipeline: sk.Dataset | sk.Stream, state: dict[str, Any], resume: Any) -> Any:
    """Return the batches that follow a state, or the error that it cannot be loaded so."""
    loader = loader_of(pipeline)
    try:
        loader.load_state_dict(state, resume=resume)
    except sk.SeekableError as error:
        return {"error": type(error).__name__}
    return batches(loader)
