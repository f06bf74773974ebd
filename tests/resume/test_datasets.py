"""resume="rows": whatever changed above the sources, each goes on with the rest of its begun epoch."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.resume.datasets import Batches, Delivered, natural, pipeline, through_json
from tests.thrift import some

import seekable as sk


def loaders_of(dataset: sk.Dataset, world_size: int, batch: int) -> list[sk.Loader]:
    return [
        sk.Loader(
            dataset,
            global_batch_size=batch * world_size,
            rank=rank,
            world_size=world_size,
            collate=list,
            prefetch=0,
        )
        for rank in range(world_size)
    ]


def made(dataset: sk.Dataset, random: Random) -> list[sk.Loader]:
    """Return the loaders of some ranks, of one where the last batch would leave a rank without a record."""
    world_size, batch = random.choice([1, 1, 2, 3]), random.randint(1, 5)
    try:
        return loaders_of(dataset, world_size, batch)
    except sk.errors.InvalidArgument:
        return loaders_of(dataset, 1, batch)


def resumed(dataset: sk.Dataset, state: dict[str, Any] | None, random: Random) -> list[sk.Loader]:
    loaders = made(dataset, random)
    if state is None:
        return loaders
    try:
        for loader in loaders:
            loader.load_state_dict(state, resume="rows")
    except sk.errors.InvalidArgument:
        assert len(loaders) > 1
        loaders = loaders_of(dataset, 1, 2)
        loaders[0].load_state_dict(state, resume="rows")
    return loaders


class Ranks:
    """Some ranks, which go step by step."""

    def __init__(self, loaders: list[sk.Loader]) -> None:
        self._ranks = [Batches(loader) for loader in loaders]

    def next(self, count: int) -> list[Any]:
        """Return what all of them deliver in some steps."""
        return [rank.next(count) for rank in self._ranks]


# Nothing is shrunk: a seed that fails says all, and pipelines do not become simpler with smaller seeds.
UNSHRUNK = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


@settings(UNSHRUNK, max_examples=some(25, of=3))
@given(st.integers(0, 2**32))
def test_every_epoch_that_was_begun_is_finished_and_none_twice(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(1, 30) for name in random.choice(["a", "ab", "abc"])}
    came, state = Delivered(), None
    for _ in range(random.randint(1, 4)):
        dataset = pipeline(sizes, random)
        loaders = resumed(dataset, state, random)
        before, after = random.choice([0, random.randint(0, 40)]), random.choice([0, random.randint(0, 40)])
        ranks = Ranks(loaders)
        batches = ranks.next(before)
        check_goes_on_exactly(dataset, loaders, random)
        came.add(sizes, [batches, ranks.next(after)])
        state = through_json(loaders[0].state_dict())
        sizes = {name: size + random.choice([0, 0, 4]) for name, size in sizes.items()}
    last = sk.Loader(natural(sizes), batch_size=50, collate=list, prefetch=0)
    last.load_state_dict(state or {}, resume="rows")
    came.add(sizes, Batches(last).next(12))
    came.check()


def check_goes_on_exactly(dataset: sk.Dataset, loaders: list[sk.Loader], random: Random) -> None:
    """A state, also one that goes on by rows, is resumed exactly, and gives the same state."""
    states = [loader.state_dict() for loader in loaders]
    assert all(state == states[0] for state in states)
    batch = loaders[0].global_batch_size // len(loaders)
    steps, first, second = random.randint(0, 12), *(loaders_of(dataset, len(loaders), batch) for _ in "ab")
    for loader in first:
        loader.load_state_dict(through_json(states[0]))
        assert loader.state_dict() == states[0]
    whole = Ranks(first).next(steps)
    middle = random.randint(0, steps)
    for loader in second:
        loader.load_state_dict(states[0])
    begun = Ranks(second).next(middle)
    third = loaders_of(dataset, len(loaders), batch)
    for loader in third:
        loader.load_state_dict(through_json(second[0].state_dict()))
    rest = Ranks(third).next(steps - middle)
    assert [a + b for a, b in zip(begun, rest, strict=True)] == whole
    assert [loader.state_dict() for loader in third] == [loader.state_dict() for loader in first]
