"""Requests answered by an executor and by this process, with a bounded number under way."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from seekable.errors import SeekableError, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["Tasks", "run_tasks"]

Request = TypeVar("Request")
Answer = TypeVar("Answer")

_IDLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks(Generic[Request, Answer]):
    """The requests of one piece of work, and the functions that answer them."""

    take: Callable[[], Request | None]
    """Returns the next request, or None if there is none now. It is called again after each answer."""

    submit: Callable[[Executor, Request], Future[Answer]]
    """Submits a request to an executor."""

    here: Callable[[Request], Answer] | None
    """Answers a request in this process; None if this process is not to work."""

    idle: Callable[[], object]
    """Is called about ten times a second while this process only waits."""

    name: Callable[[Request], str]
    """Returns the subject of a request, for error messages."""


def run_tasks(
    tasks: Tasks[Request, Answer], *, executor: Executor | None, ahead: int
) -> Generator[tuple[Request, Answer]]:
    """Yield each request with its answer, as the answers come.

    This process answers a request itself only while no answer waits. Closing the generator cancels the
    requests that no worker has begun.

    Args:
        tasks: the requests.
        executor: answers requests, if there is one.
        ahead: the most requests under way in the executor.

    Raises:
        WorkerDied: the executor broke, or cancelled a request.
        Exception: the error that a request raised, with the name of the request among its notes.
    """
    running: dict[Future[Answer], Request] = {}
    try:
        while True:
            if done := [future for future in running if future.done()]:
                for future in done:
                    answer = _answer_of(future, tasks.name(running[future]), executor)
                    yield running.pop(future), answer
            elif executor and len(running) < ahead and (for_executor := tasks.take()) is not None:
                try:
                    future = tasks.submit(executor, for_executor)
                except BrokenExecutor as error:
                    raise _died(error, tasks.name(for_executor), executor) from error
                running[future] = for_executor
            elif tasks.here and (for_us := tasks.take()) is not None:
                yield for_us, tasks.here(for_us)
            elif running:
                wait(running, timeout=_IDLE_SECONDS, return_when=FIRST_COMPLETED)
                tasks.idle()
            else:
                return
    finally:
        for future in running:
            future.cancel()


def _answer_of(future: Future[Answer], name: str, executor: Executor | None) -> Answer:
    try:
        return future.result()
    except SeekableError:
        raise
    except (BrokenExecutor, CancelledError) as error:
        raise _died(error, name, executor) from error
    except Exception as error:
        error.add_note(f"raised by the executor {executor!r} while it worked on {name}")
        raise


def _died(error: BrokenExecutor | CancelledError, name: str, executor: Executor | None) -> WorkerDied:
    event = "cancelled the work on" if isinstance(error, CancelledError) else "broke while it worked on"
    return WorkerDied(
        f"the executor {executor!r} {event} {name}{f': {error}' if str(error) else ''}. "
        f"Finished work is kept; call again to continue, with another executor or with jobs=1"
    )
