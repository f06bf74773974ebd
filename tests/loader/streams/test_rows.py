"""resume="rows" of streams: what waits in stages comes first, and no row comes twice in an epoch."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.loader.by_rows import Batches, Delivered, through_json
from tests.loader.streams.by_rows import bare, dropped, last, stamps_in, stream

import seekable as sk

UNSHRUNK = settings(max_examples=120, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def loader_of(made: sk.Stream, random: Random) -> sk.Loader:
    workers = random.choice([0, 0, 2])
    return sk.Loader(
        made,
        batch_size=random.randint(1, 5),
        collate=list,
        prefetch=0,
        workers=workers,
        worker_type="thread",
    )


@UNSHRUNK
@given(st.integers(0, 2**32))
def test_every_epoch_that_was_begun_is_finished_and_no_row_comes_twice(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(20, 60) for name in random.choice(["a", "ab", "abc"])}
    came, state = Delivered(ignored=dropped), None
    for _ in range(random.randint(1, 4)):
        made = stream(sizes, random)
        loader = loader_of(made, random)
        if state is not None:
            loader.load_state_dict(state, resume="rows")
        batches = Batches(loader)
        items = [batches.next(random.choice([0, random.randint(0, 30)]))]
        check_goes_on_exactly(made, loader, random)
        items.append(batches.next(random.choice([0, random.randint(0, 30)])))
        came.add(sizes, [row for row, _ in stamps_in(items)])
        state = through_json(loader.state_dict(rows=True))
        loader.close()
        sizes = {name: size + random.choice([0, 0, 4]) for name, size in sizes.items()}
    end = sk.Loader(last(sizes), batch_size=500, collate=list, prefetch=0)
    end.load_state_dict(state or {}, resume="rows")
    came.add(sizes, [row for row, _ in stamps_in(Batches(end).next(12))])
    came.check()


def check_goes_on_exactly(made: sk.Stream, loader: sk.Loader, random: Random) -> None:
    """A state, also one that goes on by rows, is resumed exactly; passes have other numbers then."""
    state = loader.state_dict()
    batch, steps = loader._course.steps.batch, random.randint(0, 8)

    def twin(state: dict[str, Any]) -> sk.Loader:
        made_again = sk.Loader(made, batch_size=batch, collate=list, prefetch=0)
        made_again.load_state_dict(through_json(state))
        return made_again

    first, second = twin(state), twin(state)
    whole = bare(Batches(first).next(steps))
    middle = random.randint(0, steps)
    begun = bare(Batches(second).next(middle))
    third = twin(second.state_dict())
    assert begun + bare(Batches(third).next(steps - middle)) == whole
    assert third.state_dict() == first.state_dict()
