"""The sources of a run at one moment: for the log where it resumes, and for people who ask later."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, final

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._log import LOG
from seekable.errors import SeekableError
from seekable.nodes.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.resume import report
    from seekable.resume.consumed import DatasetProgress
    from seekable.resume.report import SourceReport
    from seekable.stream.stream import Stream
else:
    report = lazy("seekable.resume.report")

__all__ = ["Resumed", "log_anew"]


@final
class Resumed:
    """The sources of a run where it resumed: true, and as text one line for each source.

    Nothing is computed until it is needed.

    Args:
        pipeline: the node of the dataset, or the Stream, that is delivered.
        progress: returns how far each dataset was read; what it returns never changes.
    """

    def __init__(self, pipeline: Node | Stream, progress: Callable[[], list[DatasetProgress]]) -> None:
        self._pipeline = pipeline
        self._progress = progress

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The progress of each source, as ``loader.sources()`` returned it there: new dicts, JSON-safe."""
        return [each.document() for each in self._reports]

    def progress(self) -> list[DatasetProgress]:
        """Return how far each dataset was read.

        Raises:
            InvalidArgument: a stage hides how many rows each source delivered.
            CorruptState: lanes of other ranks are not known here.
        """
        return self._progress()

    def log(self) -> None:
        """Log one line for each source, at level INFO."""
        if LOG.isEnabledFor(logging.INFO):
            for each in self._reports:
                LOG.info("%s", each.line())

    def __str__(self) -> str:
        """Return the lines of the log: ``resume: spec=... sample_row=... shard=... offset=...``."""
        return "\n".join(each.line() for each in self._reports)

    def __repr__(self) -> str:
        """Show the number of sources."""
        return f"<Resumed: {len(self._reports)} sources>"

    @cached
    def _reports(self) -> list[SourceReport]:
        try:
            return report.report_progress(self._progress())
        except SeekableError:
            # Rows that cannot be counted are left out, and never keep a run from resuming.
            pipeline = self._pipeline
            if isinstance(pipeline, Node):
                return report.report_unknown_dataset(pipeline)
            return report.report_unknown_stream(pipeline.stage)


def log_anew(why: str) -> None:
    """Log that a run begins anew, at level INFO."""
    LOG.info("resume: %s: the run begins anew", why)
