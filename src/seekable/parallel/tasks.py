"""Sharing out work between an executor and this process, a bounded amount of it at a time."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from seekable.errors import SeekableError, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Request = TypeVar("Request")
Answer = TypeVar("Answer")

_IDLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Work(Generic[Request, Answer]):
    """What is to be done, and how."""

    take: Callable[[], Request | None]
    """Returns the next request; None if there is none now. It is asked again when answers have come."""

    there: Callable[[Executor, Request], Future[Answer]]
    """Hands a request to an executor."""

    here: Callable[[Request], Answer]
    """Does it in this process."""

    idle: Callable[[], object]
    """Is called some ten times a second while nothing is done here."""

    name: Callable[[Request], str]
    """Says what a request is about, for errors."""


def answers(
    work: Work[Request, Answer], *, executor: Executor | None, ahead: int, helping: bool
) -> Generator[tuple[Request, Answer]]:
    """Yield all requests with their answers as they come.

    Close the iterator to cancel what is not begun.

    Args:
        work: what is to be done.
        executor: does it, if there is one.
        ahead: how many requests the executor is given before their answers have come.
        helping: whether this process works too, while no answer waits.

    Raises:
        WorkerDied: the executor broke, or cancelled a request.
        Exception: whatever a request raised.
    """
    running: dict[Future[Answer], Request] = {}
    try:
        while True:
            if done := [future for future in running if future.done()]:
                for future in done:
                    answer = _answer_of(future, work.name(running[future]), executor)
                    yield running.pop(future), answer
            elif executor and len(running) < ahead and (for_executor := work.take()) is not None:
                running[work.there(executor, for_executor)] = for_executor
            elif helping and (for_us := work.take()) is not None:
                yield for_us, work.here(for_us)
            elif running:
                wait(running, timeout=_IDLE_SECONDS, return_when=FIRST_COMPLETED)
                work.idle()
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
        what = "cancelled the work on" if isinstance(error, CancelledError) else "broke while it worked on"
        raise WorkerDied(
            f"the executor {executor!r} {what} {name}{f': {error}' if str(error) else ''}. "
            f"What was finished is kept; open the data again to go on, with another executor or with jobs=1"
        ) from error
    except Exception as error:
        error.add_note(f"raised by the executor {executor!r} while it worked on {name}")
        raise
