"""Files of tokens as a format: ``sk.formats.Tokens``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seekable.formats.contract import Format, check_partitions

if TYPE_CHECKING:
    from seekable.formats.contract import Hive

__all__ = ["Tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens(Format):
    """Files of token ids; those that say their types and documents need no options.

    Args:
        dtype: the type of a token, as ``"uint16"``.
        eos: of files that have no index, the last token of each document. Without ``eos`` and ``bos`` such a
            file is one document. With an index, the documents are counted by it too, and a warning says so if
            the index has others, which are delivered.
        bos: the first token of each document, as in files of llm.c; with ``eos``, a document begins at each
            ``bos`` that follows an ``eos``.
        partitions: ``"hive"`` if folders are columns; see ``Jsonl``.

    Raises:
        InvalidArgument: ``partitions`` is another word.

    Example:
        >>> import pathlib, tempfile, numpy as np, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.array([5, 6, 0, 7, 0], "<u2").tofile(f"{folder}/a.bin")
        ...     ds = sk.open(f"{folder}/a.bin", format=sk.formats.Tokens(dtype="uint16", eos=0))
        ...     [record["tokens"].tolist() for record in ds]
        [[5, 6, 0], [7, 0]]
    """

    names: ClassVar[tuple[str, ...]] = ("tokens",)

    dtype: Any = None
    eos: int | None = None
    bos: int | None = None
    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the option of folders; the others are checked with the name of the format."""
        check_partitions(self.partitions)
