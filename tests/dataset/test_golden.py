"""Golden values of whole pipelines: the records at given positions, and the fingerprints.

CHANGING ONE IS A BREAKING CHANGE: a run that is resumed from a state of an older release would go on in
another order, or be refused. See tests/order/test_golden.py.
"""

from __future__ import annotations

import numpy as np
from tests.dataset.common import flow, numbers

import seekable as sk
from seekable.nodes.map import ItemRandomness

FEW = numbers(20, "golden")
MANY = numbers(1000, "big")
A = numbers(700, "a")
B = sk.from_sequence(range(1000, 1900), version="b")


def drawn(_: int, rng: np.random.Generator) -> int:
    return int(rng.integers(1000))


def test_shuffle() -> None:
    assert flow(FEW.shuffle(seed=7), 20) == [
        *(7, 13, 10, 12, 8, 14, 17, 5, 19, 1),
        *(2, 9, 16, 4, 15, 18, 11, 0, 6, 3),
    ]
    assert flow(FEW.shuffle(seed=7), 10, start=20) == [7, 18, 9, 11, 1, 6, 12, 0, 4, 14]
    assert flow(MANY.shuffle(seed=0), 8) == [208, 18, 820, 371, 821, 752, 914, 6]
    assert flow(MANY.shuffle(seed=2**64 - 1), 8, start=3000) == [88, 635, 589, 106, 527, 419, 388, 342]


def test_windowed_shuffle() -> None:
    blocks = sk.concat([MANY[i * 60 : i * 60 + 60] for i in range(17)])
    local = blocks.shuffle(7, window=3, lanes=2)
    assert flow(local, 24) == [
        *(458, 735, 578, 340, 557, 761, 424, 388, 477, 720, 529, 419),
        *(581, 410, 468, 387, 584, 759, 509, 394, 444, 763, 580, 774),
    ]
    assert flow(local, 12, start=3000) == [14, 72, 56, 80, 894, 637, 848, 70, 410, 838, 868, 828]
    far = np.array([0, 499, 999, 10**12])
    assert blocks.shuffle(0, window=4)._node.fetch(far) == [271, 379, 809, 673]
    assert local.fingerprint == "xxh3:6f2a66718dec7d2834b621e611c7f789"
    assert blocks.shuffle(7, window=3, fixed=True).fingerprint == "xxh3:2e27adba1e20ed1f54998c712fe73852"
    larger = blocks.shuffle(7, window=3, lanes=2, block_rows=150)
    assert flow(larger, 12) == [346, 665, 953, 660, 873, 657, 262, 706, 250, 719, 896, 695]
    assert flow(larger, 12, start=3000) == [400, 132, 905, 140, 456, 217, 959, 130, 928, 118, 405, 108]
    assert larger.fingerprint == "xxh3:5e79900325cbd04366c484fd67b317d5"


def test_interleave() -> None:
    assert flow(MANY.interleave(lanes=3), 7, start=995) == [998, 332, 666, 999, 333, 0, 334]
    assert MANY.interleave(lanes=3).fingerprint == "xxh3:2333c45cbf7a1cc704db9a05855508d5"


def test_mix_by_lanes() -> None:
    parts = [A.shuffle(1, window=2, lanes=4), B.interleave(lanes=2)]
    mixed = sk.mix(parts, weights=[2, 1], seed=0)
    assert len(mixed) == 1048
    assert flow(mixed, 16) == [
        *(59, 242, 509, 592, 61, 341, 466, 679, 98, 1450, 1001, 610, 1000, 1452, 351, 1451),
    ]
    assert flow(mixed, 8, start=1044) == [54, 224, 421, 569, 125, 255, 523, 1625]


def test_mix() -> None:
    mixed = sk.mix({"a": A, "b": B}, weights={"a": 0.7, "b": 0.3}, seed=0)
    assert len(mixed) == 1000
    assert flow(mixed, 12) == [1000, 0, 1001, 1, 2, 1002, 3, 4, 5, 1003, 1004, 6]
    assert flow(mixed, 12, start=994) == [695, 696, 697, 1299, 698, 699, 0, 1, 2, 3, 1300, 4]
    assert len(sk.mix([A, B], weights=[7, 3], seed=0, stop="all")) == 2999


def test_mix_with_a_schedule() -> None:
    mixed = sk.mix([A, B], weights=[(0, [1, 3]), (10, [1, 0])], seed=5)
    assert flow(mixed, 16) == [1000, 0, 1001, 1002, 1, 1003, 1004, 1005, 1006, 1007, 2, 3, 4, 5, 6, 7]


def test_map_with_rng() -> None:
    assert flow(FEW.map(drawn, rng=True, seed=3), 6) == [465, 771, 256, 678, 831, 563]
    assert flow(FEW.map(drawn, rng=True, seed=3), 3, start=10**9) == [589, 363, 58]


def test_randomness_of_items() -> None:
    randomness = ItemRandomness(3)
    assert randomness.rng(0).random() == 0.65883814926859
    assert randomness.rng(10**12).integers(2**63) == 6438812014548789929
    assert randomness.rng(("x", 1)).random() == 0.09949136013145254


def test_split() -> None:
    parts = A.split({"x": 0.8, "y": 0.2}, seed=1)
    assert len(parts["x"]) == 560
    assert list(parts["y"])[:12] == [4, 6, 16, 19, 21, 23, 24, 25, 27, 30, 33, 35]
    assert parts["y"].fingerprint == "xxh3:819e40e0570b18b5f3563ef6f4e6bf6f"
    thrice = MANY.repeat(3).split({"x": 700, "y": None, "z": 901}, seed=1)
    assert list(thrice["y"])[-5:] == [995, 996, 997, 998, 999]
    assert list(thrice["z"])[:5] == [5, 7, 11, 14, 16]


def test_stable_split() -> None:
    parts = A.split({"x": 0.8, "y": 0.2}, seed=1, stable=True)
    assert len(parts["x"]) == 552
    assert list(parts["y"])[:12] == [8, 13, 15, 17, 21, 22, 24, 25, 29, 32, 34, 48]
    thrice = MANY.repeat(3).split({"x": 0.8, "y": 0.2}, seed=1, stable=True)
    assert list(thrice["y"])[-5:] == [975, 978, 983, 984, 993]


def test_flatten() -> None:
    flat = sk.from_sequence(["to be", "or", "not to be"], version="golden").flatten(str.split)
    assert list(flat) == ["to", "be", "or", "not", "to", "be"]
    assert flat.fingerprint == "xxh3:529fa87f6e1ee34a8d0c9adcda697e20"


def test_sort() -> None:
    ordered = sk.from_sequence(["to be", "or", "not", "to be"], version="golden").sort(str)
    assert [place.row for place in ordered.locate([0, 1, 2, 3])] == [2, 1, 0, 3]
    assert ordered.fingerprint == "xxh3:cf548d16b89db5a21f958b047635a4dc"


def test_fingerprints() -> None:
    assert FEW.fingerprint == "xxh3:b97c510dca89790571cc714c3f95bd03"
    mixed = sk.mix({"a": A.shuffle(seed=1), "b": B.shuffle(seed=2)}, weights={"a": 0.7, "b": 0.3}, seed=3)
    pipeline = mixed.map(abs, version=1).batch(4)
    assert pipeline.fingerprint == "xxh3:2ffafa8b41c364b0ace499afac114ed6"
    assert flow(pipeline, 3) == [[1543, 11, 587, 128], [607, 255, 1713, 451], [397, 593, 672, 1208]]


def test_batches_of_a_loader() -> None:
    loader = sk.Loader(FEW.shuffle(seed=7), batch_size=8, collate=list, end="pad")
    assert list(loader) == [
        [7, 13, 10, 12, 8, 14, 17, 5],
        [19, 1, 2, 9, 16, 4, 15, 18],
        [11, 0, 6, 3, 7, 13, 10, 12],
    ]
