"""Opens the targets of ``seekable view``: data, pipelines, functions, folders of states."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from seekable.cli.data_argument import Opening
from seekable.dataset.dataset import Dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
from seekable.errors import InvalidArgument, SeekableError
from seekable.loader.checkpoint_files import generations_in
from seekable.storage.paths import exists
from seekable.viewer.facts.loss_log import read_loss_log
from seekable.viewer.facts.pipelines import Batches, made_by, pipeline_of
from seekable.viewer.opened import Opened, OpenPipeline, free_name, open_soon, opened_of, safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.parallel.progress import ProgressHook
    from seekable.viewer.facts.loss_log import LossLog

__all__ = ["loss_log_of", "name_of", "opened_targets", "place_of"]


def opened_targets(
    targets: Sequence[str],
    *,
    batches: dict[str, Any],
    state: str | None,
    roots: list[str],
    logs: Sequence[str],
    opening: dict[str, Any],
    shown: dict[str, Any],
) -> Opened:
    """Open what is to be viewed.

    Args:
        targets: PATH, NAME=PATH, module:function, or a folder of states.
        batches: the arguments of loaders that a state or a dataset lacks.
        state: a state to load into the loader of a function.
        roots: the folders in which the files of saved pipelines are now.
        logs: the files of losses, perhaps with the name of a pipeline before ``=`` and the names of the
            fields behind a colon.
        opening: the options with which data is opened.
        shown: further fields of `Opened`.
    """
    place = {"state": state, "roots": roots, "index_dir": opening["index_dir"]}
    found = _Found()
    for name, path, is_given in (named := list(map(_named, targets))):
        if not os.path.isdir(path) or not generations_in(path):
            found.add(name, path, _opened(path, Batches(batches), place, opening))
            continue
        folder = free_name(name, found.folders)
        found.folders[folder] = path
        run, why = _run(path, Batches(batches), place)
        if run is None:
            found.unopened[folder] = why
        else:
            is_train = not is_given and "train" not in {each for each, _, _ in named}
            found.add("train" if is_train else name, path, run)
    later = {name: value for name, value in found.targets.items() if isinstance(value, Opening)}
    data = Opened({}, {}, {}, openers={name: _opener(each) for name, each in later.items()})
    for name in later:
        open_soon(data, name)
    given = {each: getattr(data, each) for each in ("datasets", "openers", "opening", "jobs", "kept")}
    given |= {"paths": found.paths, "folders": found.folders, "unopened": found.unopened}
    ready = {name: value for name, value in found.targets.items() if name not in later}
    return opened_of(ready, logs=dict(map(_named_log, logs)), **given, **shown)


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


def _opener(data: Opening) -> Callable[[ProgressHook], Dataset]:
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
    """Return a short name of a target: of its function, or of its last folder or file without suffixes.

    Example:
        >>> name_of("data/web.jsonl"), name_of("s3://bucket/corpus/"), name_of("train:make_loader")
        ('web', 'corpus', 'make_loader')
    """
    if ":" in target and "://" not in target and not exists(target):
        return target.rpartition(":")[2]
    base = (
        os.path.basename(os.path.abspath(target).rstrip("/")) if "://" not in target else target.rstrip("/")
    )
    last = base.rpartition("/")[2]
    return last.partition(".")[0] or base


def _opened(path: str, batches: Batches, place: dict[str, Any], opening: dict[str, Any]) -> Any:
    """Return what a target opens that is no folder of states."""
    if exists(path) and is_pipeline_file(path):
        return _pipeline(path, batches, place)
    if ":" in path and "://" not in path and not exists(path):
        made = made_by(path)
        is_one = isinstance(made, Dataset) and batches.has_batch
        return pipeline_of(path, batches, **place).loader if is_one else made
    return Opening(path, progress=False, **opening)


def _run(folder: str, batches: Batches, place: dict[str, Any]) -> tuple[OpenPipeline | None, str]:
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
