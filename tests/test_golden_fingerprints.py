"""Golden fingerprints of pipelines over files that this test makes.

CHANGING ONE IS A BREAKING CHANGE: no saved state and no pipeline file of an older release would load.
They stand here as literals, so that writing tests/corpus anew cannot hide a change.
"""

from __future__ import annotations

import base64
import functools
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.format_cases import write_tar
from tests.formats.shar.shar_folders import write_shar
from tests.nodes.token_data import write_pair

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PARQUET = (
    "c-nQ4&kBM-5XQ$%h7Mh4alwNZmkNsv>g1(k&_Q|wHKBsa)c!nIZ_t}Ht45~=X1-zgeY3;Ht8GX?5k&zZH%RCLfZ#;Sf;L2_y"
    "-t}M)A)}eF(ox6BU?oaaInhu`6(eA$o7RJ4m+R$H+G#rYaceoFHyNF(BQJiM^J_$p2}3Fy1#bGJSrd>q0)eCFzBE~n>`I2%U"
    "B<OFfaY$@?}ZXeHIvcMN(dGc|FOBVv>~Q<>B4)vN~MO-h4ToO+yv%N#?3IXUsqJ0h($iIR"
)
"""A Parquet file of three rows, ``id`` and ``text``; what pyarrow writes depends on its version."""


def doubled(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "id": 2 * record["id"]}


def scaled(record: Mapping[str, Any], by: int = 1) -> dict[str, Any]:
    return {**record, "id": by * record["id"]}


def drawn(number: int, rng: np.random.Generator) -> float:
    return number + rng.random()


def is_odd(record: Mapping[str, Any]) -> bool:
    return bool(record["id"] % 2)


def parity(number: int) -> str:
    return "odd" if number % 2 else "even"


def lengths(records: list[Mapping[str, Any]]) -> list[int]:
    return [len(record["text"]) for record in records]


def joined(item: Any, partner: Any, _: np.random.Generator) -> tuple[Any, Any]:
    return item, partner


def halves(item: int) -> Iterator[int]:
    yield from (item // 2, item - item // 2)


def cost(item: float) -> float:
    return item


NUMBERS = sk.from_sequence(range(40), version="numbers")
OTHERS = sk.from_sequence(range(30), version="others")


def lines(folder: Path) -> sk.Dataset:
    for number in range(2):
        rows = range(7 * number, 7 * number + 7)
        text = "".join(f'{{"id": {row}, "text": "{"x" * row}"}}\n' for row in rows)
        (folder / f"{number}.jsonl").write_text(text)
    return sk.open(folder / "*.jsonl", key="id")


def of_lines(folder: Path) -> sk.Dataset:
    mapped = lines(folder).map(doubled).map(functools.partial(scaled, by=3), version=2)
    return mapped.filter(files="1*").shuffle(seed=7).batch(3)


def of_kept_rows(folder: Path) -> sk.Dataset:
    ds = lines(folder).filter(is_odd, save=folder / "odd.u64", version=1, jobs=1)
    part: sk.Dataset = ds.sort("text", reverse=True, save=folder / "order.u64", jobs=1)[::-2]
    return part


def of_tables(folder: Path) -> sk.Dataset:
    (folder / "a.parquet").write_bytes(zlib.decompress(base64.b85decode(PARQUET)))
    ds = sk.open(folder, columns=["text", "id"], decode="numpy").cast({"id": "float32"})
    ds = (
        ds.filter(where=[("id", ">=", 2)])
        .map_batches(lengths, size=4, column="length")
        .rename({"text": "body"})
    )
    return ds.fill({"body": ""}).source_column("file", row="row", relative=True)


def of_samples(folder: Path) -> sk.Dataset:
    for number in range(2):
        rows = range(5 * number, 5 * number + 5)
        write_tar(
            folder / f"{number}.tar", [(f"s.{row}", {"txt": f"text {row}", "cls": f"{row}"}) for row in rows]
        )
    form = sk.formats.Tar(group="key", splitname="last", missing="none")
    ds = sk.open(folder, format=form, columns=["txt", "__key__"], decode={"txt": "text"})
    part = ds.split({"train": 0.8, "test": 0.2}, seed=1, stable=True)["train"]
    return part.shuffle(3, window=1, lanes=2)


def of_shar(folder: Path) -> sk.Dataset:
    write_shar(folder, [3, 4])
    return sk.open(f"shar:{folder}", columns=["recording"]).repeat(2).shuffle(seed=1)


def of_tokens(folder: Path) -> sk.Dataset:
    write_pair(folder / "a.bin", [np.arange(row % 5, 2 * row + 1) for row in range(12)])
    ds = sk.open(f"megatron:{folder}/a")
    packed = ds.pack(
        16, seed=3, method=sk.Packing(order="exchange", positions="document"), labels="within", jobs=1
    )
    return sk.concat(
        [packed, ds.pack(16, seed=3, method=sk.Packing("best_fit", most=4, long="drop"), jobs=1)]
    )


def of_a_mixture(_: Path) -> sk.Dataset:
    parts = {
        "a": NUMBERS.shuffle(1),
        "b": OTHERS.interleave(lanes=4),
        "c": NUMBERS.split({"x": 9, "y": None}, seed=2)["x"],
    }
    weights: list[tuple[int, dict[str, float]]] = [
        (0, {"a": 0.5, "b": 0.3, "c": 0.2}),
        (100, {"a": 1, "b": 1, "c": 0}),
    ]
    return sk.mix(parts, weights=weights, seed=5).map(drawn, rng=True, seed=6)


def of_columns(folder: Path) -> sk.Dataset:
    right = sk.from_sequence([{"id": row // 2, "other": row} for row in range(20)], version="right")
    ds = lines(folder)
    both = sk.join(ds, right, on="id", how="left", duplicates="all", jobs=1)
    return sk.concat([both, ds], columns="union").drop_columns(["text"]).sample(11, seed=4)


def of_a_packed_stream(_: Path) -> sk.Stream:
    documents = sk.from_sequence(
        [{"ids": [row] * (row % 6), "mask": [1] * (row % 6)} for row in range(30)], version=1
    )
    stream = documents.shuffle(seed=1).stream(lanes=4).shuffle(buffer=50, seed=2)
    return stream.pack(16, key="ids", align={"mask": 5}, separator=7, method="best_fit", bins=3, end="drop")


def of_mixed_streams(_: Path) -> sk.Stream:
    first = (
        NUMBERS.stream(lanes=2, epochs=3).overlay(OTHERS, joined, partners=(1, 3), prob=0.4, seed=2).repeat(2)
    )
    second = OTHERS.stream(lanes=2).flatten(halves).take(70).filter(bool)
    return sk.mix([first, second], weights=[(0, [2, 1]), (9, [1, 1])], seed=3, stop="all").batch(3)


def of_buckets(folder: Path) -> sk.Stream:
    lines(folder)
    stream = sk.open_stream(f"{folder}/*.jsonl", lanes=2, decode="bytes").map(len)
    return stream.bucket(cost, max_cost=90, boundaries=[20, 30], buffer=9, quadratic=40, max_items=5, seed=1)


def of_parts_by_content(_: Path) -> sk.Dataset:
    part = NUMBERS.split({"train": 0.75, "test": 0.25}, seed=4, by=parity)["train"]
    return sk.zip([part.shuffle(2, fixed=True), OTHERS.select(list(range(30)))]).epoch(1)


GOLDEN: dict[Callable[[Path], sk.Dataset | sk.Stream], str] = {
    of_lines: "xxh3:9496df576de83b6cdc787b04e121ff59",
    of_kept_rows: "xxh3:c4410ff62be6ef28e8691f8c38f9f63d",
    of_tables: "xxh3:0d491737d0e060fddcf591b660b23a04",
    of_samples: "xxh3:2c2dddd08fb184bcfb4100ecd9e844be",
    of_shar: "xxh3:dd5822cd2c063b1ee165e2a96563fff5",
    of_tokens: "xxh3:cc0e17d79bd7d25bab368ab3db1965ff",
    of_a_mixture: "xxh3:ff5420d670f059a949635e1e6fff0bcb",
    of_columns: "xxh3:63d4433801eda930c9ab1ebc75d23f91",
    of_a_packed_stream: "xxh3:c11742224de0b4a606db04d8dd5238a9",
    of_mixed_streams: "xxh3:d90e7bfa752fe31f19e5cbf7825d3051",
    of_buckets: "xxh3:05821f19a37919726191eb3a5ff5b2f1",
    of_parts_by_content: "xxh3:720efc207ae0a88b3100c5ec0f0825f8",
}


@pytest.mark.parametrize("build", [pytest.param(build, id=build.__name__) for build in GOLDEN])
def test_a_fingerprint_is_that_of_older_releases(
    build: Callable[[Path], sk.Dataset | sk.Stream], tmp_path: Path
) -> None:
    assert build(tmp_path).fingerprint == GOLDEN[build]
