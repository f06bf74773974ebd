"""Losses of logs of both kinds, and spikes against a loop with the median of statistics."""

from __future__ import annotations

import json
import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.viewer.facts.loss_log import ComparedLoss, LossLog, compared_loss, read_loss_log, spikes

if TYPE_CHECKING:
    from pathlib import Path


LOSSES = st.lists(st.sampled_from([1.0, 1.25, 1.5, 2.0, 9.0, math.nan, math.inf, -math.inf]), max_size=160)


def model(steps: list[int], losses: list[float]) -> list[tuple[int, float, float, bool]]:
    """Return step, median and MAD of each loss with 50 before it, and True for spikes, by a loop."""
    found, before = [], list[float]()
    for step, loss in zip(steps, losses, strict=True):
        if len(before) >= 50:
            last = before[-50:]
            median = statistics.median(last)
            mad = statistics.median(abs(each - median) for each in last)
            found.append((step, median, mad, not math.isfinite(loss) or loss > median + 6 * mad))
        if math.isfinite(loss):
            before.append(loss)
    return found


@given(LOSSES)
def test_spikes_are_those_of_the_loop(losses: list[float]) -> None:
    log = LossLog("x", np.arange(len(losses)) * 10, np.array(losses, dtype=np.float64), 0)
    found = spikes(log)
    wanted = [each[:3] for each in model(log.steps.tolist(), losses) if each[3]]
    assert [(spike.step, spike.median, spike.mad) for spike in found] == wanted
    json.dumps([spike.document() for spike in found], allow_nan=False)
    json.dumps(log.document(), allow_nan=False)


@given(LOSSES)
def test_each_loss_is_compared_as_in_the_loop(losses: list[float]) -> None:
    log = LossLog("x", np.arange(len(losses)) * 10, np.array(losses, dtype=np.float64), 0)
    compared = {step: compared_loss(log, step) for step in range(-1, 10 * len(losses) + 2)}
    found = {step: (each.median, each.mad) for step, each in compared.items() if each is not None}
    assert found == {step: (median, mad) for step, median, mad, _ in model(log.steps.tolist(), losses)}
    assert [log.loss_of(step) for step in log.steps.tolist()] == pytest.approx(losses, nan_ok=True)
    assert [log.loss_of(step) for step in (-1, 5, 10 * len(losses))] == [None, None, None]


def test_a_spike_says_how_many_times_it_is_above() -> None:
    assert ComparedLoss(7, 4.0, 2.0, 0.25).times == 8
    assert ComparedLoss(7, 4.0, 2.0, 0.0).times is None
    assert ComparedLoss(7, math.nan, 2.0, 0.25).times is None


def test_jsonl_of_a_resumed_run_with_lines_of_other_things(tmp_path: Path) -> None:
    lines = [
        *('{"step": 1, "loss": 3}', '{"step": 2, "loss": "2.5"}', '{"step": 2, "eval": 1}', "", "[1, 2]"),
        *("\x00", '{"step": 3, "loss": NaN}', '{"step": true, "loss": 1}', '{"step": 2.0, "loss": 2}'),
        *('{"step": 2.5, "loss": 2}', '{"step": 1e400, "loss": 1}', '{"step": -1, "loss": 1}'),
        *('{"step": 4, "loss": {}}', "[" * 9999, '{"step": 5, "lo'),
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(lines))
    log = read_loss_log(path)
    assert log.steps.tolist() == [1, 2, 3]
    assert log.losses[:2].tolist() == [3.0, 2.0]
    assert math.isnan(log.losses[2])
    assert log.left_out == 10


def test_csv_with_columns_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "export.CSV"
    path.write_text('"Step","run - train/loss","x"\n10,2.5,\n20,,1\n30,1.5\n')
    log = read_loss_log(path, step="Step", loss="run - train/loss")
    assert (log.steps.tolist(), log.losses.tolist(), log.left_out) == ([10, 30], [2.5, 1.5], 1)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"the first line has the fields 'Step', 'run - train/loss'"
    ):
        read_loss_log(path)


def test_a_field_that_csv_refuses_ends_the_log(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("step,loss\n1,2.5\n2," + "9" * 200_000 + "\n3,1\n")
    log = read_loss_log(path)
    assert (log.steps.tolist(), log.left_out) == ([1], 1)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00\n", b"step,loss\n"])
def test_a_log_without_losses_is_refused(tmp_path: Path, content: bytes) -> None:
    for name in ("train.jsonl", "train.csv"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(sk.errors.InvalidArgument, match=f"no line of .*{name} has a number as 'step'"):
            read_loss_log(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_loss_log(tmp_path / "none.jsonl")
