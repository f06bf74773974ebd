"""The open data, pipelines and folders of states of a viewer, each under a name."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, KeyNotFound, WrongType
from seekable.formats.shar.shar_source import DataSource
from seekable.loader.loader import Loader
from seekable.nodes.bases import leaves_of
from seekable.nodes.contract import Leaf
from seekable.stream.stream import Stream
from seekable.viewer.facts.sources import data_of, source_names, source_nodes
from seekable.viewer.jobs import Jobs
from seekable.viewer.media_roots import MediaRoots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable.parallel.progress import ProgressHook
    from seekable.viewer.facts.loss_log import LossLog
    from seekable.viewer.jobs import Job

T = TypeVar("T")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class OpenPipeline:
    """A pipeline whose order is shown."""

    pipeline: Loader | Stream
    notes: tuple[str, ...] = ()
    """Facts that are not known, with their reasons."""

    saved: int | None = None
    """The step of the state that it was rebuilt from, the newest one; None for others."""

    has_batch: bool = True
    """False where nobody said how many records make a batch, so that a step is a record."""

    @property
    def is_stream(self) -> bool:
        """True if the content of records decides their order."""
        return not isinstance(self.pipeline, Loader) or not isinstance(self.pipeline.dataset, Dataset)

    @property
    def loader(self) -> Loader:
        """The loader of a dataset.

        Raises:
            KeyNotFound: it is a stream, whose content decides its order.
        """
        if not isinstance(self.pipeline, Loader) or not isinstance(self.pipeline.dataset, Dataset):
            message = "the content of a stream decides what is in a batch: only its stages are shown"
            raise KeyNotFound(message)
        return self.pipeline


class Kept:
    """Results that pages show again: made once, and the oldest dropped beyond a number."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """Return the value of a key, made by calling ``make`` if it is not kept."""
        with self._lock:
            if key in self._values:
                found: T = self._values[key]
                return found
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                del self._values[next(iter(self._values))]
        return value

    def clear(self) -> None:
        """Drop all values that are kept."""
        with self._lock:
            self._values.clear()


class StillOpening(Exception):
    """The index of data is not complete yet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class Opened:
    """The objects that the addresses of a viewer name."""

    datasets: dict[str, Dataset]
    """More come when data that is opened in the background is ready."""

    pipelines: Mapping[str, OpenPipeline]
    states: Mapping[str, str]
    """Folders of states, absolute."""

    paths: Mapping[str, str] = field(default_factory=dict)
    """What the user named each dataset."""

    unopened: Mapping[str, str] = field(default_factory=dict)
    """Why there is no pipeline of a folder of states, by the name of the folder."""

    logs: Mapping[str, LossLog] = field(default_factory=dict)
    """The losses of runs, by the names of their pipelines."""

    text_key: str | None = None
    tokenizer: str | None = None
    sample: int = 1000
    scans: bool = True
    """True if pages may sample records by themselves."""

    media: MediaRoots = field(default_factory=lambda: MediaRoots(()))
    """The folders below which files that records name are read."""

    index_dir: str | None = None
    """The folder of the indexes, if the user named one."""

    jobs: Jobs = field(default_factory=Jobs)
    opening: dict[str, Job] = field(default_factory=dict)
    """The jobs that open data in the background, by the name of the data."""

    openers: dict[str, Callable[[ProgressHook], Dataset]] = field(default_factory=dict)
    """Functions that open data, and report the progress of its index, by the name of the data."""

    kept: Kept = field(default_factory=Kept)

    def dataset(self, name: str) -> Dataset:
        """Return an open dataset.

        Raises:
            StillOpening: its index is not complete.
            KeyNotFound: there is none of the name.
        """
        job = self.opening.get(name)
        if job is not None and (job.is_live or name not in self.datasets):
            raise StillOpening(name)
        return _of(self.datasets, name, "dataset")

    def pipeline(self, name: str) -> OpenPipeline:
        """Return an open pipeline; errors as of ``dataset``."""
        return _of(self.pipelines, name, "pipeline")

    def folder(self, name: str) -> str:
        """Return a folder of states; errors as of ``dataset``."""
        return _of(self.states, name, "folder of states")

    def linked(self, place: Any) -> dict[str, Any]:
        """Return the dataset and the row of a place, for a link; both are None if its data is not open."""
        while isinstance(place, list | tuple) and place:
            place = place[0]
        path = getattr(place, "path", None)
        found = None if path is None else self.kept.get(("first row", path), lambda: self._first_row(path))
        if found is None:
            return {"dataset": None, "number": None}
        return {"dataset": found[0], "number": found[1] + place.row}

    def _first_row(self, path: str) -> tuple[str, int] | None:
        """Return the dataset with a file, and the number of the file's first row; None if it is not open."""
        for name, dataset in self.datasets.items():
            rows = dataset.node.rows_of(path, 0) if isinstance(dataset.node, Leaf) else []
            if rows:
                return name, rows[0]
        return None


def opened_of(
    targets: Mapping[str, Any],
    *,
    datasets: dict[str, Dataset] | None = None,
    folders: Mapping[str, str] | None = None,
    logs: Mapping[str, LossLog] | None = None,
    **more: Any,
) -> Opened:
    """Return what is open, of datasets, streams, loaders and folders of states by name.

    Data that a pipeline reads is open too, under the names of its files.

    Args:
        targets: the objects, and the paths of folders of states.
        datasets: data that is open already; it is added to.
        folders: more folders of states, which may have the names of their pipelines.
        logs: the losses of runs, by the names of pipelines; under an empty name those of the only run.
        more: further fields of ``Opened``.

    Raises:
        WrongType: a target is of another type.
        InvalidArgument: a log is of no pipeline, or of several.
    """
    datasets = {} if datasets is None else datasets
    pipelines: dict[str, OpenPipeline] = {}
    states = {name: os.path.abspath(folder) for name, folder in (folders or {}).items()}
    for given, target in targets.items():
        name = safe_name(given)
        if isinstance(target, Dataset) and _is_data(target):
            datasets[name] = target
        elif isinstance(target, Dataset):
            pipelines[name] = OpenPipeline(_single(target), has_batch=False)
        elif isinstance(target, Loader | Stream):
            pipelines[name] = OpenPipeline(target)
        elif isinstance(target, OpenPipeline):
            pipelines[name] = target
        elif isinstance(target, str | os.PathLike):
            states[name] = os.path.abspath(target)
        else:
            message = (
                f"a Dataset, a Stream or a Loader can be viewed (got {given!r}: {type(target).__name__})"
            )
            raise WrongType(message)
    for pipeline in pipelines.values():
        _add_sources(pipeline, datasets)
    return Opened(datasets, pipelines, states, logs=_logs(logs or {}, pipelines), **more)


def _logs(given: Mapping[str, LossLog], pipelines: Mapping[str, OpenPipeline]) -> dict[str, LossLog]:
    """Return the logs by the pipelines that they are of; without a run, one without a name is left out.

    Raises:
        InvalidArgument: there is no pipeline of a name, or a log without one may be of several.
    """
    runs = [name for name, each in pipelines.items() if each.has_batch and isinstance(each.pipeline, Loader)]
    found: dict[str, LossLog] = {}
    for name, log in given.items():
        if name not in pipelines and (name or len(runs) > 1):
            ways = ", ".join(f"{run}={log.path}" for run in runs) or "none, because no run is open"
            message = (
                f"the log {log.path!r} is of no pipeline {name!r}: name one, as in {ways}"
                if name
                else f"the log {log.path!r} may be of {len(runs)} runs: name the one, as in {ways}"
            )
            raise InvalidArgument(message)
        if name or runs:
            found[name or runs[0]] = log
    return found


def safe_name(name: str) -> str:
    """Return a name as it stands in addresses.

    Example:
        >>> safe_name("corpus v2/*.jsonl")
        'corpus-v2-.jsonl'
    """
    return _UNSAFE.sub("-", name).strip("-") or "data"


def _is_data(dataset: Dataset) -> bool:
    """Return True for records of files as they are, False for a pipeline over them."""
    return not dataset.node.children or isinstance(dataset.node, DataSource)


def _single(dataset: Dataset) -> Loader:
    return Loader(dataset, batch_size=1, epochs=None, collate=list, prefetch=0)


def _add_sources(pipeline: OpenPipeline, datasets: dict[str, Dataset]) -> None:
    """Add the data that a pipeline reads to the datasets, unless the same files are there."""
    root = pipeline.pipeline.dataset if isinstance(pipeline.pipeline, Loader) else pipeline.pipeline
    if not isinstance(root, Dataset):
        return
    known = {leaf.fingerprint for dataset in datasets.values() for leaf in leaves_of(dataset.node)}
    for name, source in zip(source_names(root.node), source_nodes(root.node), strict=True):
        for leaf in map(data_of, leaves_of(source)):
            if leaf is not None and leaf.fingerprint not in known:
                known.add(leaf.fingerprint)
                own = name if name != "data" else _source_name(leaf)
                datasets[free_name(safe_name(own), datasets)] = Dataset(leaf)


def _source_name(leaf: Any) -> str:
    """Return a short name of the files of a source."""
    path = leaf.files.path(0) if len(leaf.files) else "data"
    name = os.path.basename(os.path.dirname(path)) if len(leaf.files) > 1 else os.path.basename(path)
    return name.partition(".")[0] or name


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name, with a number behind it if it is taken.

    Example:
        >>> free_name("web", {"web": 0, "web-2": 0})
        'web-3'
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _of(found: Mapping[str, T], name: str, what: str) -> T:
    if name not in found:
        there = ", ".join(found) or "none"
        message = f"there is no {what} {name!r} (open are: {there})"
        raise KeyNotFound(message)
    return found[name]
