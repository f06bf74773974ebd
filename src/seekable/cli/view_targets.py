"""Opens the targets of ``seekable view`` and ``plot``, and makes the figures of ``plot``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from seekable.cli.data_argument import DataArgument, index_folder
from seekable.cli.output import StatusLine
from seekable.cli.shared_options import DataOptions, RunOptions, Shown
from seekable.dataset.dataset import Dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
from seekable.errors import InvalidArgument, SeekableError
from seekable.formats.shar.shar_source import DataSource
from seekable.loader import steerable
from seekable.loader.checkpoint_files import generations_in
from seekable.loader.positioned import position_of
from seekable.nodes.bases import leaves_of
from seekable.nodes.node import node_of
from seekable.storage.paths import exists
from seekable.viewer import fact_figures as figures
from seekable.viewer.facts.data_survey import file_sizes
from seekable.viewer.facts.lengths import index_unit, length_histogram
from seekable.viewer.facts.loss_log import read_loss_log, spikes
from seekable.viewer.facts.named_sources import as_in_files, source_names, sources_in_files
from seekable.viewer.facts.padding import padding
from seekable.viewer.facts.pipelines import Batches, is_function, made_by, pipeline_of
from seekable.viewer.facts.run_mixture import mixture, schedule, usual_stop
from seekable.viewer.facts.token_counts import record_measure, token_rates
from seekable.viewer.opened import Opened, OpenPipeline, free_name, open_soon, opened_of, safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.loader.loader import Loader
    from seekable.parallel.progress import ProgressHook
    from seekable.viewer.fact_figures import Figure
    from seekable.viewer.facts.loss_log import LossLog
    from seekable.viewer.facts.run_mixture import Unit

__all__ = ["Plot", "loss_log_of", "name_of", "opened_targets", "place_of"]


_MOST_OPEN_FILES = 1024
"""The files of each dataset that stay open: pages read from many at once, again and again."""


def opened_targets(
    targets: Sequence[str],
    run: RunOptions,
    data: DataOptions,
    shown: Shown,
    *,
    key: str | None = None,
    logs: Sequence[str] = (),
    pages: dict[str, Any],
) -> Opened:
    """Open what is to be viewed.

    Args:
        targets: PATH, NAME=PATH, module:function, or a folder of states.
        run: the arguments of loaders that a state or a dataset lacks, and where a saved pipeline is found.
        data: the options with which data is opened.
        shown: says what is printed.
        key: the field that is the key of a record.
        logs: the files of losses, perhaps with the name of a pipeline before ``=`` and the names of the
            fields after a colon.
        pages: further fields of `Opened`.
    """
    batches, place = Batches(run.of_loader), {**run.place, "index_dir": index_folder(data.index)}
    argument = partial(
        DataArgument, options=data, shown=replace(shown, quiet=True), key=key, max_open_files=_MOST_OPEN_FILES
    )
    found = _Found()
    for name, path, is_given in (named := list(map(_named, targets))):
        if not os.path.isdir(path) or not generations_in(path):
            found.add(name, path, _opened(path, batches, place, argument))
            continue
        folder = free_name(name, found.folders)
        found.folders[folder] = path
        pipeline, why = _newest(path, batches, place)
        if pipeline is None:
            found.unopened[folder] = why
        else:
            is_train = not is_given and "train" not in {each for each, _, _ in named}
            found.add("train" if is_train else name, path, pipeline)
    later = {name: value for name, value in found.targets.items() if isinstance(value, DataArgument)}
    soon = Opened({}, {}, {}, openers={name: _opener(each) for name, each in later.items()})
    for name in later:
        open_soon(soon, name)
    given = {each: getattr(soon, each) for each in ("datasets", "openers", "opening", "jobs", "kept")}
    given |= {"paths": found.paths, "folders": found.folders, "unopened": found.unopened}
    ready = {name: value for name, value in found.targets.items() if name not in later}
    return opened_of(ready, logs=dict(map(_named_log, logs)), **given, **pages)


@dataclass(frozen=True, slots=True)
class _Found:
    """The opened targets, by the names that they have in addresses."""

    targets: dict[str, Any] = field(default_factory=dict)
    """Data that is still to be opened, pipelines, and what functions return."""

    paths: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    """Folders of states, which may have the names of their pipelines."""

    unopened: dict[str, str] = field(default_factory=dict)
    """Why there is no pipeline of a folder of states."""

    def add(self, name: str, path: str, target: Any) -> None:
        free = free_name(name, self.targets)
        self.targets[free], self.paths[free] = target, path


def _opener(data: DataArgument) -> Callable[[ProgressHook], Dataset]:
    return lambda hook: replace(data, hook=hook).dataset()


def _named_log(text: str) -> tuple[str, LossLog]:
    """Return the losses of ``FILE`` or ``NAME=FILE``, with the name, or an empty one."""
    name, equals, log = text.partition("=")
    if equals and name and "/" not in name and not exists(text):
        return safe_name(name), loss_log_of(log)
    return "", loss_log_of(text)


def loss_log_of(log: str) -> LossLog:
    """Return the losses of ``FILE`` or ``FILE:STEP,LOSS``."""
    path, _, fields = log.rpartition(":")
    step, comma, loss = fields.partition(",")
    # The names of fields may have slashes: "train/loss".
    if not path or not comma or exists(log):
        return read_loss_log(log)
    return read_loss_log(path, step=step, loss=loss)


def place_of(place: str | None) -> str:
    """Return the address of a place that a user named, relative to the link."""
    return "" if place is None else f"go?to={quote(place)}"


def _named(target: str) -> tuple[str, str, bool]:
    """Return the name and the path of a target, and whether the user gave the name."""
    name, equals, path = target.partition("=")
    if equals and name and "/" not in name and not exists(target):
        return safe_name(name), path, True
    return safe_name(name_of(target)), target, False


def name_of(target: str) -> str:
    """Return a short name of a target: its function, or its last folder or file without suffixes.

    Example:
        >>> name_of("data/web.jsonl"), name_of("s3://bucket/corpus/"), name_of("train:make_loader")
        ('web', 'corpus', 'make_loader')
    """
    if is_function(target):
        return target.rpartition(":")[2]
    base = (
        os.path.basename(os.path.abspath(target).rstrip("/")) if "://" not in target else target.rstrip("/")
    )
    last = base.rpartition("/")[2]
    return last.partition(".")[0] or base


def _opened(
    path: str, batches: Batches, place: dict[str, Any], argument: Callable[[str], DataArgument]
) -> Any:
    """Return what a target opens that is not a folder of states."""
    if exists(path) and is_pipeline_file(path):
        return _pipeline(path, batches, place)
    if is_function(path):
        made = made_by(path)
        is_one = isinstance(made, Dataset) and batches.has_batch
        return pipeline_of(path, batches, **place).loader if is_one else made
    return argument(path)


def _newest(folder: str, batches: Batches, place: dict[str, Any]) -> tuple[OpenPipeline | None, str]:
    """Return the pipeline of the newest state of a folder; None and the reason if it cannot be rebuilt."""
    try:
        return _pipeline(folder, batches, place), ""
    except SeekableError as error:
        if batches.given:
            raise
        return None, str(error)


def _pipeline(path: str, batches: Batches, place: dict[str, Any]) -> OpenPipeline:
    """Return a saved pipeline; where nobody says how many records make a batch, a step is one record."""
    try:
        found = pipeline_of(path, batches, **place)
    except InvalidArgument:
        if batches.has_batch:
            raise
        found = pipeline_of(path, Batches({**batches.arguments, "batch_size": 1}), **place)
        return OpenPipeline(found.loader, found.notes, has_batch=False)
    return OpenPipeline(
        found.loader, found.notes, saved=None if is_pipeline_file(path) else found.loader.step
    )


_LAST = (1 << 53) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A chart that ``seekable plot`` draws: its target, and the options of the command."""

    target: str
    run: RunOptions
    data: DataOptions
    shown: Shown
    start: int | None
    stop: int | None
    unit: Unit | None
    text_key: str | None
    tokenizer: str | None

    def figure(self, kind: str) -> Figure:
        """Return the figure of the target.

        Args:
            kind: what is plotted: lengths, files, loss, mixture, padding or schedule.

        Raises:
            InvalidArgument: the kind has no steps or no unit, and some were given; or ``stop`` is not above
                ``start``.
        """
        self._check(kind)
        if kind == "lengths":
            return self._lengths()
        if kind == "files":
            return figures.files_figure(self._name, file_sizes([self._source()]))
        if kind == "loss":
            log = loss_log_of(self.target)
            start, last = self._first, _LAST if self.stop is None else self.stop - 1
            found = [spike for spike in spikes(log) if start <= spike.step <= last]
            return figures.loss_figure(log.between(start, last), found)
        loader = self._loader()
        if kind == "schedule":
            return self._schedule(loader)
        return self._padding(loader) if kind == "padding" else self._mixture(loader)

    def _check(self, kind: str) -> None:
        start, stop = self.start, self.stop
        if kind in {"lengths", "files"} and (start, stop) != (None, None):
            message = f"{kind} are of all records, which have no steps: leave --from and --to out"
            raise InvalidArgument(message)
        if kind != "mixture" and self.unit is not None:
            raise InvalidArgument(f"--in is what a mixture is counted in: leave it out of plot {kind}")
        if stop is not None and stop <= self._first:
            raise InvalidArgument(f"--to must be above --from (got {stop:,} and {self._first:,})")

    @property
    def _name(self) -> str:
        """The target in the title of a chart."""
        return name_of(self.target)

    @property
    def _first(self) -> int:
        """The first step that is drawn."""
        return self.start or 0

    def _stop(self, loader: Loader) -> int:
        """Return the step after the last."""
        return usual_stop(loader, start=self._first) if self.stop is None else self.stop

    def _loader(self) -> Loader:
        """Return the loader of a saved state, a pipeline file or a function.

        Raises:
            KeyNotFound: it is a loader of a stream.
        """
        found = pipeline_of(
            self.target,
            Batches(self.run.of_loader),
            **self.run.place,
            index_dir=index_folder(self.data.index),
        )
        return OpenPipeline(found.loader).loader

    def _source(self) -> DataSource:
        """Return the source of the files that the target names, or the only one of a function's dataset.

        Raises:
            InvalidArgument: there are several, or none.
        """
        if not is_function(self.target):
            found = DataArgument(self.target, self.data, self.shown).sources()
        else:
            made = made_by(self.target, "a Dataset")
            leaves = leaves_of(node_of(made)) if isinstance(made, Dataset) else ()
            found = [leaf for leaf in leaves if isinstance(leaf, DataSource)]
        if len(found) != 1:
            message = f"{self.target!r} has {len(found)} sources of files: name the data of one of them"
            raise InvalidArgument(message)
        return found[0]

    def _lengths(self) -> Figure:
        source = self._source()
        with StatusLine(shown=not self.shown.quiet) as line:
            for found in length_histogram(source):
                line.show(f"{found.done:,} of {found.of:,} records")
        return figures.lengths_figure(self._name, found)

    def _schedule(self, loader: Loader) -> Figure:
        weights = schedule(loader)
        stop = self.stop
        if stop is None:
            stop = max(self._stop(loader), weights.steps[-1] * 5 // 4)
        return figures.schedule_figure(self._name, weights, start=self._first, stop=stop)

    def _mixture(self, loader: Loader) -> Figure:
        node, rates, unit = node_of(loader.dataset), None, self.unit or "records"
        if unit == "tokens":
            sources = zip(source_names(node), sources_in_files(node), strict=True)
            rates = token_rates(sources, self.tokenizer, text_key=self.text_key)
        found = mixture(loader, start=self._first, stop=self._stop(loader), unit=unit, tokens_per_byte=rates)
        return figures.mixture_figure(self._name, found)

    def _padding(self, loader: Loader) -> Figure:
        """Return the padding by the index; by the records in the files where their texts are counted."""
        start, measure, source = self._first, None, None
        node = steerable.made_by(loader, start)
        if self.tokenizer is not None or self.text_key is not None or index_unit(node) is None:
            source = as_in_files
            first = as_in_files(node).record(position_of(loader, start))
            measure = record_measure(first, text_key=self.text_key, tokenizer=self.tokenizer)
        work = padding(loader, start=start, stop=self._stop(loader), measure=measure, source=source)
        with StatusLine(shown=not self.shown.quiet) as line:
            for found in work:
                line.show(f"{found.done:,} of {found.of:,} steps")
        return figures.padding_figure(self._name, found)
