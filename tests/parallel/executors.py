"""Executors that a user might bring, each odd in its own way."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def run(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        future.set_result(function(*arguments))
    except Exception as error:  # noqa: BLE001 - it is the future's
        future.set_exception(error)


class Inline(Executor):
    """Does everything at once, in the thread that asks."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        run(future, function, arguments)
        return future


class Backwards(Executor):
    """Waits until there is nothing more to come, and answers the last request first."""

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, function, arguments))
        if len(self._waiting) == self._requests:
            for request in reversed(self._waiting):
                run(*request)
        return future


class Cancelling(Executor):
    """Takes requests and cancels them."""

    def submit(self, function: Callable[..., Any], /, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future

    def __repr__(self) -> str:
        return "Cancelling()"


class Interfering(Inline):
    """Does something between one request and the next."""

    def __init__(self, between: Callable[[int], object]) -> None:
        self._between = between
        self._done = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        self._between(self._done)
        self._done += 1
        return super().submit(function, *arguments)
