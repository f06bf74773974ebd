"""A sk.Loader in a Lightning module or data module goes with the trainer's checkpoint, batch for batch.

Each test trains in real processes; a killed one has logged each batch that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.integrations.lives import KILLED, Life, Server, together
from tests.integrations.records import SIZE, expected
from tests.loader.streams.token_streams import expected_tokens
from tests.thrift import turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EPOCH = 10
"""Batches of an epoch."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("lightning_train.py", tmp_path_factory.mktemp("lightning")) as server:
        yield server


class Training:
    """Lives of one training run, which share a folder of checkpoints."""

    def __init__(self, server: Server, folder: Path, **spec: Any) -> None:
        self.server = server
        self.spec = {"folder": str(folder), **spec}
        self.last: str | None = str(folder / "last.ckpt")

    def killed(self, after: int, **spec: Any) -> Life:
        """Train until a SIGKILL after so many batches of this life."""
        life = self.server.live(**{**self.spec, "die_after": after, **spec})
        assert life.code == KILLED, life.said
        assert len(life.ids()) == after
        return life

    def finished(self, **spec: Any) -> Life:
        """Train to the end."""
        life = self.server.live(**{**self.spec, **spec})
        assert life.code == 0, life.said
        return life

    def refused(self, **spec: Any) -> str:
        """Fail to train from the last checkpoint, and return what was said."""
        life = self.server.live(**{**self.spec, "resume": self.last, **spec})
        assert life.code == 1
        assert life.ids() == []
        return life.said

    def resumed(self, **spec: Any) -> Life:
        """Train from the last checkpoint to the end."""
        return self.finished(resume=self.last, **spec)


KINDS_OF_LOADER: dict[str, dict[str, Any]] = {
    "prefetch": {},
    "no prefetch": {"prefetch": 0},
    "workers": {"workers": 2},
    "drop": {"end": "drop"},
    "pad": {"end": "pad"},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("loader", "where"),
    [
        pytest.param(loader, where, id=f"{name}-{where}")
        for (name, loader), wheres in zip(
            KINDS_OF_LOADER.items(), turns(["module", "data module"], len(KINDS_OF_LOADER)), strict=True
        )
        for where in wheres
    ],
)
def test_a_killed_run_goes_on_from_the_checkpoint_in_the_middle_of_an_epoch(
    loader: dict[str, Any], where: str, server: Server, tmp_path: Path
) -> None:
    training = Training(
        server,
        tmp_path,
        data_module=where == "data module",
        loader=loader,
        trainer={"max_epochs": 3},
        saver={"every_n_train_steps": 4},
    )
    first, second = training.killed(after=14), training.resumed()
    count = 3 * (SIZE // 4 if loader.get("end") == "drop" else EPOCH)
    assert first.ids()[:12] + second.ids() == expected(count, **loader)


def test_a_run_is_resumed_twice_in_one_epoch(server: Server, tmp_path: Path) -> None:
    """KempnerForge #57: the second resume in an epoch was off."""
    training = Training(server, tmp_path, trainer={"max_epochs": 2}, saver={"every_n_train_steps": 1})
    lives = [training.killed(after=3), training.killed(after=4, resume=training.last), training.resumed()]
    assert [ids for life in lives for ids in life.ids()] == expected(2 * EPOCH)


@pytest.mark.parametrize("after", [1, EPOCH - 1, EPOCH, EPOCH + 1, 2 * EPOCH])
def test_no_epoch_is_empty_and_none_comes_twice(after: int, server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, trainer={"max_epochs": 3}, saver={"every_n_train_steps": 1})
    first, second = training.killed(after=after), training.resumed()
    assert first.ids() + second.ids() == expected(3 * EPOCH)


def test_a_finished_run_is_given_more_epochs(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, trainer={"max_epochs": 1})
    first, second = training.finished(), training.resumed(trainer={"max_epochs": 3})
    assert first.ids() + second.ids() == expected(3 * EPOCH)


def test_checkpoints_of_ends_of_epochs_lead_to_the_next_epoch(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, trainer={"max_epochs": 3}, saver={"save_on_train_epoch_end": True})
    first, second = training.killed(after=2 * EPOCH + 3), training.resumed()
    assert first.ids()[: 2 * EPOCH] + second.ids() == expected(3 * EPOCH)


def test_a_pass_is_a_run_of_several_epochs(server: Server, tmp_path: Path) -> None:
    training = Training(
        server, tmp_path, loader={"epochs": 2}, trainer={"max_epochs": 2}, saver={"every_n_train_steps": 1}
    )
    passes = -(-2 * SIZE // 4)
    first, second, third = (
        training.killed(11),
        training.killed(passes - 11, resume=training.last),
        training.resumed(),
    )
    assert first.ids() + second.ids() + third.ids() == expected(2 * passes, epochs=2)


@pytest.mark.parametrize("after", [13, 20])
def test_steps_bound_the_run(after: int, server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, trainer={"max_steps": 23}, saver={"every_n_train_steps": 1})
    first, second = training.killed(after=after), training.resumed()
    assert first.ids() + second.ids() == expected(23)


def test_accumulated_gradients_are_whole(server: Server, tmp_path: Path) -> None:
    """Lightning steps on each third batch and on the last of an epoch: after 13 batches, the fifth time."""
    training = Training(
        server,
        tmp_path,
        trainer={"max_epochs": 3, "accumulate_grad_batches": 3},
        saver={"every_n_train_steps": 1},
    )
    first, second = training.killed(after=15), training.resumed()
    assert first.ids()[:13] + second.ids() == expected(3 * EPOCH)


def test_validation_in_between_sees_the_same_records_each_time(server: Server, tmp_path: Path) -> None:
    training = Training(
        server,
        tmp_path,
        val={},
        trainer={"max_epochs": 2, "val_check_interval": 5, "num_sanity_val_steps": 2},
        saver={"every_n_train_steps": 3},
    )
    first, second = training.killed(after=14), training.resumed()
    assert first.ids()[:12] + second.ids() == expected(2 * EPOCH)
    one = [[1000, 1001, 1002], [1003, 1004, 1005], [1006, 1007, 1008], [1009]]
    assert first.ids("val") == one[:2] + one * 2
    assert second.ids("val") == one * 2


def test_validation_that_is_cut_short_begins_anew_each_time(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, val={}, trainer={"max_epochs": 3, "limit_val_batches": 2})
    assert training.finished().ids("val") == [[1000, 1001, 1002], [1003, 1004, 1005]] * 4


@pytest.mark.parametrize("bound", ["loader", "trainer"])
@pytest.mark.parametrize("after", [4, 6, 8])
def test_passes_that_are_cut_short(after: int, bound: str, server: Server, tmp_path: Path) -> None:
    by_loader = bound == "loader"
    training = Training(
        server,
        tmp_path,
        loader={"steps": 6} if by_loader else {},
        trainer={"max_epochs": 3, **({} if by_loader else {"limit_train_batches": 6})},
        saver={"every_n_train_steps": 1},
    )
    first = training.killed(after=after)
    if after == 6 and not by_loader:
        # The state lies in epoch 0, the trainer in epoch 1: as after a run that max_steps has ended.
        assert "steps=" in training.refused()
        training.spec |= {"loader": {"steps": 6}, "trainer": {"max_epochs": 3}}
    batches = expected(3 * EPOCH)
    assert first.ids() + training.resumed().ids() == [*batches[:6], *batches[10:16], *batches[20:26]]


def test_a_run_that_ended_within_an_epoch_goes_on_from_a_step(server: Server, tmp_path: Path) -> None:
    """What Lightning writes at its end says that the epoch is over, and that batches of it are left."""
    training = Training(server, tmp_path, trainer={"max_steps": 5}, saver={"every_n_train_steps": 5})
    first, second = training.finished(save_at_end=True), training.resumed(trainer={"max_steps": 23})
    assert first.ids() + second.ids() == expected(23)
    training.last = str(tmp_path / "end.ckpt")
    assert "every_n_train_steps=" in training.refused(trainer={"max_steps": 23})


@pytest.mark.parametrize("after", [7, 10, 12])
def test_loaders_of_one_length_go_on_together(after: int, server: Server, tmp_path: Path) -> None:
    """The one of them is made as long as the other: it would go round on its own, unseen by the trainer."""
    other = {"size": 9, "batch_size": 2, "endless": True, "steps": EPOCH}
    training = Training(
        server, tmp_path, short=other, trainer={"max_epochs": 2}, saver={"every_n_train_steps": 1}
    )
    first, second = training.killed(after=after), training.resumed()
    assert first.ids() + second.ids() == expected(2 * EPOCH)
    assert first.ids("short") + second.ids("short") == expected(2 * EPOCH, **other)


@pytest.mark.parametrize("after", [4, 5, 8, 10, 13, 15])
def test_a_shorter_loader_is_begun_anew_within_a_pass(after: int, server: Server, tmp_path: Path) -> None:
    """The trainer begins pass 1 of both with run 1, and lets the shorter one go on with the run after it."""
    other = {"size": 9, "batch_size": 2}
    training = Training(
        server, tmp_path, short=other, trainer={"max_epochs": 2}, saver={"every_n_train_steps": 1}
    )
    first, second = training.killed(after=after), training.resumed()
    assert first.ids() + second.ids() == expected(2 * EPOCH)
    runs = expected(15, **other)
    assert first.ids("short") + second.ids("short") == runs[:10] + runs[5:]


@pytest.mark.parametrize(("mode", "epoch"), [("max_size_cycle", EPOCH), ("max_size", EPOCH), ("min_size", 5)])
def test_each_mode_of_a_combined_loader_goes_on_exactly(
    mode: str, epoch: int, server: Server, tmp_path: Path
) -> None:
    """From each step within a pass, on both sides of the end of the shorter one."""
    spec: dict[str, Any] = {"mode": mode, "short": {"size": 9, "batch_size": 2}}
    spec |= {"trainer": {"max_epochs": 2}, "saver": {"every_n_train_steps": 1}}
    whole = Training(server, tmp_path / "whole", **spec).finished()
    assert len(whole.ids()) == 2 * epoch
    for after in sorted({1, 4, 6, epoch + 1, 2 * epoch - 1} - {epoch}):
        training = Training(server, tmp_path / str(after), **spec)
        first, second = training.killed(after=after), training.resumed()
        assert first.ids() + second.ids() == whole.ids(), after
        assert first.ids("short") + second.ids("short") == whole.ids("short"), after


def test_min_size_at_the_end_of_a_pass_and_sequential_are_refused(server: Server, tmp_path: Path) -> None:
    spec: dict[str, Any] = {"short": {"size": 9, "batch_size": 2}}
    spec |= {"trainer": {"max_epochs": 2}, "saver": {"every_n_train_steps": 1}}
    training = Training(server, tmp_path / "min", mode="min_size", **spec)
    training.killed(after=5)
    assert "steps= of a pass's batches" in training.refused()
    training = Training(server, tmp_path / "sequential", mode="sequential", **spec)
    training.last = None
    assert "sequential" in training.refused()


def test_data_without_an_end_is_refused_where_lightning_would_read_ahead(
    server: Server, tmp_path: Path
) -> None:
    life = server.live(folder=str(tmp_path), loader={"endless": True}, trainer={"max_steps": 20})
    assert life.code == 1
    assert life.ids() == []
    for way_out in ("StoppedIterator", "steps=", "limit_train_batches="):
        assert way_out in life.said


@pytest.mark.parametrize("after", [6, 8, 12])
@pytest.mark.parametrize("bound", ["loader", "trainer", "far away"])
def test_data_without_an_end_is_bounded(bound: str, after: int, server: Server, tmp_path: Path) -> None:
    limits = {"limit_train_batches": 6} if bound == "trainer" else {}
    steps = {"loader": {"steps": 6}, "far away": {"steps": 10**12}}.get(bound, {})
    training = Training(
        server,
        tmp_path,
        loader={"endless": True, **steps},
        trainer={"max_steps": 20, **limits},
        saver={"every_n_train_steps": 1},
    )
    first, second = training.killed(after=after), training.resumed()
    assert first.ids() + second.ids() == expected(20, endless=True)


def test_ranks_share_batches_and_their_number_may_change(server: Server, tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "folder": str(tmp_path),
        "loader": {"end": "pad"},
        "saver": {"every_n_train_steps": 1},
        "trainer": {"max_epochs": 2, "strategy": "ddp"},
    }
    several = {**spec["trainer"], "devices": 2}
    first = server.ranks(2, **{**spec, "trainer": several, "die_after": 4})
    assert [life.code for life in first] == [KILLED, KILLED], first[0].said + first[1].said
    resume = str(tmp_path / "last.ckpt")
    [second] = server.ranks(1, **spec, resume=resume, die_after=7)
    third = server.ranks(2, **{**spec, "trainer": several, "resume": resume})
    assert [life.code for life in third] == [0, 0], third[0].said + third[1].said
    batches = [*together(first), *together([second]), *together(third)]
    assert batches == [sorted(batch) for batch in expected(2 * EPOCH, end="pad")]


STREAM: dict[str, Any] = {"stream": {"steps": 1_000_000}, "saver": {"every_n_train_steps": 2}}


def test_a_stream_goes_on_on_other_numbers_of_ranks(server: Server, tmp_path: Path) -> None:
    """Four ranks are killed, two are stopped by SIGTERM, three go on: nothing is repeated or lost."""
    trainer = {"max_steps": 12, "strategy": "ddp"}
    spec: dict[str, Any] = {"folder": str(tmp_path), **STREAM}
    resume = str(tmp_path / "last.ckpt")
    first = server.ranks(4, **spec, trainer={**trainer, "devices": 4}, die_after=5)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(2, **spec, trainer={**trainer, "devices": 2}, resume=resume, stop_after=3)
    assert 0 not in {life.code for life in second}, second[0].said
    third = server.ranks(3, **spec, trainer={**trainer, "devices": 3}, resume=resume)
    assert [life.code for life in third] == [0, 0, 0], third[0].said
    assert together(first)[:4] + together(second)[:2] + together(third) == expected_tokens(12)


def test_a_stream_whose_checkpoints_would_have_one_rank_is_refused_before_the_first_batch(
    server: Server, tmp_path: Path
) -> None:
    spec: dict[str, Any] = {"folder": str(tmp_path), **STREAM, "bare": True}
    lives = server.ranks(2, **spec, trainer={"max_steps": 4, "strategy": "ddp", "devices": 2})
    for life in lives:
        assert (life.code != 0, life.ids()) == (True, [])
    assert any("give the trainer loader.stateful()" in life.said for life in lives)
