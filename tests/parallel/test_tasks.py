from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.parallel.executors import Backwards, Cancelling, Inline

from seekable.errors import WorkerDied
from seekable.parallel.function_calls import Tasks, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable


class Held(Executor):
    """Answers only when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[int], int]] = []
        self.most = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[int] = Future()
        self.waiting.append((future, function(*arguments)))
        self.most = max(self.most, len(self.waiting))
        return future

    def answer(self) -> None:
        future, result = self.waiting.pop(0)
        future.set_result(result)


def square(number: int) -> int:
    return number * number


def work(numbers: range, *, helping: bool, idle: Callable[[], object] = int) -> Tasks[int, int]:
    left = iter(numbers)
    return Tasks(
        take=lambda: next(left, None),
        submit=lambda executor, number: executor.submit(square, number),
        here=square if helping else None,
        idle=idle,
        name=lambda number: f"number {number}",
    )


@pytest.mark.parametrize(
    ("make", "helping"),
    [(None, True), (Inline, True), (Inline, False), (ThreadPoolExecutor, True), (ThreadPoolExecutor, False)],
)
def test_every_request_is_answered_once(make: type[Executor] | None, *, helping: bool) -> None:
    executor = make() if make else None
    found = list(run_tasks(work(range(1, 200), helping=helping), executor=executor, ahead=3))
    assert sorted(found) == [(number, number * number) for number in range(1, 200)]
    if executor:
        executor.shutdown()


def test_answers_may_come_in_any_order() -> None:
    found = list(run_tasks(work(range(1, 9), helping=False), executor=Backwards(8), ahead=8))
    assert sorted(found) == [(number, number * number) for number in range(1, 9)]


def test_an_executor_is_given_no_more_than_it_should_have() -> None:
    executor = Held()
    found = list(
        run_tasks(work(range(1, 50), idle=executor.answer, helping=False), executor=executor, ahead=4)
    )
    assert sorted(found) == [(number, number * number) for number in range(1, 50)]
    assert executor.most == 4


def test_this_process_works_while_the_executor_does_not() -> None:
    executor = Held()
    found = list(
        run_tasks(work(range(1, 50), idle=executor.answer, helping=True), executor=executor, ahead=4)
    )
    assert found[:45] == [(number, number * number) for number in range(5, 50)]
    assert found[45:] == [(number, number * number) for number in range(1, 5)]


def test_what_becomes_known_on_the_way_is_done_too() -> None:
    again = [3, 2, 1]
    more = Tasks(
        take=lambda: again.pop() if again else None,
        submit=lambda executor, number: executor.submit(square, number),
        here=None,
        idle=int,
        name=str,
    )
    found = []
    for number, _ in run_tasks(more, executor=Inline(), ahead=2):
        found.append(number)
        if number < 10:
            again.append(number + 10)
    assert sorted(found) == [1, 2, 3, 11, 12, 13]


def test_what_is_not_begun_is_cancelled_when_the_answers_are_closed() -> None:
    executor = Held()
    with closing(run_tasks(work(range(1, 9), helping=True), executor=executor, ahead=3)) as found:
        assert next(found) == (4, 16)
    assert [future.cancelled() for future, _ in executor.waiting] == [True] * 3


def test_a_cancelled_request_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(WorkerDied, match=r"Cancelling\(\) cancelled the work on number 1\. .*jobs=1"):
        list(run_tasks(work(range(1, 3), helping=False), executor=Cancelling(), ahead=1))


def test_an_error_keeps_its_type_and_tells_what_it_was_about() -> None:
    broken = Tasks(
        take=lambda: 0,
        submit=lambda executor, number: executor.submit(lambda: 1 // number),
        here=None,
        idle=int,
        name=lambda number: f"number {number}",
    )
    with pytest.raises(ZeroDivisionError) as raised:
        list(run_tasks(broken, executor=Inline(), ahead=1))
    assert "while it worked on number 0" in raised.value.__notes__[0]
