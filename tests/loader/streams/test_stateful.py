"""A loader as frameworks save it: the shares of all ranks make the state of one process.

Real ranks put theirs together in tests/integrations/test_torch_groups.py.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.streams.token_streams import expected_tokens, stream_loader

import seekable as sk
from seekable.errors import CorruptState, NotResumable, StateMismatch
from seekable.loader.stateful import put_together

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 7


def shares_of(loaders: list[sk.Loader]) -> list[dict[str, Any]]:
    """Return what each rank says, through JSON."""
    said = [
        {"rank": each.rank, "of": each.world_size, "state": each.state_dict(partial=True, rows=False)}
        for each in loaders
    ]
    return [json.loads(json.dumps(share)) for share in said]


def ranks(count: int, steps: int = 0) -> list[sk.Loader]:
    """Return the loaders of all ranks, after some steps."""
    loaders = [stream_loader(rank, count, prefetch=0) for rank in range(count)]
    for each in loaders:
        for _ in zip(range(steps), each, strict=False):
            pass
    return loaders


@pytest.mark.parametrize("count", [2, 3, 12])
def test_the_shares_of_all_ranks_make_the_state_of_one(count: int) -> None:
    alone, loaders = stream_loader(prefetch=0), ranks(count)
    for _ in zip(range(STEPS), alone, *loaders, strict=False):
        found = put_together(shares_of(loaders), count)
        assert found.document() == alone.state_dict(rows=False)
        # Processes that have the same records say the same.
        assert put_together(shares_of([*loaders, *loaders]), count) == found


def test_a_state_loads_on_any_number_of_ranks() -> None:
    wanted = expected_tokens(STEPS)
    for count, cut in zip([1, 2, 3, 4], [0, 2, 5, STEPS - 1], strict=True):
        state = {"state": json.dumps(put_together(shares_of(ranks(4, cut)), 4).document())}
        shares = [stream_loader(rank, count, steps=STEPS, prefetch=0) for rank in range(count)]
        for each in shares:
            each.stateful().load_state_dict(state)
        assert [sorted(itertools.chain(*batch)) for batch in zip(*shares, strict=True)] == wanted[cut:]


def missing() -> Iterator[tuple[list[dict[str, Any]], int, str]]:
    two = shares_of(ranks(2, 1))
    yield two[:1], 2, r"needs the 2 ranks .*there are 0 of 2; 1 is missing\)"
    yield two, 4, r"needs the 4 ranks .*there are 0 of 2, 1 of 2; 2 and 3 are missing\)"
    yield [*two, shares_of(ranks(4))[3]], 2, r"needs the 2 ranks .*0 of 2, 1 of 2, 3 of 4\)"
    yield [two[0], shares_of(ranks(2, 2))[1]], 2, "rank 1 is at step 2 .*rank 0 at step 1"
    yield [*two, shares_of(ranks(2, 2))[1]], 2, "two processes with the records of rank 1 .*step 1 .*step 2"
    yield [two[0], {"rank": 1, "of": 2, "error": "it is wet"}], 2, "rank 1 of 2 has no state: it is wet"


def test_what_makes_no_state_is_named() -> None:
    for shares, count, message in missing():
        with pytest.raises(NotResumable, match=message):
            put_together(shares, count)


def test_without_torch_the_first_iter_says_how_ranks_come_together() -> None:
    saved = stream_loader(1, 2).stateful()
    for asked in (saved.__iter__, saved.state_dict):
        with pytest.raises(NotResumable, match=r"rank 1 of 2 .*init_process_group\(\) first, or let all"):
            asked()
    with pytest.raises(NotResumable, match=r"give loader\.stateful\(\) to a framework"):
        saved.loader.state_dict()


def test_of_a_dataset_no_rank_waits_for_another() -> None:
    loader = sk.Loader(sk.from_sequence(range(8)), global_batch_size=4, rank=1, world_size=2, collate=list)
    saved = loader.stateful()
    assert (len(saved), saved.batch_size, saved.dataset.fingerprint) == (2, 2, loader.dataset.fingerprint)
    assert next(iter(saved)) == [1, 3]
    assert json.loads(saved.state_dict()["state"]) == loader.state_dict()
    saved.load_state_dict({})
    assert loader.step == 1
    assert repr(saved).endswith(".stateful()")


def test_who_announces_passes_gets_the_state_of_all_ranks_or_an_error() -> None:
    with pytest.raises(NotResumable, match=r"rank 1 of 2 .*give the trainer loader\.stateful\(\)"):
        stream_loader(1, 2).sampler.set_epoch(0)
    stream_loader(1, 2).stateful().sampler.set_epoch(0)
    forward = sk.Loader(sk.from_iterable(lambda: iter(range(5)), version=1), batch_size=2, steps=2)
    with pytest.raises(NotResumable, match="replay=True"):
        forward.sampler.set_epoch(0)
    with pytest.raises(NotResumable, match="replay=True"):
        iter(forward.stateful())


def test_the_states_of_both_kinds_load_and_others_are_refused() -> None:
    loader = stream_loader(prefetch=0)
    next(iter(loader))
    for state in (loader.state_dict(), loader.stateful().state_dict()):
        again = stream_loader(prefetch=0)
        again.stateful().load_state_dict(json.loads(json.dumps(state)))
        assert again.step == 1
    for broken in ({"state": "{"}, {"state": 5}, {"state": "[]"}, {"other": 1}):
        with pytest.raises(CorruptState):
            stream_loader().stateful().load_state_dict(broken)
    with pytest.raises(StateMismatch, match="seed was 1, is 2"):
        stream_loader(stream={"seed": 2}).stateful().load_state_dict(loader.stateful().state_dict())


def test_a_share_of_the_lanes_is_no_state() -> None:
    """A state of some ranks only names the lanes that it lacks."""
    share = stream_loader(1, 2, prefetch=0).state_dict(partial=True)
    with pytest.raises(CorruptState, match="lane"):
        stream_loader(prefetch=0).stateful().load_state_dict({"state": json.dumps(share)})
