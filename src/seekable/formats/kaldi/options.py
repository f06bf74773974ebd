"""Tables of Kaldi as a format: ``sk.formats.Kaldi``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seekable.formats.contract import Format
from seekable.formats.kaldi.files.pipes import checked_pipes

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.registry import Holder

__all__ = ["Kaldi"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kaldi(Format):
    """Scripts, archives and data directories of Kaldi.

    Args:
        holder: how the objects are read: a name such as ``"matrix"``, a `kaldi.Holder`, or a class with
            ``Read`` and ``Write``. Found from the first entries if left out. Records are pairs of a key and
            an object, and ``ds.key`` finds a record by its key.
        pipes: ``"allow"`` runs the commands that lines of scripts contain. Commands that only copy or
            decompress a file (``gunzip -c a.gz |``) are done without running them in any case.

    Raises:
        InvalidArgument: ``pipes`` is another word.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Kaldi(holder="matrix").pipes
        'refuse'
    """

    names: ClassVar[tuple[str, ...]] = ("ark", "scp", "kaldi-directory")

    holder: str | Holder | type[Any] | None = None
    pipes: Pipes = "refuse"

    def __post_init__(self) -> None:
        """Check the options that need no files."""
        checked_pipes(self.pipes)
