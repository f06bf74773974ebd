"""Opens the target of ``seekable plot``, and makes the figure of its facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.cli.progress_output import StatusLine
from seekable.cli.view_targets import loss_log_of, name_of
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument
from seekable.formats.shar.shar_source import DataSource
from seekable.nodes.bases import leaves_of
from seekable.storage.paths import exists
from seekable.viewer import figures
from seekable.viewer.facts.data_survey import file_sizes
from seekable.viewer.facts.lengths import index_unit, length_histogram
from seekable.viewer.facts.loss_log import spikes
from seekable.viewer.facts.mixture import mixture, schedule, usual_stop
from seekable.viewer.facts.padding import padding
from seekable.viewer.facts.pipelines import made_by, pipeline_of
from seekable.viewer.facts.sources import as_in_files, source_names, sources_in_files
from seekable.viewer.facts.token_counts import record_measure, token_rates
from seekable.viewer.opened import OpenPipeline

if TYPE_CHECKING:
    from seekable.cli.data_argument import Opening
    from seekable.loader.loader import Loader
    from seekable.viewer.facts.mixture import Unit
    from seekable.viewer.facts.pipelines import Batches
    from seekable.viewer.figures import Figure

__all__ = ["Plotted", "Window", "figure_of"]

_DATA = frozenset({"lengths", "files"})
_LAST = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Window:
    """The part that is plotted, and what it is counted in; None for what was left out."""

    start: int | None
    stop: int | None
    unit: Unit | None


@dataclass(frozen=True, slots=True)
class Plotted:
    """One target, and the options with which it is opened."""

    target: str
    log: str | None
    text_key: str | None
    tokenizer: str | None
    batches: Batches
    state: str | None
    roots: list[str]
    data: Opening

    @property
    def name(self) -> str:
        """The target in the title of a chart."""
        return name_of(self.target)

    def loader(self) -> Loader:
        """Return the loader of a saved state, of a pipeline file or of a function.

        Raises:
            KeyNotFound: it is one of a stream.
        """
        found = pipeline_of(
            self.target, self.batches, state=self.state, roots=self.roots, index_dir=self.data.index_dir
        )
        return OpenPipeline(found.loader).loader

    def source(self) -> DataSource:
        """Return the source of the files that the target names, or the only one of a function's dataset.

        Raises:
            InvalidArgument: there are several, or none.
        """
        if ":" not in self.target or "://" in self.target or exists(self.target):
            found = self.data.sources()
        else:
            made = made_by(self.target, "a Dataset")
            leaves = leaves_of(made.node) if isinstance(made, Dataset) else ()
            found = [leaf for leaf in leaves if isinstance(leaf, DataSource)]
        if len(found) != 1:
            message = f"{self.target!r} has {len(found)} sources of files: name the data of one of them"
            raise InvalidArgument(message)
        return found[0]


def figure_of(kind: str, plotted: Plotted, window: Window, *, quiet: bool) -> Figure:
    """Return the figure of a target.

    Args:
        kind: what is plotted: lengths, files, loss, mixture, padding or schedule.
        plotted: the target.
        window: the steps, and the unit.
        quiet: True to draw no progress.

    Raises:
        InvalidArgument: the kind has no steps or no unit, and some were given; or ``stop`` is not above
            ``start``.
    """
    _check(kind, window)
    if kind == "lengths":
        return _lengths(plotted, quiet=quiet)
    if kind == "files":
        return figures.files_figure(plotted.name, file_sizes([plotted.source()]))
    if kind == "loss":
        log = loss_log_of(plotted.target if plotted.log is None else plotted.log)
        start, last = window.start or 0, _LAST if window.stop is None else window.stop - 1
        found = [spike for spike in spikes(log) if start <= spike.step <= last]
        return figures.loss_figure(log.between(start, last), found)
    return _of_steps(kind, plotted, window, quiet=quiet)


def _check(kind: str, window: Window) -> None:
    start, stop = window.start, window.stop
    if kind in _DATA and (start, stop) != (None, None):
        message = f"{kind} are of all records, which have no steps: leave --from and --to out"
        raise InvalidArgument(message)
    if kind != "mixture" and window.unit is not None:
        message = f"--in is what a mixture is counted in: leave it out of plot {kind}"
        raise InvalidArgument(message)
    if stop is not None and stop <= (start or 0):
        message = f"--to must be above --from (got {stop:,} and {start or 0:,})"
        raise InvalidArgument(message)


def _lengths(plotted: Plotted, *, quiet: bool) -> Figure:
    source = plotted.source()
    with StatusLine(shown=not quiet) as line:
        for found in length_histogram(source):
            line.show(f"{found.done:,} of {found.of:,} records")
    return figures.lengths_figure(plotted.name, found)


def _of_steps(kind: str, plotted: Plotted, window: Window, *, quiet: bool) -> Figure:
    """Return the figure of the steps of a pipeline."""
    loader = plotted.loader()
    node, batch, start = loader.dataset.node, loader.global_batch_size, window.start or 0
    if kind == "schedule":
        weights = schedule(node, batch=batch)
        usual = max(usual_stop(loader, start=start), weights.steps[-1] * 5 // 4)
        stop = usual if window.stop is None else window.stop
        return figures.schedule_figure(plotted.name, weights, start=start, stop=stop)
    if kind == "padding":
        return _padding(plotted, loader, start, window.stop, quiet=quiet)
    unit, rates = window.unit or "records", None
    if unit == "tokens":
        sources = zip(source_names(node), sources_in_files(node), strict=True)
        rates = token_rates(sources, plotted.tokenizer, text_key=plotted.text_key)
    stop = usual_stop(loader, start=start) if window.stop is None else window.stop
    found = mixture(loader, start=start, stop=stop, unit=unit, tokens_per_byte=rates)
    return figures.mixture_figure(plotted.name, found)


def _padding(plotted: Plotted, loader: Loader, start: int, last: int | None, *, quiet: bool) -> Figure:
    """Return the padding by the index; by the records as in the files where their texts are to be counted."""
    node, measure = loader.dataset.node, None
    stop = usual_stop(loader, start=start) if last is None else last
    if plotted.tokenizer is not None or plotted.text_key is not None or index_unit(node) is None:
        node = as_in_files(node)
        first = node.record(loader.position_of(start))
        measure = record_measure(first, text_key=plotted.text_key, tokenizer=plotted.tokenizer)
    work = padding(loader, start=start, stop=stop, measure=measure, source=node)
    with StatusLine(shown=not quiet) as line:
        for found in work:
            line.show(f"{found.done:,} of {found.of:,} steps")
    return figures.padding_figure(plotted.name, found)
