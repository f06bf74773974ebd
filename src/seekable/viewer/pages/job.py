"""Jobs on pages: how far each is, what it found, data that is being opened, and opening again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.errors import KeyNotFound
from seekable.storage.memory import bytes_in_words
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.jobs import JobAddresses
from seekable.viewer.opened import heads_of, open_soon
from seekable.viewer.page import Page, Redirect

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping

    from seekable.viewer.jobs import Partial, ViewerJob
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MINUTE, _HOUR = 60, 3600


def job(opened: Opened, asked: Asked) -> Page:
    """Return how far a job is, and what it found.

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


def started(
    opened: Opened, asked: Asked, kind: str, key: Hashable, work: Generator[Partial], page: str
) -> Redirect:
    """Start the job that an address asks for, and return where it is shown.

    Args:
        opened: what is open.
        asked: the address, which starts it again too.
        kind: what the work is, for people.
        key: what tells it from other work of the kind.
        work: the work, not begun yet.
        page: the address that shows it, with ``{job}`` for the name of the job.
    """
    return Redirect(opened.jobs.start(kind, key, work, at=JobAddresses(asked.address, page)).at.page)


def shown_of(found: ViewerJob) -> dict[str, Any]:
    """Return what the box of a job needs besides its document."""
    document = found.document()
    return {"job_words": _progress_in_words(document), "job_live": found.is_live}


@dataclass(frozen=True, slots=True)
class AskedJob:
    """The job that the address of a page names, if it names one."""

    partial: Any = None
    """Its latest partial result."""

    job: ViewerJob | None = None

    document: Mapping[str, Any] = field(default_factory=dict)
    """What the page's document has of it."""

    shown: Mapping[str, Any] = field(default_factory=lambda: {"job": None})
    """What the page's template needs for its box."""


def asked_job(opened: Opened, asked: Asked, *, has_result: bool = False) -> AskedJob:
    """Return the job that an address names by ``job=``.

    Args:
        opened: what is open.
        asked: the address.
        has_result: True for a document with the partial result in it.

    Raises:
        KeyNotFound: there is no such job.
    """
    if not asked.query.get("job"):
        return AskedJob()
    found = opened.jobs[asked.text("job")]
    document = found.document() if has_result else {**found.document(), "result": None}
    return AskedJob(found.partial, found, {"job": document}, {"job": document, **shown_of(found)})


SOON_SECONDS = 0.25
"""The wait of a page for a job: so long that those that end soon are not seen as jobs."""


@dataclass(frozen=True, slots=True)
class PageWork:
    """Work whose result a page shows."""

    kind: str
    """What it is, for people."""

    key: Hashable
    """All that the result depends on."""

    begin: Callable[[], Generator[Partial]]

    again: str = ""
    """The address that starts it again."""

    page: str = ""
    """The address that shows it."""

    at_once: bool = False
    """True if it soon ends, and so begins beside other jobs."""


def result_of(
    opened: Opened,
    work: PageWork,
    *,
    small: bool,
    anew: bool = False,
    seconds: float | None = SOON_SECONDS,
) -> AskedJob:
    """Return a result that a page needs, with its job where that has not ended yet.

    Args:
        opened: what is open.
        work: makes the result.
        small: True for work that ends within the time of a page, which is done here.
        anew: True to begin a job again that was stopped or has failed; else it is shown as it is.
        seconds: the longest wait for a job; None to wait until it ends.

    Raises:
        SeekableError: the work failed, and it was done here.
    """
    if small:
        return AskedJob(opened.results.last((work.kind, work.key), work.begin()))
    job = opened.jobs.start(
        work.kind,
        work.key,
        work.begin(),
        at=JobAddresses(work.again, work.page),
        anew=anew,
        at_once=work.at_once,
    )
    job.wait(seconds)
    if job.state == "done":
        return AskedJob(job.partial, job)
    document = {**job.document(), "result": None}
    return AskedJob(job.partial, job, {"job": document}, {"job": document, **shown_of(job)})


def _progress_in_words(document: Mapping[str, Any]) -> str:
    """Return how far a job is, with its rate and the time that is left.

    Example:
        >>> progress = {"done": 2_000_000, "of": 8_000_000, "rate": 50_000.0, "seconds_left": 120.0}
        >>> progress |= {"seconds": 40.0}
        >>> _progress_in_words({"state": "running", **progress, "result": {"unit": "bytes"}})
        '2.0 MB of 8.0 MB, 50.0 kB a second, 2 min left'
        >>> _progress_in_words({"state": "done", **progress, "result": {"unit": "rows"}})
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
    if unit == "bytes":
        return bytes_in_words(number)
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}".rstrip()


def _time(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 1 else "less than a second"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"


def opening(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return how far the index of data is; once it is complete, the address of the data.

    Raises:
        KeyNotFound: no such data was opened in the background.
    """
    job, name = opened.opening.get(asked.name), asked.name
    if job is None and name in opened.datasets:
        return Redirect(f"d/{name}/")
    if job is None:
        message = f"no data {name!r} is being opened"
        raise KeyNotFound(message)
    if name in opened.datasets and job.state == "done" and asked.query.get("as") != "json":
        return Redirect(f"d/{name}/")
    path = opened.paths.get(name, name)
    document = {
        "name": name,
        "path": json_safe(path),
        "open": name in opened.datasets,
        "job": job.document(),
        "heads": opened.kept.get(("heads", name), lambda: heads_of(path)),
    }
    return Page("opening", f"{name} is being indexed", document, {"job": document["job"], **shown_of(job)})


def reopen(opened: Opened, asked: Asked) -> Redirect:
    """Open data again, and return its address, or where the progress of its index is shown.

    Raises:
        KeyNotFound: there is no such data, or it came as an object, which only its program can make.
    """
    name = asked.name
    if name not in opened.openers:
        opened.dataset(name)
        message = f"{name} was given to the viewer as an object: open the data again, and view that"
        raise KeyNotFound(message)
    open_soon(opened, name)
    return Redirect(f"d/{name}/")
