"""Tar files as a format: ``sk.formats.Tar``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from seekable.formats.contract import Format, check_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.formats.contract import Hive

__all__ = ["Tar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tar(Format):
    """Tar files of samples, as WebDataset has them; also of each side of sibling archives.

    Args:
        group: ``"key"`` if members with one key are one sample wherever they lie in a file; else members of a
            sample follow each other, and an error says where they do not.
        splitname: ``"last"`` if the key of a member ends at the last dot of its base name; by default at the
            first, as in WebDataset.
        missing: ``"none"`` if a column of ``columns`` that a sample lacks is None, and so are the fields of a
            sample that a sibling archive lacks; by default that is an error.
        concatenated: True if a file may be several archives, one after the other.
        suffix: of sibling archives, what is appended to a field that another archive has too: a text for all
            archives but the first, or a dict by archive.
        partitions: ``"hive"`` if folders are columns; see ``Jsonl``.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Tar(group="key", splitname="last").names
        ('tar',)
    """

    names: ClassVar[tuple[str, ...]] = ("tar",)

    group: Literal["key"] | None = None
    splitname: Literal["first", "last"] | None = None
    missing: Literal["none"] | None = None
    concatenated: bool = False
    suffix: str | Mapping[str, str] | None = None
    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the option of folders; the others are checked with the name of the format."""
        check_partitions(self.partitions)
