"""What a viewer has open, each under a name: data, also while its index is built, pipelines and states."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, KeyNotFound, SeekableError, WrongType
from seekable.formats.classify import find_data
from seekable.formats.shar.shar_source import DataSource
from seekable.loader.loader import Loader
from seekable.loader.positioned import first_step, position_of, step_of
from seekable.nodes.bases import leaves_of
from seekable.nodes.node import LeafNode, node_of
from seekable.stream.stream import Stream
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.named_sources import data_of, source_names, source_nodes
from seekable.viewer.jobs import Jobs, hooked
from seekable.viewer.media import MediaRoots

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from seekable.loader.step_plan import Coming
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.viewer.facts.loss_log import LossLog
    from seekable.viewer.jobs import Partial, ViewerJob

_Value = TypeVar("_Value")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SOON_SECONDS = 1.0
_MOST_NAMED = 20
_FILES_SHOWN = 3
_HEAD_BYTES = 1000
_HEAD_LINES = 5


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
        return not isinstance(self.pipeline, Loader) or not isinstance(self.root, Dataset)

    @property
    def root(self) -> Dataset | Stream:
        """The dataset or the stream that the pipeline runs."""
        return self.pipeline.dataset if isinstance(self.pipeline, Loader) else self.pipeline

    @property
    def loader(self) -> Loader:
        """The loader of a dataset.

        Raises:
            KeyNotFound: it is a stream, whose content decides its order.
        """
        if not isinstance(self.pipeline, Loader) or self.is_stream:
            message = "the content of a stream decides what is in a batch: only its stages are shown"
            raise KeyNotFound(message)
        return self.pipeline


class PageCache:
    """Results that pages show again: made once, and the oldest dropped beyond a number."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key, made by calling ``make`` if it is not kept."""
        with self._lock:
            if key in self._values:
                found: _Value = self._values[key]
                return found
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                del self._values[next(iter(self._values))]
        return value

    def peek(self, key: Any) -> Any:
        """Return the value of a key; None if it is not kept."""
        with self._lock:
            return self._values.get(key)

    def last(self, key: Any, work: Iterable[_Value]) -> _Value:
        """Return the last result of a generator, which runs if the result is not kept."""
        return self.get(key, lambda: list(work)[-1])

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
    opening: dict[str, ViewerJob] = field(default_factory=dict)
    """The jobs that open data in the background, by the name of the data."""

    openers: dict[str, Callable[[ProgressHook], Dataset]] = field(default_factory=dict)
    """Functions that open data, and report the progress of its index, by the name of the data."""

    kept: PageCache = field(default_factory=PageCache)
    results: PageCache = field(default_factory=lambda: PageCache(32))
    """Results that may be large, such as rows that were filtered."""

    drawn: PageCache = field(default_factory=lambda: PageCache(2))
    """Records of the last pages that were read in the background."""

    def dataset(self, name: str) -> Dataset:
        """Return an open dataset.

        Raises:
            StillOpening: its index is not complete.
            KeyNotFound: there is none of the name.
        """
        job = self.opening.get(name)
        if job is not None and (job.is_live or name not in self.datasets):
            raise StillOpening(name)
        return _named(self.datasets, name, "dataset")

    def pipeline(self, name: str) -> OpenPipeline:
        """Return an open pipeline.

        Raises:
            KeyNotFound: there is none of the name.
        """
        return _named(self.pipelines, name, "pipeline")

    def folder(self, name: str) -> str:
        """Return a folder of states.

        Raises:
            KeyNotFound: there is none of the name.
        """
        return _named(self.states, name, "folder of states")

    def root_of(self, kind: str, name: str) -> Dataset | Stream | None:
        """Return the dataset of a name (kind ``d``), or what its pipeline runs (``p``); None without one."""
        if kind == "p" and name in self.pipelines:
            return self.pipelines[name].root
        return self.datasets.get(name) if kind == "d" else None

    def linked(self, place: Any) -> dict[str, Any]:
        """Return the dataset and the row of a place, for a link; None for both if its data is not open."""
        while isinstance(place, list | tuple) and place:
            place = place[0]
        path = getattr(place, "path", None)
        found = None if path is None else self.kept.get(("first row", path), lambda: self._first_row(path))
        if found is None:
            return {"dataset": None, "number": None}
        return {"dataset": found[0], "number": found[1] + place.row}

    def _first_row(self, path: str) -> tuple[str, int] | None:
        """Return the dataset that has a file, and the file's first row in it; None if it is not open."""
        for name, dataset in self.datasets.items():
            node = node_of(dataset)
            rows = node.rows_of(path, 0) if isinstance(node, LeafNode) else []
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
    """Return datasets, streams, loaders and folders of states as open under their names.

    Data that a pipeline reads is open too, under the names of its files.

    Args:
        targets: the objects, and the paths of folders of states.
        datasets: data that is open already; it is added to.
        folders: more folders of states, which may have the names of their pipelines.
        logs: the losses of runs, by the names of pipelines; under an empty name those of the only run.
        more: further fields of ``Opened``.

    Raises:
        WrongType: a target is of another type.
        InvalidArgument: a log belongs to no pipeline, or may belong to several.
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
    """Return the logs by their pipelines; where no run is open, a log without a name is left out.

    Raises:
        InvalidArgument: no pipeline has a name, or a log without a name may belong to several.
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
    node = node_of(dataset)
    return not node.children or isinstance(node, DataSource)


def _single(dataset: Dataset) -> Loader:
    return Loader(dataset, batch_size=1, epochs=None, collate=list, prefetch=0)


def _add_sources(pipeline: OpenPipeline, datasets: dict[str, Dataset]) -> None:
    """Add the data that a pipeline reads to the datasets, unless the same files are there."""
    root = pipeline.root
    if not isinstance(root, Dataset):
        return
    known = {leaf.fingerprint for dataset in datasets.values() for leaf in leaves_of(node_of(dataset))}
    for name, source in zip(source_names(node_of(root)), source_nodes(node_of(root)), strict=True):
        for leaf in map(data_of, leaves_of(source)):
            if leaf is not None and leaf.fingerprint not in known:
                known.add(leaf.fingerprint)
                own = name if name != "data" else _source_name(leaf)
                datasets[free_name(safe_name(own), datasets)] = Dataset(leaf)


def _source_name(leaf: Any) -> str:
    """Return a short name for the files of a source."""
    path = leaf.files.path(0) if len(leaf.files) else "data"
    name = os.path.basename(path).partition(".")[0]
    folder = os.path.basename(os.path.dirname(path)).partition(".")[0]
    return folder if folder and (len(leaf.files) > 1 or name[-1:].isdigit()) else name or "data"


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name, with a number after it if it is taken.

    Example:
        >>> free_name("web", {"web": 0, "web-2": 0})
        'web-3'
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _named(found: Mapping[str, _Value], name: str, what: str) -> _Value:
    if name not in found:
        there = [*found][:_MOST_NAMED] or ["none"]
        more = f" and {len(found) - len(there):,} more" if len(found) > len(there) else ""
        message = f"there is no {what} {name!r} (open are: {', '.join(there)}{more})"
        raise KeyNotFound(message)
    return found[name]


@dataclass(frozen=True, slots=True)
class OpeningPart:
    """The progress of an index that is built."""

    done: int
    """Bytes of the files that were read."""

    of: int
    files_done: int
    files: int
    records: int
    """The records that were found so far."""

    def document(self) -> dict[str, Any]:
        """Return the progress as a JSON-safe dict."""
        return {
            "done": self.done,
            "of": self.of,
            "unit": "bytes",
            "files_done": self.files_done,
            "files": self.files,
            "records": self.records,
        }


def opening_work(
    call: Callable[[ProgressHook], Dataset], keep: Callable[[Dataset], None]
) -> Generator[Partial]:
    """Yield the progress of the opening of data.

    Args:
        call: opens the data, and reports the progress of its index to a hook.
        keep: takes the dataset, before the last item.
    """

    def opened(hook: ProgressHook) -> OpeningPart:
        last: list[Progress] = []

        def reported(progress: Progress) -> None:
            last[:] = [progress]
            hook(progress)

        dataset = call(reported)
        keep(dataset)
        size, files = (last[-1].bytes, last[-1].files) if last else (0, 0)
        return OpeningPart(size, size, files, files, node_of(dataset).size or 0)

    return hooked(opened, _shown)


def open_soon(opened: Opened, name: str) -> None:
    """Open data now, or in the background where its index takes longer than a second.

    What is open under the name stays so until the new data is ready, and where that fails.

    Raises:
        BaseException: what the opening raised within that second.
    """

    def keep(dataset: Dataset) -> None:
        opened.datasets[name] = dataset
        opened.kept.clear()
        opened.results.clear()
        opened.drawn.clear()

    # A job that is done would be returned again for the same key.
    key = (name, len(opened.jobs.all()))
    job = opened.jobs.start("index", key, opening_work(opened.openers[name], keep))
    opened.opening[name] = job
    if job.wait(_SOON_SECONDS):
        del opened.opening[name]
        if job.error is not None:
            raise job.error


def heads_of(path: str, format_name: str | None = None) -> list[dict[str, Any]]:
    """Return the first lines of a path's first files; nothing where they cannot be read.

    Args:
        path: a path, a folder or a glob on this machine; anything else has no heads.
        format_name: the format that the user gave.
    """
    if "://" in path:
        return []
    with suppress(SeekableError, OSError, ValueError):
        files = [(run.root, name) for run in find_data(path, format_name=format_name) for name in run.names]
        return [
            {"file": json_safe(name), **_head(os.path.join(root, name))}
            for root, name in files[:_FILES_SHOWN]
        ]
    return []


def _head(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        head, size = file.read(_HEAD_BYTES), os.fstat(file.fileno()).st_size
    if b"\0" in head:
        return {"bytes": size, "text": None}
    lines = head.decode("utf-8", "backslashreplace").splitlines()[:_HEAD_LINES]
    return {"bytes": size, "text": "\n".join(lines)}


def _shown(progress: Progress) -> OpeningPart:
    return OpeningPart(
        progress.bytes_done, progress.bytes, progress.files_done, progress.files, progress.records
    )


def after_end(pipeline: OpenPipeline, step: int) -> str | None:
    """Return in words that a run did not reach a step, as far as is known; None where nothing says so.

    Example:
        >>> import seekable as sk
        >>> from seekable.viewer.opened import OpenPipeline
        >>> run = OpenPipeline(sk.Loader(sk.from_sequence("abcdef"), batch_size=4, prefetch=0))
        >>> after_end(run, 1) is None, after_end(run, 2)
        (True, 'The run ends after step 1: step 2 comes only if the loader is iterated again')
    """
    loader = pipeline.loader
    left = loader.steps_left if pipeline.has_batch else None
    end = None if left is None else loader.step + left
    if end is not None and step >= end:
        ends = f"The run ends after step {end - 1:,}" if end else "The run has no step"
        return f"{ends}: step {step:,} comes only if the loader is iterated again"
    if pipeline.saved is not None and step >= pipeline.saved:
        newest = f"The newest state is of step {pipeline.saved:,}"
        return f"{newest}: no state says that step {step:,} was trained on"
    return None


def coming_document(pipeline: OpenPipeline, at: Coming) -> dict[str, Any]:
    """Return when a row comes, and whether that is after the end of the run, JSON-safe."""
    return {
        "step": at.step,
        "position": at.position,
        "epoch": at.epoch,
        "rank": at.rank,
        "after_end": after_end(pipeline, at.step),
    }


def position_after_end(pipeline: OpenPipeline, position: int) -> str | None:
    """Return in words that a run did not reach a position; None where nothing says so."""
    loader = pipeline.loader
    if not pipeline.has_batch or position < position_of(loader, first_step(loader)):
        return None
    step = step_of(loader, position)
    if step is None:
        return f"Position {position:,} is in no step of a run"
    return after_end(pipeline, step)
