"""Golden values of what decides the order of streams.

CHANGING ONE IS A BREAKING CHANGE: a run that is resumed from a state of an older release would go on in
another order, or be refused. See tests/order/test_golden.py.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.stream.common import delivered

import seekable as sk
from seekable.stream.batch import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

NUMBERS = sk.from_sequence(range(20), version="golden")
OTHERS = sk.from_sequence(range(100, 150), version="golden")


def flow(lanes: int = 1, **given: Any) -> sk.Stream:
    return NUMBERS.stream(**{"lanes": lanes, "epochs": 1, **given})


def items_of(stream: sk.Stream, most: int | None = None) -> list[Any]:
    return [item for _, item in delivered(stream, most)]


def drawn(_: int, rng: np.random.Generator) -> int:
    return int(rng.integers(1000))


def with_partner(number: int, partner: int, rng: np.random.Generator) -> tuple[int, int, int]:
    return number, partner, int(rng.integers(1000))


def is_odd(number: int) -> bool:
    return number % 2 == 1


def itself(number: float) -> float:
    return number


def test_lanes_of_a_dataset() -> None:
    assert items_of(flow(3, start=17)) == [
        18,
        19,
        17,
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
    ]
    assert items_of(NUMBERS.shuffle(7).stream(lanes=3), 24) == [
        7,
        13,
        10,
        12,
        8,
        14,
        17,
        5,
        19,
        1,
        2,
        9,
        16,
        4,
        15,
        18,
        11,
        0,
        6,
        3,
        9,
        7,
        18,
        6,
    ]
    assert delivered(flow(4, start=30), 3) == [(32, 12), (33, 13), (30, 10)]


def test_shuffle() -> None:
    assert items_of(flow().shuffle(buffer=6, seed=7)) == [
        0,
        4,
        1,
        2,
        5,
        8,
        10,
        12,
        7,
        3,
        15,
        11,
        16,
        18,
        9,
        14,
        6,
        17,
        13,
        19,
    ]
    assert items_of(flow(3).shuffle(buffer=4, seed=0)) == [
        9,
        1,
        8,
        6,
        7,
        14,
        12,
        10,
        2,
        0,
        4,
        11,
        3,
        16,
        17,
        18,
        13,
        5,
        15,
        19,
    ]
    assert items_of(flow().shuffle(buffer=30, seed=2**64 - 1)) == [
        12,
        5,
        11,
        4,
        7,
        13,
        0,
        19,
        14,
        10,
        1,
        8,
        17,
        6,
        15,
        3,
        16,
        18,
        2,
        9,
    ]


def test_mix() -> None:
    assert items_of(sk.mix([flow(2, epochs=None), OTHERS.stream(lanes=2)], weights=[2, 1], seed=0), 24) == [
        0,
        1,
        2,
        3,
        100,
        101,
        4,
        5,
        6,
        103,
        8,
        105,
        10,
        7,
        12,
        107,
        14,
        9,
        102,
        11,
        16,
        13,
        18,
        15,
    ]
    assert items_of(sk.mix([flow(), OTHERS.stream(epochs=1)], weights=[2, 1], seed=0, stop="all"))[24:60] == [
        18,
        19,
        106,
        107,
        108,
        109,
        110,
        111,
        112,
        113,
        114,
        115,
        116,
        117,
        118,
        119,
        120,
        121,
        122,
        123,
        124,
        125,
        126,
        127,
        128,
        129,
        130,
        131,
        132,
        133,
        134,
        135,
        136,
        137,
        138,
        139,
    ]
    assert items_of(
        sk.mix([flow(2, epochs=None), OTHERS.stream(lanes=2)], weights=[(0, [1, 0]), (4, [1, 3])], seed=5), 24
    ) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 101, 100, 103, 102, 105, 10, 107, 104, 109, 106, 111, 12, 113, 108, 115]


def test_random_map() -> None:
    assert items_of(flow().map(drawn, rng=True, seed=4), 8) == [124, 813, 946, 723, 749, 726, 863, 406]
    assert items_of(flow().repeat(2).map(drawn, rng=True, seed=4), 8) == [
        628,
        586,
        734,
        587,
        819,
        186,
        370,
        702,
    ]


def test_overlay() -> None:
    assert items_of(flow().overlay(OTHERS, with_partner, prob=0.4, seed=2), 10) == [
        0,
        1,
        (2, 128, 164),
        3,
        4,
        5,
        6,
        7,
        (8, 124, 233),
        9,
    ]


def with_partners(number: int, partners: Iterable[int], rng: np.random.Generator) -> tuple[Any, ...]:
    return number, *itertools.islice(partners, 2), int(rng.integers(1000))


def test_overlay_of_several() -> None:
    assert items_of(flow().overlay(OTHERS, with_partners, partners=2, prob=0.4, seed=2), 10) == [
        0,
        1,
        (2, 128, 108, 77),
        3,
        4,
        5,
        6,
        7,
        (8, 124, 111, 207),
        9,
    ]
    assert items_of(flow().overlay(OTHERS, with_partners, partners=(1, 3), prob=0.4, seed=2), 10) == [
        0,
        1,
        (2, 108, 103, 549),
        3,
        4,
        5,
        6,
        7,
        (8, 111, 110, 485),
        9,
    ]
    assert items_of(flow().overlay(OTHERS, with_partners, partners="endless", prob=0.4, seed=2), 10) == [
        0,
        1,
        (2, 111, 119, 569),
        3,
        4,
        5,
        6,
        7,
        (8, 100, 116, 489),
        9,
    ]


def test_bucket() -> None:
    assert items_of(flow(2).bucket(itself, max_cost=25, boundaries=[6, 12], buffer=8, seed=1)) == [
        [12],
        [7, 9],
        [14],
        [13],
        [16],
        [11],
        [6, 8, 10],
        [1, 3, 5],
        [0, 2, 4],
        [15],
        [18],
        [17],
        [19],
    ]
    assert items_of(flow().bucket(itself, max_cost=30, buckets=3, buffer=9, padded=True, seed=3)) == [
        [7, 8],
        [9, 10],
        [11, 12],
        [13, 14],
        [15],
        [16],
        [17],
        [18],
        [0, 1, 2, 3, 4],
        [5, 6],
        [19],
    ]
    squares = sk.from_sequence([n * n for n in range(40)], version=1).stream(epochs=1)
    estimated = squares.bucket(itself, max_cost=9, buckets=4, seed=0)
    assert isinstance(estimated.stage, Bucket)
    assert estimated.stage.boundaries == (625.0, 961.0, 1296.0)


DOCUMENTS = sk.from_sequence([list(range(10 * n, 10 * n + n % 7)) for n in range(1, 12)], version=1)

PACKED: list[tuple[dict[str, Any], Any]] = [
    (
        {},
        [
            (((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 2)), [10, 20, 21, 30, 31, 32, 40, 41]),
            (((3, 2, 4), (4, 0, 5), (5, 0, 1)), [42, 43, 50, 51, 52, 53, 54, 60]),
            (((5, 1, 6), (7, 0, 1), (8, 0, 2)), [61, 62, 63, 64, 65, 80, 90, 91]),
            (((9, 0, 3), (10, 0, 4)), [100, 101, 102, 110, 111, 112, 113, 0]),
        ],
    ),
    (
        {"method": "best_fit", "bins": 2},
        [
            (((0, 0, 1), (1, 0, 2), (2, 0, 3)), [10, 20, 21, 30, 31, 32, 0, 0]),
            (((4, 0, 5),), [50, 51, 52, 53, 54, 0, 0, 0]),
            (((5, 0, 6), (7, 0, 1)), [60, 61, 62, 63, 64, 65, 80, 0]),
            (((9, 0, 3), (10, 0, 4)), [100, 101, 102, 110, 111, 112, 113, 0]),
            (((3, 0, 4), (8, 0, 2)), [40, 41, 42, 43, 90, 91, 0, 0]),
        ],
    ),
    (
        {"separator": -7, "long": "truncate"},
        [
            (((0, 0, 2), (1, 0, 3), (2, 0, 3)), [10, -7, 20, 21, -7, 30, 31, 32]),
            (((2, 3, 4), (3, 0, 5), (4, 0, 2)), [-7, 40, 41, 42, 43, -7, 50, 51]),
            (((4, 2, 6), (5, 0, 4)), [52, 53, 54, -7, 60, 61, 62, 63]),
            (((5, 4, 7), (6, 0, 1), (7, 0, 2), (8, 0, 2)), [64, 65, -7, -7, 80, -7, 90, 91]),
            (((8, 2, 3), (9, 0, 4), (10, 0, 3)), [-7, 100, 101, 102, -7, 110, 111, 112]),
            (((10, 3, 5),), [113, -7, 0, 0, 0, 0, 0, 0]),
        ],
    ),
]


@pytest.mark.parametrize(("given", "wanted"), PACKED)
def test_pack(given: dict[str, Any], wanted: Any) -> None:
    found = delivered(DOCUMENTS.stream(epochs=1).pack(8, **given))
    assert [(token, item["tokens"].tolist()) for token, item in found] == wanted


def test_pack_that_drops_its_end() -> None:
    for given, wanted in PACKED:
        stream = DOCUMENTS.stream(epochs=1).pack(8, **given, end="drop")
        found = [(token, item["tokens"].tolist()) for token, item in delivered(stream)]
        assert found == wanted[: len(found)]
        rest = wanted[len(found) :]
        assert all(sum(stop - start for _, start, stop in token) < 8 for token, _ in rest)
        assert 0 < len(rest) <= given.get("bins", 1)


def test_fingerprints() -> None:
    assert (
        flow(2).filter(is_odd).shuffle(buffer=4, seed=1).batch(2).fingerprint
        == "xxh3:09ee8bb6c893ffdcae0beff200fb6a66"
    )
    assert (
        sk.mix({"a": flow(), "b": flow().repeat()}, weights={"a": 2, "b": 1}, seed=0).fingerprint
        == "xxh3:d5c063d73d31d029b6601cf1c4d574f7"
    )
    assert sk.zip([flow().take(5), flow().skip(5)]).fingerprint == "xxh3:89225013dfa2655b38813eefa3f8a32b"
    assert (
        sk.concat([flow().flatten(), flow().map(drawn, rng=True, seed=1)]).fingerprint
        == "xxh3:9f7c055a6678dba952f4bd7ac9e7066d"
    )
    assert flow().pack(8, key="ids", separator=0).fingerprint == "xxh3:4bf2fd5e0745315f592c3e1f6648df90"
    assert flow().pack(8, method="best_fit").fingerprint == "xxh3:a58b6e20aa8297e0c93a44643a21d7f4"
    assert flow().bucket(itself, max_cost=9, seed=0).fingerprint == "xxh3:2728cbcc434efbdd0ec0e76391a264bb"
    assert (
        flow().overlay(OTHERS, with_partner, prob=0.4, seed=2).fingerprint
        == "xxh3:d2a6b5c383924537a18aee3793297011"
    )
    assert (
        flow().overlay(OTHERS, with_partner, partners=(1, 3), prob=0.4, seed=2).fingerprint
        == "xxh3:1155f66b34b744559b69a6fe97151a07"
    )
    assert (
        flow().overlay(OTHERS, with_partner, partners="endless", prob=0.4, seed=2).fingerprint
        == "xxh3:a8b021e480964dfd02e8c1273583b79b"
    )


def test_a_state() -> None:
    iterator = iter(flow(2).filter(is_odd).shuffle(buffer=4, seed=1).batch(2))
    for _ in range(3):
        next(iterator)
    assert iterator.state_dict(rows=False) == {
        "seekable": 1,
        "fingerprint": "xxh3:09ee8bb6c893ffdcae0beff200fb6a66",
        "step": 3,
        "slot": 6,
        "lanes": {
            "0": [{}, {}, {}, {"at": 10}],
            "1": [{}, {"drawn": 6, "buffer": [15, 19, 17, 13]}, {}, {"at": 10}],
        },
        "of": 2,
        "check": "11d0f5a0d98c01d2",
    }
    assert iterator.state_dict() == {
        **iterator.state_dict(rows=False),
        "pipeline": (
            '{"files":[],"nodes":['
            '{"kind":"sequence","length":20,"type":"builtins.range","version":"golden"},'
            '{"epochs":1,"kind":"dataset","lanes":2,"of":[0],"start":0},'
            '{"fn":{"name":"tests.stream.test_golden.is_odd"},"kind":"filter","lanes":2,"of":[1]},'
            '{"buffer":4,"kind":"shuffle","lanes":2,"of":[2],"seed":1},'
            '{"kind":"batch","lanes":2,"of":[3],"size":2}]}'
        ),
    }
