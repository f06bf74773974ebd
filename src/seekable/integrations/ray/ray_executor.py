"""An executor over the tasks of Ray."""

from __future__ import annotations

import logging
import socket
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable._optional import optional
from seekable.errors import InvalidArgument, Unreachable
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

    import ray
    from ray import exceptions
    from ray.util import scheduling_strategies
else:
    ray = optional("ray", extra="ray")
    exceptions = optional("ray.exceptions", extra="ray")
    scheduling_strategies = optional("ray.util.scheduling_strategies", extra="ray")

__all__ = ["RayExecutor"]

_EACH_CPU = 4
"""Tasks under way for each processor: while one runs, others wait beside it."""

_CONNECT_SECONDS = 10.0

_PROBE_SECONDS = 60.0
"""The time that a call on each node may take: a disk that does not answer must not stop the job for ever."""


class RayExecutor(RemoteExecutor):
    """Runs functions as tasks of Ray, on all nodes of a cluster.

    It is an argument ``executor=`` for all that takes one. Functions and arguments go to the workers by
    cloudpickle, so functions of a script work; seekable must be installed on the nodes. The workers get the
    variables of this process that begin with ``SEEKABLE_``, and those with the credentials of object stores.

    A task whose worker or node died runs again, as often as ``retries`` says; after that, its future has a
    `concurrent.futures.BrokenExecutor`. An error that the function raised is raised as it is, with the node
    and the stack of the worker among its notes. ``Future.cancel`` also interrupts a task that runs, as Ctrl-C
    would.

    A context manager: it ends when all tasks have, or at once if there was an error.

    Example:
        >>> with RayExecutor("10.0.0.1:6379") as cluster:  # doctest: +SKIP
        ...     ds = sk.open("s3://bucket/*.jsonl", index=sk.Index(executor=cluster))
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        most: int | None = None,
        num_cpus: float = 1.0,
        retries: int = 3,
        resources: dict[str, float] | None = None,
        runtime_env: dict[str, Any] | None = None,
    ) -> None:
        """Join a cluster; start one on this machine if there is none, which ends with the executor.

        Args:
            address: the address of a cluster, as ``ray.init`` takes it: ``"HOST:PORT"``, ``"ray://HOST:PORT"``
                or ``"local"`` for a new one; None for the cluster that this process has joined, that the
                variable ``RAY_ADDRESS`` names or that runs on this machine.
            most: the most tasks under way; None for four to a processor of the cluster.
            num_cpus: the processors that a task needs.
            retries: how often a task runs again whose worker or node died.
            resources: what else a task needs, by the names that the nodes have for it.
            runtime_env: the environment of the workers, as Ray has it. Ray writes it to its logs: it is
                no place for secrets.

        Raises:
            InvalidArgument: ``most`` is less than 1, or this process has joined another cluster.
            MissingDependency: Ray is not installed.
            Unreachable: there is no cluster at the address.
        """
        if most is not None and most < 1:
            raise InvalidArgument(f"most must be at least 1, got {most}")
        self._joined = _join(address)
        self._options = {
            "num_cpus": num_cpus,
            "max_retries": retries,
            "resources": dict(resources or {}),
            "runtime_env": dict(runtime_env or {}),
        }
        cpus = ray.cluster_resources().get("CPU", 1.0)
        most = most or max(_EACH_CPU, int(_EACH_CPU * cpus / max(num_cpus, 0.01)))
        self._needs = {"CPU": num_cpus, **(resources or {})}
        self._environment = handed_on()
        self._run = ray.remote(_answer).options(**self._options)
        super().__init__(most=most)

    def on_each_node(self, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """Call a function once on each node that may get tasks.

        Returns:
            What it returned, or the error that it raised, by the names of the nodes.
        """
        call, answers = packed_call(function, args, {}), {}
        options = self._options | {"num_cpus": 0, "resources": {}, "max_retries": 0}
        for node in ray.nodes():
            has = node["Resources"]
            if node["Alive"] and all(has.get(name, 0.0) >= need for name, need in self._needs.items()):
                there = scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                run = ray.remote(_answer).options(**options, scheduling_strategy=there)
                ref = run.remote(call, [], self._environment)
                answers[_name_of(node["NodeManagerAddress"], node["NodeID"])] = ref
        if answers:
            ray.wait(list(answers.values()), num_returns=len(answers), timeout=_PROBE_SECONDS)
        return {name: _value_or_error(answer) for name, answer in answers.items()}

    def __repr__(self) -> str:
        return f"RayExecutor(most={self.most}, num_cpus={self._needs['CPU']})"

    def _put(self, data: bytes) -> Any:
        return ray.put(data)

    def _get(self, reference: Any) -> bytes:
        return _fetch(reference)

    def _send(self, call: bytes, shared: list[Any]) -> Any:
        return self._run.remote(call, shared, self._environment)

    def _when_ended(self, handle: Any, then: Callable[[Any], object]) -> None:
        handle.future().add_done_callback(then)

    def _outcome(self, ended: Any) -> tuple[Any, BaseException | None]:
        return _outcome_of(ended)

    def _cancel(self, handle: Any, *, force: bool) -> None:
        ray.cancel(handle, force=force)

    def _disconnect(self) -> None:
        if self._joined:
            ray.shutdown()


def _answer(call: bytes, shared: list[Any], environment: dict[str, str]) -> bytes:
    """Make a call: the task that a worker runs."""
    place = _name_of(ray.util.get_node_ip_address(), ray.get_runtime_context().get_node_id())
    with shared_here([partial(_fetch, reference) for reference in shared]):
        return answer_call(call, environment=environment, place=place)


def _fetch(reference: Any) -> bytes:
    data: bytes = ray.get(reference)
    return data


def _name_of(address: str, node: str) -> str:
    return f"{address} (node {node[:8]})"


def _outcome_of(answer: Future[bytes]) -> tuple[Any, BaseException | None]:
    """Return what a call returned, or None and its error."""
    try:
        return outcome_of(answer.result()), None
    except exceptions.TaskCancelledError:
        return None, CancelledError()
    except exceptions.RayTaskError as error:
        error.cause.add_note(f"raised by Ray at {error.ip} (pid {error.pid}):\n{error.traceback_str}")
        return None, error.cause
    except exceptions.RayError as error:
        return None, broken(error)
    except BaseException as error:  # noqa: BLE001 - the future of the call raises it
        return None, error


def _value_or_error(ref: Any) -> Any:
    ended: Future[bytes] = Future()
    try:
        ended.set_result(ray.get(ref, timeout=0))
    except exceptions.GetTimeoutError:
        return TimeoutError(f"no answer within {_PROBE_SECONDS:.0f} seconds")
    except exceptions.RayError as error:
        ended.set_exception(error)
    made, raised = _outcome_of(ended)
    return made if raised is None else raised


def _check_reachable(address: str | None) -> None:
    """Refuse an address at which nothing listens, because Ray would try for minutes.

    Raises:
        Unreachable: nothing listens there.
    """
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"there is no cluster of Ray at {address!r} ({error}): start one with `ray start --head`, or "
            f"compare the address with what `ray start` printed"
        ) from error


def _join(address: str | None) -> bool:
    """Join a cluster, unless this process has already joined it.

    Returns:
        True if this call made the connection.
    """
    if not ray.is_initialized():
        _check_reachable(address)
        ray.init(address=address, include_dashboard=False, logging_level=logging.WARNING)
        return True
    joined = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", joined):
        raise InvalidArgument(
            f"this process has joined the cluster at {joined!r}, so it cannot join {address!r}: "
            f"leave the address out, or call ray.shutdown() before"
        )
    return False
