"""The executors that ``--executor`` names: those of clusters, and what a function of the user returns."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from seekable._lazy import imported_module
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

FORMS = "ray, ray://HOST:PORT, ray:HOST:PORT, dask://HOST:PORT, slurm:N or module:function"

_PORT = r"[^/\s:@]+:\d+"
_NAMED = re.compile(
    rf"(?P<ray>ray(://{_PORT}|:{_PORT})?)|dask://(?P<dask>{_PORT})|slurm:(?P<slurm>[1-9]\d*)"
    rf"|(?P<function>(?!(ray|dask|slurm):)[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)"
)


@contextmanager
def executor_of(name: str | None, *, jobs: int | None) -> Iterator[Executor | None]:
    """Yield the executor that an option names, None for none; it is shut down at the end.

    After an error or an interrupt no task is waited for: those that wait in the cluster are cancelled.

    Args:
        name: the value of ``--executor``.
        jobs: the value of ``--jobs``, which must be None beside it.

    Raises:
        InvalidArgument: the name has another form, or there are both options.
        MissingDependency: the package of the cluster is not installed.
        WrongType: a function returned something that is no executor.
        OSError: the cluster cannot be reached.
    """
    if name is None:
        yield None
        return
    if jobs is not None:
        message = f"--jobs is for processes of this machine: leave it out beside --executor {name}"
        raise InvalidArgument(message)
    executor = _made(name)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _made(name: str) -> Executor:
    named = _NAMED.fullmatch(name)
    if named is None:
        raise InvalidArgument(f"--executor takes {FORMS} (got {name!r})")
    made: Executor
    if named["ray"]:
        made = _ray(name)
    elif named["dask"]:
        made = _integration("dask").DaskExecutor(named["dask"])
    elif named["slurm"]:
        made = _integration("slurm").SlurmExecutor(int(named["slurm"]))
    else:
        made = _of_function(name)
    return made


def _ray(name: str) -> Executor:
    import os

    # What programs print on the nodes would come to stdout, between the data.
    os.environ.setdefault("RAY_LOG_TO_DRIVER", "0")
    address = name if "://" in name else name.partition(":")[2] or None
    executor: Executor = _integration("ray").RayExecutor(address)
    return executor


def _of_function(name: str) -> Executor:
    from seekable.errors import WrongType
    from seekable.viewer.facts.pipelines import made_by

    made: Executor = made_by(name, "an executor")
    if not callable(getattr(made, "submit", None)) or not callable(getattr(made, "shutdown", None)):
        raise WrongType(f"{name} must return a concurrent.futures.Executor (got {type(made).__name__})")
    return made


def _integration(name: str) -> Any:
    """Import one integration, because each needs a package of its own."""
    return imported_module(f"seekable.integrations.{name}")
