"""Ray Train: workers that die, and fewer of them, go on exactly; what could not go on is refused."""

from __future__ import annotations

import json
import os
import tempfile
from collections import UserDict
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, collective
from ray.train.v2.api.config import ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from tests.loader.streams.token_streams import stream_of

import seekable as sk
from seekable.integrations.ray import check_world_sizes, loader, report, restore

if TYPE_CHECKING:
    from collections.abc import Callable

# Ray's own options, set by Ray itself.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")

BATCH, STEPS, REPORT_EVERY = 4, 14, 2


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ray look after its workers often, and start no process that no test needs."""
    monkeypatch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")
    monkeypatch.setenv("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")


def pipeline(kind: str) -> Any:
    numbers = sk.from_sequence(range(40)).shuffle(seed=1)
    if kind == "dataset":
        return numbers.repeat(2)
    return stream_of(lanes=4).map(tokens)


def tokens(sequence: dict[str, Any]) -> list[int]:
    return [int(token) for token in sequence["tokens"]]


def fit(train: Callable[..., Any], folder: Path, workers: int, *, failures: int = 0, **config: Any) -> Any:
    return DataParallelTrainer(
        train,
        train_loop_config={"folder": str(folder), **config},
        scaling_config=ScalingConfig(num_workers=workers),
        run_config=RunConfig(
            name="run", storage_path=str(folder), failure_config=FailureConfig(max_failures=failures)
        ),
    ).fit()


class Deadly(UserDict[str, Any]):
    """Metrics with which a worker dies in `report`, where its state is written and that of others is sent."""

    def keys(self) -> NoReturn:
        os._exit(9)


def train(config: dict[str, Any]) -> None:
    """Log each batch, and report with weights; once one of two workers dies."""
    batches = loader(pipeline(config["kind"]), global_batch_size=BATCH, steps=STEPS, collate=list)
    resumed = restore(batches)
    assert resumed is (batches.step > 0)
    died = Path(config["folder"], "died")
    name = f"{batches.step:03d}-{batches.rank}-of-{batches.world_size}.jsonl"
    with Path(config["folder"], name).open("w") as log, tempfile.TemporaryDirectory() as folder:
        for batch in batches:
            print(json.dumps([batches.step, batch]), file=log, flush=True)
            collective.barrier()
            dies = batches.rank == 1 and batches.step == config["dies_at"] and not died.exists()
            if dies:
                died.touch()
            if batches.step % REPORT_EVERY == 0:
                Path(folder, f"weights-{batches.rank}").write_text(str(batches.step))
                report(batches, Deadly() if dies else {"step": batches.step}, folder=folder)
            elif dies:
                os._exit(9)


def delivered(folder: Path) -> list[list[Any]]:
    """Return the global batches: of each launch those before the first one of the next launch."""
    launches: dict[int, list[dict[int, list[Any]]]] = {}
    for path in sorted(folder.glob("*-of-*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        launches.setdefault(int(path.name[:3]), []).append(dict(lines))
    starts = [*sorted(launches), STEPS]
    return [
        [row for rows in zip_longest(*(share[step] for share in launches[start])) for row in rows]
        for start, end in pairwise(starts)
        for step in range(start + 1, end + 1)
    ]


@pytest.mark.usefixtures("quick", "ray_cluster")
def test_a_worker_that_dies_is_replaced_and_the_order_goes_on(tmp_path: Path) -> None:
    result = fit(train, tmp_path, 2, failures=1, kind="dataset", dies_at=5)
    assert len(list(tmp_path.glob("*-of-2.jsonl"))) == 4
    assert delivered(tmp_path) == alone("dataset")
    checkpoint = Path(result.checkpoint.path)
    assert {path.name for path in checkpoint.iterdir()} == {"seekable", "weights-0", "weights-1"}
    [state] = checkpoint.glob("seekable/state-*")  # none of an earlier step
    assert state.name == f"state-{STEPS:012d}-00000-of-00001.json"
    again = sk.Loader(pipeline("dataset"), batch_size=BATCH, collate=list)
    assert sk.load_state(state.parent, again)
    assert again.step == STEPS


@pytest.mark.usefixtures("quick", "ray_cluster")
def test_one_worker_goes_on_with_the_lanes_of_two_of_which_one_died_in_a_report(tmp_path: Path) -> None:
    with pytest.raises(ray.train.TrainingFailedError):
        fit(train, tmp_path, 2, kind="stream", dies_at=6)
    fit(train, tmp_path, 1, kind="stream", dies_at=None)
    halves = tmp_path.glob("run/checkpoint_*/seekable/state-*06-*-of-00002.json")
    assert {path.name for path in halves} <= {"state-000000000006-00000-of-00002.json"}
    assert len(list(tmp_path.glob("*.jsonl"))) == 3
    assert delivered(tmp_path) == alone("stream")


def alone(kind: str) -> list[list[int]]:
    """Return the batches of one process."""
    return list(sk.Loader(pipeline(kind), batch_size=BATCH, steps=STEPS, collate=list))


def refused(action: Callable[[], object]) -> str:
    try:
        action()
    except sk.SeekableError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def train_wrongly(config: dict[str, Any]) -> dict[str, str]:
    """Do what is refused; return what each was refused with, on rank 0."""
    found = {}
    batches = loader(pipeline("stream"), global_batch_size=BATCH, steps=STEPS, collate=list)
    run = iter(batches)
    next(run)
    alone = sk.Loader(pipeline("dataset"), batch_size=BATCH)
    found["another rank"] = refused(lambda: report(alone, {}))
    shared = Path(config["folder"], "shared")
    shared.mkdir(exist_ok=True)
    found["a shared folder"] = refused(lambda: report(batches, {}, folder=shared))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model").touch()
        ray.train.report({}, Checkpoint.from_directory(folder))
        found["no state"] = refused(lambda: restore(batches))
    if batches.rank:
        next(run)
        found["another step"] = refused(lambda: report(batches, {}))
        ray.train.report({})  # as a node that is reclaimed: the checkpoint is that of the other workers
        Path(config["folder"], "found.json").write_text(json.dumps(found))
    else:
        report(batches, {})
        found["half a state"] = refused(lambda: restore(batches))
    return found


@pytest.mark.usefixtures("quick", "ray_cluster")
def test_what_could_not_go_on_is_refused(tmp_path: Path) -> None:
    of_first = fit(train_wrongly, tmp_path, 2).return_value
    of_second = json.loads((tmp_path / "found.json").read_text())
    for found in (of_first, of_second):
        assert "the workers would repeat or leave out records" in found["another rank"]
        assert found["no state"].startswith("DataNotFound: ")
    assert "InvalidArgument: folder= must be" in of_first["a shared folder"] + of_second["a shared folder"]
    assert of_second["another step"].startswith("NotResumable: rank 1 reports step 2 of the pipeline xxh3:")
    assert of_first["half a state"].startswith("CorruptState: the checkpoint ")
    assert "state-000000000001-00000-of-00002.json" in of_first["half a state"]
    assert "00001-of-00002" not in of_first["half a state"]


def test_outside_of_ray_train_a_loader_is_one_rank() -> None:
    batches = loader(pipeline("dataset"), global_batch_size=BATCH, collate=list)
    assert (batches.rank, batches.world_size) == (0, 1)


def test_a_stream_without_a_state_is_refused_before_the_first_batch() -> None:
    forward = sk.from_iterable(lambda: iter(range(5)), version=1)
    with pytest.raises(sk.errors.NotResumable, match="replay=True"):
        loader(forward, global_batch_size=BATCH)


def test_outside_of_ray_train_nothing_is_reported() -> None:
    batches = loader(pipeline("dataset"), global_batch_size=BATCH, collate=list)
    with pytest.raises(RuntimeError, match="cannot be used outside of a Ray Train training function"):
        report(batches, {})
    with pytest.raises(RuntimeError, match="cannot be used outside of a Ray Train training function"):
        restore(batches)


@pytest.mark.parametrize(
    ("workers", "given", "sizes"),
    [
        pytest.param((2, 4), {}, [2, 3, 4], id="elastic"),
        pytest.param(3, {}, [3], id="fixed"),
        pytest.param(0, {}, [1], id="local"),
        pytest.param((8, 24), {"workers_per_node": 8}, [8, 16, 24], id="whole nodes"),
        pytest.param((1, 4), {"data": pipeline("dataset")}, [1, 2, 3, 4], id="dataset"),
    ],
)
def test_world_sizes_that_divide_the_batch_are_accepted(
    workers: int | tuple[int, int], given: dict[str, Any], sizes: list[int]
) -> None:
    scaling = ScalingConfig(num_workers=workers)
    assert check_world_sizes(scaling, global_batch_size=48, **given) == sizes


@pytest.mark.parametrize(
    ("workers", "given", "said"),
    [
        pytest.param((1, 5), {}, r"\[1, 2, 3, 4, 5\], of which \[5\] cannot train", id="batch"),
        pytest.param((1, 4), {"data": pipeline("stream")}, r"\[3\] cannot train: .*lanes", id="lanes"),
        pytest.param(5, {}, r"5 does not divide global_batch_size=48", id="fixed"),
        pytest.param((3, 5), {"workers_per_node": 8}, r"no multiple of workers_per_node=8", id="no size"),
        pytest.param(
            (23, 24), {"data": sk.from_sequence(range(50))}, r"\[23, 24\] cannot train", id="last batch"
        ),
    ],
)
def test_world_sizes_that_cannot_train_are_named(
    workers: int | tuple[int, int], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=said):
        check_world_sizes(ScalingConfig(num_workers=workers), global_batch_size=48, **given)
