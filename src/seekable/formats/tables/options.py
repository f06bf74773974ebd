"""Tables as a format: ``sk.formats.Tables``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from seekable.formats.contract import Format, check_partitions

if TYPE_CHECKING:
    from seekable.formats.contract import Hive

__all__ = ["Tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables(Format):
    """Parquet and Arrow.

    Args:
        strict: True if all files must have the same columns of the same types. Else records have the columns
            of all files, None where a file lacks one, in types that hold all values.
        partitions: ``"hive"`` if folders ``year=2024/lang=de/`` are columns of the records below them: int64
            where all values of a key are integers, else str; None for ``__HIVE_DEFAULT_PARTITION__``, and in
            a file that lies in no folder of the key. ``filter(where=)`` opens no file that they rule out.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Tables(strict=True)
        Tables(strict=True, partitions=None)
    """

    names: ClassVar[tuple[str, ...]] = ("parquet", "arrow")

    strict: bool = False
    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_partitions(self.partitions)
