"""From what a user names to a loader: a saved state, or a function that makes the pipeline."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any

from seekable.dataset.dataset import Dataset
from seekable.errors import DataNotFound, InvalidArgument, WrongType
from seekable.loader.loader import Loader
from seekable.loader.rebuilt import rebuild_saved
from seekable.loader.saved import read_saved


@dataclass(frozen=True, slots=True)
class Batches:
    """What a state does not say of its loader."""

    arguments: dict[str, Any]
    """The arguments of ``Loader`` that were given."""

    @property
    def given(self) -> dict[str, Any]:
        """Those that are not None."""
        return {name: value for name, value in self.arguments.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loader that can be asked which records it delivers."""

    loader: Loader
    notes: tuple[str, ...]
    """What cannot be told, and why."""


def pipeline_of(
    target: str, batches: Batches, *, state: str | None, roots: list[str], index_dir: str | None
) -> Pipeline:
    """Return the loader of a saved state, or of a function.

    Args:
        target: a state file, a folder of states, a description, or ``module:function``.
        batches: how records make batches, where ``target`` does not say it.
        state: what to load into the loader of a function.
        roots: where the files of a saved pipeline may be.
        index_dir: where indexes are kept, if not beside the data.

    Raises:
        DataNotFound: there is no such file, module or function.
        InvalidArgument: something is missing, or is given twice.
    """
    if os.path.exists(target):
        if state is not None:
            raise InvalidArgument("--state goes with module:function; a saved state is itself the state")
        return _of_saved(
            target, batches, roots=[os.path.abspath(root) for root in roots], index_dir=index_dir
        )
    if ":" not in target:
        message = f"there is no {target!r}: name a state, a folder of states, or module:function"
        raise DataNotFound(message)
    loader = _of_function(target, batches)
    if state is not None and (saved := read_saved(state)).state:
        loader.load_state_dict(saved.state.document())
    return Pipeline(loader, ())


def made_by(target: str) -> Any:
    """Return what a function returns that ``module:function`` names.

    Raises:
        DataNotFound: there is no such module or function.
        WrongType: it is no function.
    """
    # What the user's program prints is not what was asked for.
    with contextlib.redirect_stdout(sys.stderr):
        return _function(target)()


def _of_saved(target: str, batches: Batches, *, roots: list[str], index_dir: str | None) -> Pipeline:
    saved = read_saved(target)
    rebuilt = rebuild_saved(saved, roots=roots, index_dir=index_dir)
    if not {"batch_size", "global_batch_size"} & batches.given.keys():
        message = (
            "a state does not say how many records make a batch: say it with --batch-size, or with "
            "--global-batch-size over all ranks"
        )
        raise InvalidArgument(message)
    loader = _loader(Dataset(rebuilt.dataset), batches)
    if saved.state:
        loader.load_state_dict(saved.state.document())
    return Pipeline(loader, tuple(dict.fromkeys(f"bytes are not known: {why}" for why in rebuilt.unlocated)))


def _of_function(target: str, batches: Batches) -> Loader:
    made = made_by(target)
    if isinstance(made, Loader):
        if batches.given:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in batches.given)
            message = f"{target} returns a Loader, which says itself what {options} would say: leave it out"
            raise InvalidArgument(message)
        return made
    if not isinstance(made, Dataset):
        message = f"{target} must return a Dataset or a Loader (got {type(made).__name__})"
        raise WrongType(message)
    if not {"batch_size", "global_batch_size"} & batches.given.keys():
        message = f"{target} returns a Dataset: say with --batch-size how many records make a batch"
        raise InvalidArgument(message)
    return _loader(made, batches)


def _function(target: str) -> Any:
    """Import what ``module:function`` names, with the working folder on the path."""
    module_name, _, name = target.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        message = f"there is no module {module_name!r} in {os.getcwd()!r} or on Python's path ({error})"
        raise DataNotFound(message) from error
    for part in name.split("."):
        if not hasattr(found, part):
            message = f"{module_name!r} has no {name!r}: name a function that returns a Dataset or a Loader"
            raise DataNotFound(message)
        found = getattr(found, part)
    if not callable(found):
        message = f"{target} is no function but a {type(found).__name__}"
        raise WrongType(message)
    return found


def _loader(dataset: Dataset, batches: Batches) -> Loader:
    ranks = {"rank": 0, "world_size": batches.given.get("world_size", 1)}
    return Loader(dataset, collate=list, prefetch=0, **{**batches.given, **ranks})
