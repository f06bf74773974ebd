"""A job: how far it is, what it found so far, and the end of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.storage.memory import bytes_in_words
from seekable.viewer.page import Page, Redirect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.viewer.jobs import ViewerJob
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MINUTE, _HOUR = 60, 3600


def job(opened: Opened, asked: Asked) -> Page:
    """Return a job.

    Raises:
        KeyNotFound: there is none of the name.
    """
    found = opened.jobs[str(asked.path["job"])]
    return Page("job", f"{found.kind}, job {found.name}", found.document(), shown_of(found))


def stop(opened: Opened, asked: Asked) -> Redirect:
    """End a job at its next partial result; what it found stays."""
    found = opened.jobs[str(asked.path["job"])]
    found.stop()
    found.wait(1.0)
    return Redirect(asked.text("to") or f"job/{found.name}")


def shown_of(found: ViewerJob) -> dict[str, Any]:
    """Return what the box of a job needs besides its document."""
    document = found.document()
    return {"job_words": progress_in_words(document), "job_live": found.is_live}


def progress_in_words(document: Mapping[str, Any]) -> str:
    """Return how far a job is, with its rate and the time that is left.

    Example:
        >>> progress = {"done": 2_000_000, "of": 8_000_000, "rate": 50_000.0, "seconds_left": 120.0}
        >>> progress |= {"seconds": 40.0}
        >>> progress_in_words({"state": "running", **progress, "result": {"unit": "bytes"}})
        '2.0 MB of 8.0 MB, 50.0 kB a second, 2 min left'
        >>> progress_in_words({"state": "done", **progress, "result": {"unit": "rows"}})
        '8,000,000 rows in 40 s'
    """
    unit = (document["result"] or {}).get("unit", "")
    done, of, rate, left = (document[key] for key in ("done", "of", "rate", "seconds_left"))
    if document["state"] == "waiting":
        return "it waits until one of the jobs before it has ended"
    if not of:
        return f"after {_time(document['seconds'])}"
    if document["state"] == "done":
        return f"{_amount(of, unit)} in {_time(document['seconds'])}"
    words = f"{_amount(done, unit if unit == 'bytes' else '')} of {_amount(of, unit)}"
    words += f", {_amount(int(rate), unit)} a second" if rate else ""
    return words + (f", {_time(left)} left" if left is not None else "")


def _amount(number: int, unit: str) -> str:
    return bytes_in_words(number) if unit == "bytes" else f"{number:,} {unit}".rstrip()


def _time(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than a second"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"
