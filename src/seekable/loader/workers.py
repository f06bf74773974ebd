"""The workers of a loader, as a value: ``sk.Workers``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from seekable._arguments import (
    AT_ONCE,
    checked_choice,
    checked_count,
    checked_seconds,
    explains_fields,
)
from seekable.errors import WrongType

__all__ = ["WorkerType", "Workers", "checked_workers"]

WorkerType = Literal["process", "thread"]


@explains_fields("sk.Workers")
@dataclass(frozen=True, slots=True, repr=False)
class Workers:
    """Workers that make the batches of a loader. Neither batches, nor order, nor states depend on them.

    Args:
        count: the number of workers; 0 for none.
        timeout: the most seconds to wait for a batch of a worker process that has started; then
            ``WorkerHung`` is raised. None for any number. A thread may take any time.
        restart: the most worker processes that are replaced when they die, as where memory is short; no batch
            is lost or comes twice. The next one that dies raises ``WorkerDied``, and so does the third at
            one batch. None for any number.
        type: ``"process"``, or ``"thread"`` where decoding lets other threads run.

    Raises:
        InvalidArgument: a value breaks its rule.
        WrongType: a value has a wrong type.

    Example:
        >>> import seekable as sk
        >>> workers = sk.Workers(2, type="thread")
        >>> with sk.Loader(sk.from_sequence(range(5)), batch_size=2, collate=list, workers=workers) as loader:
        ...     list(loader)
        [[0, 1], [2, 3], [4]]
        >>> sk.Workers(4, timeout=60, restart=2)
        Workers(4, timeout=60.0, restart=2)
    """

    count: int
    _: KW_ONLY
    timeout: float | None = None
    restart: int | None = 0
    type: WorkerType = "process"

    def __post_init__(self) -> None:
        """Check the values."""
        count = checked_count("count", self.count, least=0, below=AT_ONCE)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "timeout", checked_seconds("timeout", self.timeout))
        if self.restart is not None:
            object.__setattr__(self, "restart", checked_count("restart", self.restart, least=0))
        checked_choice("type", self.type, ("process", "thread"))

    def __repr__(self) -> str:
        """Show the number, and what differs from the defaults."""
        texts = [repr(self.count)]
        if self.timeout is not None:
            texts.append(f"timeout={self.timeout!r}")
        if self.restart != 0:
            texts.append(f"restart={self.restart!r}")
        if self.type != "process":
            texts.append(f"type={self.type!r}")
        return f"Workers({', '.join(texts)})"


def checked_workers(value: object) -> Workers:
    """Return the ``workers=`` of a loader as a value.

    Raises:
        WrongType: it is neither a number nor a ``Workers``.
        InvalidArgument: the number is below 0, or too large.

    Example:
        >>> checked_workers(2)
        Workers(2)
    """
    if isinstance(value, Workers):
        return value
    try:
        count = checked_count("workers", value, least=0, below=AT_ONCE)
    except WrongType as error:
        raise WrongType(f"{error}: say how many, or sk.Workers(count, type='thread')") from None
    return Workers(count)
