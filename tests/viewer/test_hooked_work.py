"""Calls with a hook as generators: each report in its order, the result, errors, and an end by closing."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from seekable.parallel.progress import Progress
from seekable.viewer.jobs import hooked

if TYPE_CHECKING:
    from seekable.parallel.progress import ProgressHook


@dataclass(frozen=True)
class Part:
    done: int
    of: int = 9

    def document(self) -> dict[str, Any]:
        return {"done": self.done}


def shown(progress: Progress) -> Part:
    return Part(progress.files_done)


def report(number: int) -> Progress:
    return Progress(number, 9, 0, 0, 0)


@pytest.mark.parametrize("reports", [0, 1, 50])
def test_reports_come_in_order_and_the_result_last(reports: int) -> None:
    def call(hook: ProgressHook) -> Part:
        for number in range(reports):
            hook(report(number))
        return Part(1000)

    assert [part.done for part in hooked(call, shown)] == [*range(reports), 1000]


def test_an_error_comes_after_the_reports_before_it() -> None:
    def call(hook: ProgressHook) -> Part:
        hook(report(5))
        message = "broken"
        raise OSError(message)

    work = hooked(call, shown)
    assert next(work).done == 5
    with pytest.raises(OSError, match="broken"):
        next(work)


def test_closing_ends_the_call_at_its_next_report() -> None:
    cleaned, going = threading.Event(), threading.Event()

    def call(hook: ProgressHook) -> Part:
        try:
            for number in range(1_000_000_000):
                hook(report(number))
                going.wait()
        except Exception:  # noqa: BLE001 - as a handler of the library might be
            pytest.fail("the end is no error")
        finally:
            cleaned.set()
        return Part(0)

    work = hooked(call, shown)
    assert next(work).done == 0
    going.set()
    work.close()
    assert cleaned.is_set()


def test_nothing_runs_before_the_first_item() -> None:
    def call(_: ProgressHook) -> Part:
        pytest.fail("it was not asked for")

    hooked(call, shown).close()
