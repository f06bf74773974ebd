"""An executor over the workers of a Dask cluster."""

from __future__ import annotations

import socket
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from seekable._optional import optional
from seekable.errors import InvalidArgument, Unreachable, WrongType
from seekable.parallel.remote_executor import (
    RemoteExecutor,
    answer_call,
    broken,
    handed_on,
    outcome_of,
    packed_call,
    shared_here,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import distributed
    from distributed import scheduler
else:
    distributed = optional("distributed", extra="dask")
    scheduler = optional("distributed.scheduler", extra="dask")

__all__ = ["DaskExecutor"]

_EACH_THREAD = 4
"""Calls under way for each thread of the workers: while one runs, others wait beside it."""

_OVER_TCP = frozenset({"tcp", "tls", "ws", "wss"})
_CONNECT_SECONDS = 5.0


class DaskExecutor(RemoteExecutor):
    """Runs functions as tasks of Dask, on all workers of a cluster.

    It is an argument ``executor=`` for all that takes one. Functions and arguments go to the workers by
    cloudpickle, so functions of a script work; seekable must be installed where the workers run. The workers
    get the variables of this process that begin with ``SEEKABLE_``, and those with the credentials of object
    stores.

    A task whose worker died runs again, as often as the setting ``distributed.scheduler.allowed-failures`` of
    Dask says; after that, its future has a `concurrent.futures.BrokenExecutor`. An error that the function
    raised is raised as it is, with the worker and its stack among its notes.

    A context manager: it ends when all tasks have, or at once if there was an error.

    Example:
        >>> with DaskExecutor("scheduler:8786") as cluster:  # doctest: +SKIP
        ...     ds = sk.open("s3://bucket/*.jsonl", index=sk.Index(executor=cluster))
    """

    def __init__(
        self,
        address_or_client: str | distributed.Client,
        *,
        most: int | None = None,
        resources: dict[str, float] | None = None,
    ) -> None:
        """Connect to a scheduler, or use the connection that there is.

        Args:
            address_or_client: the address of a scheduler, or a ``distributed.Client``, which stays open.
            most: the most tasks under way; None for four to a thread of the workers.
            resources: what a task needs, by the names that the workers have for it.

        Raises:
            InvalidArgument: ``most`` is less than 1.
            WrongType: it is neither an address nor a client.
            MissingDependency: Dask is not installed.
            Unreachable: there is no scheduler at the address.
        """
        if most is not None and most < 1:
            raise InvalidArgument(f"most must be at least 1, got {most}")
        if not isinstance(address_or_client, str | distributed.Client):
            raise WrongType(
                f"address_or_client must be the address of a scheduler or a distributed.Client (got a "
                f"{type(address_or_client).__name__})"
            )
        self._client: Any = address_or_client
        self._own = isinstance(address_or_client, str)
        if self._own:
            self._client = _joined(str(address_or_client))
        self._options = {"pure": False, "resources": dict(resources or {})}
        self._environment = handed_on()
        threads = sum(self._client.nthreads().values())
        super().__init__(most=most or max(_EACH_THREAD, _EACH_THREAD * threads))

    def on_each_node(self, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """Call a function once on each machine that has workers.

        Returns:
            What it returned, or the error that it raised, by the addresses of the workers that were asked.
        """
        workers = {_host_of(address): address for address in sorted(self._client.nthreads(), reverse=True)}
        answers = self._client.run(
            _answer_on,
            packed_call(function, args, {}),
            self._environment,
            workers=list(workers.values()),
            on_error="return",
        )
        return {address: _value_or_error(answer) for address, answer in answers.items()}

    def __repr__(self) -> str:
        return f"DaskExecutor({self._client.scheduler.address!r}, most={self.most})"

    def _put(self, data: bytes) -> Any:
        # Scattered bytes would be lost with the worker that has them; the result of a task is made again.
        return self._client.submit(_same, data, **self._options)

    def _get(self, reference: Any) -> bytes:
        data: bytes = reference.result()
        return data

    def _send(self, call: bytes, shared: list[Any]) -> Any:
        return self._client.submit(_answer, call, shared, self._environment, **self._options)

    def _when_ended(self, handle: Any, then: Callable[[Any], object]) -> None:
        handle.add_done_callback(then)

    def _outcome(self, ended: Any) -> tuple[Any, BaseException | None]:
        try:
            return outcome_of(ended.result()), None
        except scheduler.KilledWorker as error:
            return None, broken(error)
        except BaseException as error:  # noqa: BLE001 - the future of the call raises it
            return None, error

    def _cancel(self, handle: Any, *, force: bool) -> None:
        handle.cancel(force=force)

    def _disconnect(self) -> None:
        if self._own:
            self._client.close()


def _answer(call: bytes, shared: list[bytes], environment: dict[str, str]) -> bytes:
    """Make a call: the task that a worker runs."""
    with shared_here([partial(_same, data) for data in shared]):
        return answer_call(call, environment=environment, place=distributed.get_worker().address)


def _answer_on(call: bytes, environment: dict[str, str], dask_worker: distributed.Worker) -> bytes:
    """Make a call beside the tasks; Dask gives the last argument to functions that name it."""
    return answer_call(call, environment=environment, place=dask_worker.address)


def _joined(address: str) -> Any:
    """Return a client of a scheduler that answers; Dask itself would try for half a minute.

    Raises:
        Unreachable: none does.
    """
    connect: Callable[..., Any] = distributed.Client
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        if place.scheme in _OVER_TCP and place.hostname and place.port:
            socket.create_connection((place.hostname, place.port), _CONNECT_SECONDS).close()
        return connect(address, set_as_default=False)
    except OSError as error:
        message = (
            f"no scheduler of Dask answers at {address!r} ({error}): start one with `dask scheduler`, or "
            f"write the address that it prints"
        )
        raise Unreachable(message) from error


def _same(data: bytes) -> bytes:
    return data


def _host_of(address: str) -> str:
    return address.rpartition(":")[0]


def _value_or_error(answer: Any) -> Any:
    if isinstance(answer, OSError):
        return broken(answer)
    if isinstance(answer, BaseException):
        return answer
    try:
        return outcome_of(answer)
    except (Exception, CancelledError, SystemExit) as error:  # noqa: BLE001 - it is the answer of the node
        return error
