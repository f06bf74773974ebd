"""A sk.Loader that is registered with Accelerate is saved and loaded with its checkpoints."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING, Any

import pytest
import torch
from tests.integrations.lives import KILLED, Server, together
from tests.integrations.records import expected
from tests.loader.streams.token_streams import expected_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EPOCH = 10
"""Batches of an epoch."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("accelerate_train.py", tmp_path_factory.mktemp("accelerate")) as server:
        yield server


@pytest.mark.exhaustive
@pytest.mark.parametrize("prepare", ["prepared", ""])
@pytest.mark.parametrize("loader", [{}, {"prefetch": 0}, {"workers": 2}], ids=["prefetch", "none", "workers"])
def test_a_killed_run_goes_on_from_the_checkpoint(
    loader: dict[str, Any], prepare: str, server: Server, tmp_path: Path
) -> None:
    spec = {"folder": str(tmp_path / "saved"), "loader": loader, "prepare": prepare, "epochs": 2}
    first = server.live(**spec, save_at=[4], die_at=6)
    second = server.live(**spec, save_at=[7], die_at=9)  # the second time in one epoch
    third = server.live(**spec, save_at=[])
    assert [first.code, second.code, third.code] == [KILLED, KILLED, 0], first.said + second.said + third.said
    assert first.ids()[:4] + second.ids()[:3] + third.ids() == expected(2 * EPOCH)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_dataloader_that_is_prepared_goes_on(workers: int, server: Server, tmp_path: Path) -> None:
    spec = {"folder": str(tmp_path / "saved"), "workers": workers, "steps": 3 * EPOCH}
    saved = [4, 7, EPOCH + 3]
    lives = [server.live(**spec, save_at=[at], die_at=at + 2) for at in saved]
    lives.append(server.live(**spec, save_at=[]))
    assert [life.code for life in lives] == [KILLED, KILLED, KILLED, 0], "".join(life.said for life in lives)
    kept = [life.ids()[: stop - start] for life, start, stop in zip(lives, [0, *saved], saved, strict=False)]
    assert [*itertools.chain(*kept), *lives[-1].ids()] == expected(3 * EPOCH)


@pytest.mark.parametrize("at", [1, EPOCH, EPOCH + 1])
def test_no_epoch_is_empty_and_none_has_another_order(at: int, server: Server, tmp_path: Path) -> None:
    """Accelerate #3996: after a resume, the next epoch was shuffled as another one."""
    spec = {"folder": str(tmp_path / "saved"), "epochs": 3}
    first, second = server.live(**spec, save_at=[at], die_at=at), server.live(**spec, save_at=[])
    assert [first.code, second.code] == [KILLED, 0], first.said + second.said
    assert first.ids() + second.ids() == expected(3 * EPOCH)


def test_what_accelerate_writes_is_read_without_running_anything(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    assert server.live(folder=str(folder), epochs=1, save_at=[3], die_at=3).code == KILLED
    state = torch.load(folder / "custom_checkpoint_0.pkl", weights_only=True)
    assert (state["seekable"], state["step"], state["position"]) == (1, 3, 12)


def test_ranks_share_batches_and_their_number_may_change(server: Server, tmp_path: Path) -> None:
    spec: dict[str, Any] = {"folder": str(tmp_path / "saved"), "loader": {"end": "pad"}, "epochs": 2}
    first = server.ranks(2, **spec, save_at=[3], die_at=4)
    assert [life.code for life in first] == [KILLED, KILLED], first[0].said + first[1].said
    second = server.ranks(1, **spec, save_at=[12], die_at=12)
    third = server.ranks(2, **spec, save_at=[])
    assert [life.code for life in third] == [0, 0], third[0].said + third[1].said
    batches = [*together(first)[:3], *together(second), *together(third)]
    assert batches == [sorted(batch) for batch in expected(2 * EPOCH, end="pad")]


def test_a_stream_goes_on_on_other_numbers_of_ranks(server: Server, tmp_path: Path) -> None:
    """Four ranks are killed, two are stopped by SIGTERM, three go on: nothing is repeated or lost."""
    spec: dict[str, Any] = {"folder": str(tmp_path / "saved"), "stream": True, "steps": 12}
    first = server.ranks(4, **spec, save_at=[2, 4], die_at=5)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(2, **spec, save_at=[6, 8], stop_at=9)
    assert {life.code for life in second} == {-signal.SIGTERM}, second[0].said
    third = server.ranks(3, **spec, save_at=[])
    assert [life.code for life in third] == [0, 0, 0], third[0].said
    assert together(first)[:4] + together(second)[:4] + together(third) == expected_tokens(12)
