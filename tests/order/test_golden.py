"""Golden values of everything that defines an order.

They are part of the format of saved states. CHANGING ONE IS A BREAKING CHANGE: a run that is resumed from a
state of an older release would go on in another order. Such a change needs a new schema number of the state,
and the old order kept for states of the old number; it is never "updating the expected values".

Those of packed samples are in `packing/`.
"""

from __future__ import annotations

import numpy as np
import pytest

from seekable.order.apportionment import whole_weights
from seekable.order.keys import derive, derive_each, kind_key, mix_one
from seekable.order.mixture import BLOCK, Mixture, epoch_length
from seekable.order.permutation import permute, permute_one, unpermute


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("shuffle", 0xF27E45F4BF8AE169),
        ("mix", 0xD935FBA33CBB6C39),
        ("split", 0x60F8BA20622F05DF),
        ("windowed_shuffle", 0x4F09757B84E63DE2),
    ],
)
def test_keys_of_kinds(kind: str, key: int) -> None:
    assert kind_key(kind) == key


def test_scrambling() -> None:
    assert mix_one(1) == 0x5692161D100B05E5
    assert mix_one(2**64 - 1) == 0xB4D055FCF2CBBD7B


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        ((0,), 0xA1DDE2D5CC7BBA37),
        ((7,), 0x8D9D0A868DD0CA88),
        ((2**64 - 1,), 0x3F340D17E2324C16),
        ((7, 0), 0x545A30E3EF525C1B),
        ((7, 1), 0x3335DB40CBFA4879),
    ],
)
def test_derived_keys(parts: tuple[int, ...], key: int) -> None:
    assert derive(kind_key("shuffle"), *parts) == key
    keys = np.array([kind_key("shuffle")], dtype=np.uint64)
    for part in parts:
        keys = derive_each(keys, np.array([part], dtype=np.uint64))
    assert keys.tolist() == [key]


@pytest.mark.parametrize(
    ("n", "order"),
    [
        (5, [1, 2, 3, 4, 0]),
        (16, [1, 14, 11, 12, 4]),
        (17, [16, 8, 10, 0, 3]),
        (100, [71, 1, 52, 81, 3]),
        (1000, [907, 975, 406, 757, 305]),
        (1_000_003, [384344, 132673, 425549, 998370, 67520]),
        (2**40 + 1, [363582741918, 1088370998183, 401832645361, 614589569711, 275407022727]),
        (
            2**62,
            [
                3292519552588971792,
                1008942286655950164,
                4266767997139196085,
                2439721991047095583,
                267075604902056264,
            ],
        ),
    ],
)
def test_permutations(n: int, order: list[int]) -> None:
    x = np.arange(5) * (n // 5)
    assert permute(x, n, 12345).tolist() == order
    assert [permute_one(int(i), n, 12345) for i in x] == order
    assert unpermute(np.array(order), n, 12345).tolist() == x.tolist()


def test_weights() -> None:
    assert whole_weights([0.7, 0.2, 0.1]) == [7, 2, 1]
    assert whole_weights([1, 1e-6, 0.5]) == [1_000_000, 1, 500_000]
    assert whole_weights([1 / 3, 1 / 7]) == [1503238554, 644245094]


def test_blocks_of_a_mixture() -> None:
    assert BLOCK == 64


def test_epoch_lengths() -> None:
    lengths = [
        epoch_length([7, 3, 2], [100, 50, 70], lanes=lanes, longest=longest)
        for lanes in (1, 4)
        for longest in (False, True)
    ]
    assert lengths == [171, 417, 168, 418]


def test_a_mixture_over_the_end_of_an_epoch() -> None:
    labels, rows = Mixture(schedule=((0, (7, 3)),), key=1, length=100).route(np.arange(90, 110))
    assert labels.tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0]
    assert rows.tolist() == [
        *(61, 62, 63, 64, 29, 65, 66, 67, 68, 69),
        *(30, 70, 71, 72, 73, 31, 74, 32, 75, 76),
    ]


def test_a_mixture_with_a_schedule_and_lanes() -> None:
    mixture = Mixture(schedule=((0, (3, 2, 1)), (50, (1, 0, 4))), key=99, length=None, lanes=3)
    labels, rows = mixture.route(np.arange(40, 64))
    assert labels.tolist() == [1, 2, 0, 0, 0, 1, 0, 0, 1, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 0, 2, 2, 0, 0]
    assert rows.tolist() == [
        *(16, 8, 21, 19, 20, 12, 22, 23, 15, 7, 17, 24),
        *(10, 11, 9, 13, 14, 12, 16, 26, 15, 19, 29, 27),
    ]
