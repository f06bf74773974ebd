"""Hugging Face's Trainer on a seekable dataset goes on from its checkpoints, batch for batch."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.integrations.lives import KILLED, Life, Server, together
from tests.integrations.records import expected
from tests.loader.streams.token_streams import BATCH, expected_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EPOCH = 10
"""Batches of an epoch."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server("transformers_train.py", tmp_path_factory.mktemp("transformers")) as server:
        yield server


class Training:
    """Lives of one training run, which share a folder of checkpoints."""

    def __init__(
        self, server: Server, folder: Path, *, data: dict[str, Any] | None = None, **arguments: Any
    ) -> None:
        self.server = server
        self.spec: dict[str, Any] = {"folder": str(folder), "data": data or {}}
        self.arguments = {"num_train_epochs": 3, "save_steps": 1, **arguments}

    def live(self, *, after: int | None = None, resume: bool | str = True, **arguments: Any) -> Life:
        """Train from the last checkpoint, or from the start, to the end or to a SIGKILL."""
        given = {**self.arguments, **arguments}
        life = self.server.live(**self.spec, arguments=given, die_after=after, resume=resume)
        assert life.code == (0 if after is None else KILLED), life.said
        return life

    def refused(self, **arguments: Any) -> str:
        """Fail to train from the last checkpoint, and return what was said."""
        life = self.server.live(**self.spec, arguments={**self.arguments, **arguments}, resume=True)
        assert life.code == 1
        assert life.ids() == []
        return life.said


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("accumulated", "after"), [(2, 12), (1, 1), (1, 9), (1, 10), (1, 11), (2, 4), (3, 10), (3, 23)]
)
def test_a_killed_run_goes_on_from_the_checkpoint(
    accumulated: int, after: int, server: Server, tmp_path: Path
) -> None:
    """With 3 accumulated, an epoch of 10 batches has a step of one batch at its end."""
    training = Training(server, tmp_path, gradient_accumulation_steps=accumulated)
    first, second = training.live(after=after, resume=False), training.live()
    assert first.ids() + second.ids() == expected(3 * EPOCH)
    assert second.ids("done") == [[3 * -(-EPOCH // accumulated), 300]]


def test_a_run_is_resumed_twice_in_one_epoch_and_what_was_not_saved_comes_again(
    server: Server, tmp_path: Path
) -> None:
    training = Training(server, tmp_path, save_steps=3)
    lives = [training.live(after=5, resume=False), training.live(after=5), training.live()]
    first, second, third = [life.ids() for life in lives]
    assert first[:3] + second[:3] + third == expected(3 * EPOCH)


@pytest.mark.parametrize(
    ("arguments", "loader"),
    [
        ({"dataloader_num_workers": 2}, {}),
        ({"dataloader_drop_last": True}, {"end": "drop"}),
        ({"seed": 5, "data_seed": 6}, {}),
    ],
    ids=["workers", "drop", "seeds"],
)
def test_what_the_arguments_say_of_the_loader_holds(
    arguments: dict[str, Any], loader: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    training = Training(server, tmp_path, num_train_epochs=2, **arguments)
    epoch = 9 if loader else EPOCH
    first = training.live(after=epoch + 3, resume=False, dataloader_num_workers=0)
    second = training.live()
    assert first.ids() + second.ids() == expected(2 * epoch, **loader)


def test_checkpoints_of_epochs_lead_to_the_next_one(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, save_strategy="epoch")
    first, second = training.live(after=EPOCH + 4, resume=False), training.live()
    assert first.ids()[:EPOCH] + second.ids() == expected(3 * EPOCH)


def test_a_number_of_steps_ends_the_run_and_more_of_them_go_on(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path)
    first, second = training.live(resume=False, max_steps=13), training.live(max_steps=24)
    assert first.ids() + second.ids() == expected(24)


def test_data_without_an_end_goes_on(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, data={"endless": True}, max_steps=12, gradient_accumulation_steps=2)
    first, second = training.live(after=14, resume=False), training.live()
    assert first.ids() + second.ids() == expected(24, endless=True)


def test_a_finished_run_over_data_without_an_end_trains_no_further(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, data={"endless": True}, max_steps=4)
    first, second = training.live(resume=False), training.live()
    assert (first.ids(), second.ids()) == (expected(4, endless=True), [])
    assert training.live(max_steps=6).ids() == expected(6, endless=True)[4:]


def test_evaluation_in_between_changes_nothing(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path, eval_strategy="steps", eval_steps=5, num_train_epochs=1)
    first, second = training.live(after=7, resume=False), training.live()
    assert first.ids() + second.ids() == expected(EPOCH)
    once = [[*range(1000, 1008)], [1008, 1009]]
    assert (first.ids("val"), second.ids("val")) == (once, once)


def test_nothing_is_read_again(server: Server, tmp_path: Path) -> None:
    """What the trainer does without this is to read all batches before, and to throw them away."""
    training = Training(server, tmp_path, num_train_epochs=1)
    first = training.live(after=8, resume=False)
    training.spec["log_reads"] = True
    second = training.live()
    read = sorted(number for [number] in second.ids("read"))
    assert read == sorted(number for batch in second.ids() for number in batch)
    assert first.ids() + second.ids() == expected(EPOCH)


def test_a_checkpoint_of_other_steps_is_refused(server: Server, tmp_path: Path) -> None:
    """NeMo-RL PR 2519: what does not fit the checkpoint was skipped over in silence."""
    training = Training(server, tmp_path)
    training.live(after=3, resume=False)
    said = training.refused(per_device_train_batch_size=3)
    assert "InvalidArgument" in said
    assert "epoch 0 after 4 batches of 3 records" in said
    assert "epoch 0 after 3: keep the product of per_device_train_batch_size" in said
    assert training.live(per_device_train_batch_size=2, gradient_accumulation_steps=2, after=2).ids() == [
        batch for pair in expected(4)[3:] for batch in (pair[:2], pair[2:])
    ]


def test_a_checkpoint_of_other_data_is_refused(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path)
    training.live(after=3, resume=False)
    training.spec["data"] = {"size": 38}
    said = training.refused()
    assert "StateMismatch" in said
    assert "37" in said
    assert "38" in said


def test_a_checkpoint_without_a_state_is_refused_unless_data_is_not_to_be_skipped(
    server: Server, tmp_path: Path
) -> None:
    training = Training(server, tmp_path, num_train_epochs=2)
    first = training.live(after=13, resume=False)
    shutil.rmtree(tmp_path / "checkpoint-13" / "seekable")
    said = training.refused()
    assert "DataNotFound" in said
    assert "ignore_data_skip=True" in said
    anew = training.live(ignore_data_skip=True)
    assert first.ids()[:EPOCH] + anew.ids()[:7] == expected(EPOCH + 7)


def test_an_order_of_the_trainers_own_is_refused(server: Server, tmp_path: Path) -> None:
    training = Training(server, tmp_path)
    training.live(after=1, resume=False)
    said = training.refused(train_sampling_strategy="group_by_length")
    assert "train_sampling_strategy='group_by_length' chooses an order" in said


def test_ranks_share_batches_and_their_number_may_change(server: Server, tmp_path: Path) -> None:
    arguments = {"num_train_epochs": 2, "save_steps": 1}
    spec: dict[str, Any] = {"folder": str(tmp_path), "resume": True}
    two = {**arguments, "per_device_train_batch_size": 2, "ddp_backend": "gloo"}
    first = server.ranks(2, **{**spec, "resume": False}, arguments=two, die_after=4)
    assert [life.code for life in first] == [KILLED, KILLED], first[0].said + first[1].said
    one = {**arguments, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    second = server.live(**spec, arguments=one, die_after=11 + 4)  # the rest of the epoch, and two steps more
    assert second.code == KILLED, second.said
    third = server.ranks(2, **spec, arguments=two)
    assert [life.code for life in third] == [0, 0], third[0].said + third[1].said
    order = [number for batch in expected(2 * EPOCH) for number in batch]
    assert [number for batch in second.ids() for number in batch] == order[16 : 37 + 8]
    batches = [sorted(batch) for batch in expected(2 * EPOCH, end="pad")]
    assert together(first) == batches[:4]
    assert together(third) == batches[EPOCH + 2 :]


def test_a_stream_goes_on_on_other_numbers_of_ranks(server: Server, tmp_path: Path) -> None:
    """Four ranks are killed, two are stopped by SIGTERM, three go on: nothing is repeated or lost."""

    def arguments(ranks: int) -> dict[str, Any]:
        shares = {"per_device_train_batch_size": BATCH // ranks, "ddp_backend": "gloo"}
        return {"max_steps": 12, "save_steps": 2, **shares}

    spec: dict[str, Any] = {"folder": str(tmp_path), "stream": {}}
    first = server.ranks(4, **spec, arguments=arguments(4), die_after=5)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(2, **spec, arguments=arguments(2), resume=True, stop_after=5)
    assert {life.code for life in second} == {-signal.SIGTERM}, second[0].said
    third = server.ranks(3, **spec, arguments=arguments(3), resume=True)
    assert [life.code for life in third] == [0, 0, 0], third[0].said
    assert together(first)[:4] + together(second)[:4] + together(third) == expected_tokens(12)


def test_processes_of_one_copy_get_the_same_records(server: Server, tmp_path: Path) -> None:
    """Two copies on two processes each are killed, one on four goes on, then two ranks without a mesh."""

    def arguments(ranks: int) -> dict[str, Any]:
        shares = {"per_device_train_batch_size": BATCH // ranks, "ddp_backend": "gloo"}
        return {"max_steps": 8, "save_steps": 2, **shares}

    spec: dict[str, Any] = {"folder": str(tmp_path), "stream": {}}
    mesh = {"dp_shard_size": 2, "tp_size": 2}
    first = server.ranks(4, **spec, arguments=arguments(2), mesh=mesh, die_after=3)
    assert {life.code for life in first} == {KILLED}, first[0].said
    second = server.ranks(4, **spec, arguments=arguments(1), mesh={"tp_size": 4}, resume=True, die_after=3)
    assert {life.code for life in second} == {KILLED}, second[0].said
    third = server.ranks(2, **spec, arguments=arguments(2), resume=True)
    assert [life.code for life in third] == [0, 0], third[0].said
    assert [life.ids() for life in first[::2]] == [life.ids() for life in first[1::2]]
    assert all(life.ids() == second[0].ids() for life in second)
    assert together(first[::2])[:2] + together(second[:1])[:2] + together(third) == expected_tokens(8)


def test_copies_without_a_mesh_are_refused(server: Server, tmp_path: Path) -> None:
    """DeepSpeed's AutoTP makes no mesh that Accelerate has: who gets which records is not known."""
    given = {"max_steps": 2, "ddp_backend": "gloo"}
    for life in server.ranks(2, folder=str(tmp_path), arguments=given, autotp=2):
        assert (life.code, life.ids()) == (1, [])
        assert "InvalidArgument" in life.said
        assert "must have 8 records, and the trainer counts 4: some of the 2 processes" in life.said


@pytest.mark.parametrize(
    ("stream", "arguments", "said"),
    [
        ({"seed": 2}, {}, "shuffle: seed was 1, is 2"),
        ({}, {"per_device_train_batch_size": 6}, "its count of optimizer steps says epoch 0 after 2"),
    ],
)
def test_a_checkpoint_that_does_not_fit_a_stream_is_refused(
    stream: dict[str, Any], arguments: dict[str, Any], said: str, server: Server, tmp_path: Path
) -> None:
    given = {"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": BATCH}
    assert server.live(folder=str(tmp_path), stream={}, arguments={**given, "max_steps": 2}).code == 0
    life = server.live(folder=str(tmp_path), stream=stream, arguments={**given, **arguments}, resume=True)
    assert (life.code, life.ids()) == (1, [])
    assert said in life.said
