"""Runs of several processes under torch.distributed: who has which records, and checkpoints of them all.

Each test trains in real processes, over gloo; a killed one has logged each batch that it was given.
"""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.integrations.lives import KILLED, Life, Server, together
from tests.loader.streams.token_streams import expected_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROCESSES = 8
MISSING = "a state needs the 4 ranks of the stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("torch_groups.py", tmp_path_factory.mktemp("groups")) as server:
        yield server


def finished(lives: list[Life]) -> list[Life]:
    """Return lives that all came to their end."""
    assert [life.code for life in lives] == [0] * len(lives), "\n".join(life.said for life in lives)
    return lives


def test_all_ways_to_name_the_data_parallel_ranks_agree(server: Server) -> None:
    lives = finished(server.ranks(PROCESSES, task="meshes"))
    for names in itertools.permutations(["dp", "cp", "tp"]):
        ranks = [life.ids("-".join(names)) for life in lives]
        stride = {0: 4, 1: 2, 2: 1}[names.index("dp")]
        assert ranks == [[[process // stride % 2, 2]] for process in range(PROCESSES)]
    assert [life.ids("replicated") for life in lives] == [[[process // 2, 4]] for process in range(PROCESSES)]


def test_peers_save_together_and_another_mesh_goes_on(server: Server, tmp_path: Path) -> None:
    """A run of 2 x 2 x 2 processes is killed, then one of 4 x 2, then one of 3 x 1 x 2."""
    states, delivered = tmp_path / "states", list[list[int]]()
    for mesh, die_at in (
        ({"dp": 2, "cp": 2, "tp": 2}, 5),
        ({"pp": 2, "dp": 4}, 9),
        ({"dp_shard": 3, "cp": 1, "tp": 2}, 14),
    ):
        processes = 6 if "dp_shard" in mesh else PROCESSES
        lives = server.ranks(processes, task="peers", mesh=mesh, folder=str(states), die_at=die_at)
        assert {life.code for life in lives} == {KILLED}, lives[0].said
        of_rank: dict[int, Life] = {}
        for life in lives:
            first = of_rank.setdefault(life.ids("rank")[0][0], life)
            assert life.ids() == first.ids()
        # All have saved each step before they died, so that nothing is delivered twice.
        delivered += together([*of_rank.values()])
        names = [path.name for path in states.iterdir() if path.name.startswith("state-")]
        assert Counter(name.partition("-of-")[0].rpartition("-")[0] for name in names)[
            f"state-{die_at:012d}"
        ] == len(of_rank)
        assert not [*states.glob("*.tmp")]
    assert delivered == expected_tokens(14)


def test_a_checkpoint_of_dcp_goes_on_on_other_numbers_of_ranks(server: Server, tmp_path: Path) -> None:
    """Four ranks are killed, two are stopped by SIGTERM, three go on: nothing is repeated or lost."""
    spec: dict[str, Any] = {"task": "checkpoints", "folder": str(tmp_path), "steps": 17}
    first = server.ranks(4, **spec, save_at=[2, 5], die_at=7)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(2, **spec, resume=f"{tmp_path}/5", save_at=[9, 12], stop_at=13)
    assert {life.code for life in second} == {-signal.SIGTERM}, second[0].said
    third = finished(server.ranks(3, **spec, resume=f"{tmp_path}/12"))
    found = together(first)[:5] + together(second)[:7] + together(third)
    assert found == expected_tokens(17)
    counts = Counter(itertools.chain.from_iterable(found))
    assert counts == Counter(itertools.chain.from_iterable(expected_tokens(17)))
    alone = finished(server.ranks(1, **spec, resume=f"{tmp_path}/9"))
    assert together(alone) == expected_tokens(17)[9:]


def test_a_checkpoint_that_does_not_fit_is_refused_by_name(server: Server, tmp_path: Path) -> None:
    spec: dict[str, Any] = {"task": "checkpoints", "folder": str(tmp_path), "steps": 4}
    finished(server.ranks(2, **spec, save_at=[2]))
    for loader, said in (
        ({"stream": {"seed": 2}}, "shuffle: seed was 1, is 2"),
        ({"stream": {"lanes": 4}, "global_batch_size": 4}, "lanes"),
    ):
        lives = server.ranks(2, **spec, resume=f"{tmp_path}/2", loader=loader)
        for life in lives:
            assert (life.code, life.ids()) == (1, [])
            assert "StateMismatch" in life.said
            assert said in life.said


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("ranks", f"{MISSING} (there are 0 of 4, 1 of 4; 2 and 3 are missing)"),
        ("group", f"{MISSING} (there are 0 of 4, 1 of 4; 2 and 3 are missing)"),
        ("pipelines", "rank 1 is at step 0 of the pipeline "),
        ("steps", "rank 1 is at step 1 of the pipeline "),
    ],
)
def test_what_could_not_be_saved_is_refused_at_the_first_iter(why: str, said: str, server: Server) -> None:
    lives = finished(server.ranks(4, task="refused", why=why))
    heard = [life.log for life in lives if why != "group" or life is lives[0] or life is lives[1]]
    assert all(len(log) == 1 and log[0]["kind"].startswith(said) for log in heard), heard
    assert len(heard) == (2 if why == "group" else 4)
