"""What a lane's stages remember: as a whole, and as what changes from batch to batch."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.stream.common import check_cuts, check_same, delivered
from tests.stream.matrix import BUILDERS, flow

import seekable as sk
from seekable.stream.flow import Flow, changes_in, kept_in, load_all
from seekable.stream.kept import Kept, applied
from seekable.stream.shapes import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.contract import Token

EACH = [
    pytest.param(build, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number, build in enumerate(builders)
]


def documents(kept: Sequence[Kept]) -> list[Any]:
    return [each.document() for each in kept]


@pytest.mark.parametrize("build", EACH)
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_changes_add_up_to_what_is_remembered(build: Any, batch: int) -> None:
    """Also over a buffer that is emptied and begun anew."""
    stream = build(29, 2).repeat(2)
    root = Flow(stream, 1)
    kept = kept_in(root)
    count = 0
    for count, _ in enumerate(root, start=1):
        if not count % batch:
            before = documents(kept)
            changes = changes_in(root)
            assert documents(kept) == before
            applied(kept, changes)
            assert documents(kept) == documents(kept_in(root))
    assert count


@pytest.mark.parametrize("build", EACH)
def test_changes_add_up_from_a_restored_state_on(build: Any) -> None:
    stream = build(29, 2)
    first = Flow(stream, 0)
    for _, _ in zip(range(5), first, strict=False):
        pass
    root, kept = Flow(stream, 0), kept_in(first)
    load_all(root, kept)
    for _ in root:
        applied(kept, changes_in(root))
        assert documents(kept) == documents(kept_in(root))


@dataclass(frozen=True, eq=False, repr=False)
class InPlace(SameItems):
    """A stage that changes a list in its memory."""

    source: sk.Stream
    kind: ClassVar[str] = "in-place"

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"InPlace({inputs[0]})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        seen = flow.memory.setdefault("seen", [])
        for token, item in flow.inputs[0]:
            seen.append(len(seen))
            yield token, (item, list(seen))


def test_a_memory_that_is_changed_in_place_is_remembered_as_it_was() -> None:
    check_cuts(InPlace(flow(5, 2)))
    root = Flow(InPlace(flow(5, 1)), 0)
    kept = kept_in(root)
    next(iter(root))
    change = changes_in(root)
    again = Flow(InPlace(flow(5, 1)), 0)
    loaded = kept_in(root)
    load_all(again, loaded)
    next(iter(root))
    next(iter(again))
    applied(kept, change)
    assert kept[0].memory == loaded[0].memory == {"seen": [0]}


def test_threads_may_each_iterate_over_one_stream() -> None:
    parts = [flow(900, 2), flow(700, 2).map(lambda n: -n)]
    stream = sk.mix(parts, weights=[2, 1], seed=1, stop="all").shuffle(buffer=20, seed=1)
    wanted = delivered(sk.mix(parts, weights=[2, 1], seed=1, stop="all").shuffle(buffer=20, seed=1))
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda number=number: found.update({number: delivered(stream)}))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        check_same(found[number], wanted)
