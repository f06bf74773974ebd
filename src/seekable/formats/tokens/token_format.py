"""Files of tokens as a format: ``sk.formats.Tokens``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from seekable._arguments import checked_count, explains_fields
from seekable.errors import InvalidArgument
from seekable.formats.contract import Format, check_partitions
from seekable.formats.table import card_named
from seekable.formats.tokens.token_file import TOKENS, TokenOptions, checked_dtype, token_options
from seekable.formats.tokens.token_recognition import TokenSurveyor, tokens_claim, tool_of
from seekable.formats.tokens.token_source import TokenSource, check_arrays
from seekable.formats.tokens.token_store import DOCUMENT, FACTS, TOKENIZER
from seekable.nodes.columns.names import checked_names
from seekable.nodes.files.leaf import warn_of_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from seekable.formats.contract import Card, Claim, Hive, Reading
    from seekable.formats.look import Folder, Look, OtherTool
    from seekable.index.fileset import FileSet

__all__ = ["Tokens"]


@explains_fields("sk.formats.Tokens")
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
        InvalidArgument: ``dtype`` is none of tokens, an id is negative, or ``partitions`` is another word.
        WrongType: an option has another type.

    Example:
        >>> import pathlib, tempfile, numpy as np, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.array([5, 6, 0, 7, 0], "<u2").tofile(f"{folder}/a.bin")
        ...     ds = sk.open(f"{folder}/a.bin", format=sk.formats.Tokens(dtype="uint16", eos=0))
        ...     [record["tokens"].tolist() for record in ds]
        [[5, 6, 0], [7, 0]]
    """

    card: ClassVar[Card] = card_named(TOKENS)

    dtype: Any = None
    eos: int | None = None
    bos: int | None = None
    partitions: Hive | None = None

    def __post_init__(self) -> None:
        """Check the types and words that the options have."""
        if self.dtype is not None:
            checked_dtype(self.dtype)
        for name in ("eos", "bos"):
            if getattr(self, name) is not None:
                checked_count(name, getattr(self, name), least=0)
        check_partitions(self.partitions)

    @property
    def name(self) -> str:
        """The name of the format, with the options that decide where documents start."""
        dtype = None if self.dtype is None else checked_dtype(self.dtype)
        return TokenOptions(dtype, self.eos, self.bos).name

    @property
    def has_options(self) -> bool:
        """True if there is an option by which files of numbers are tokens."""
        return any(option is not None for option in (self.dtype, self.eos, self.bos))

    def with_name(self, name: str) -> Self:
        """Return the format with the options of a name besides its own.

        Raises:
            InvalidArgument: the name has an unknown option.
        """
        named = token_options(name)
        dtype = named.dtype if self.dtype is None else checked_dtype(self.dtype)
        eos = named.eos if self.eos is None else int(self.eos)
        bos = named.bos if self.bos is None else int(self.bos)
        return replace(self, dtype=dtype, eos=eos, bos=bos)

    @property
    def finder(self) -> TokenSurveyor:
        """The surveyor that finds the documents."""
        return TokenSurveyor(self.name)

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the files of tokens that a spec or a folder names; see `tokens_claim`."""
        return tokens_claim(look)

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return which dataset of tokens a folder is, with an index of its own or one beside each file."""
        return tool_of(folder)

    @classmethod
    def never_data(cls, folder: str, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return the documents of a token store, which have the suffix of lines."""
        documents = names & {DOCUMENT, TOKENIZER}
        is_store = bool(documents) and any(name.endswith(f".{FACTS}") for name in names)
        return documents if is_store else frozenset()

    def check(self, reading: Reading) -> None:
        """Check the columns; documents need no decoding.

        Raises:
            InvalidArgument: ``decode=`` is given.
            WrongType: ``columns`` is no list of names.
        """
        if reading.decode is not None:
            message = (
                f"decode= is for lines and fields, and {self.name} are arrays as they are stored: drop it"
            )
            raise InvalidArgument(message)
        if reading.columns is not None:
            checked_names("columns", reading.columns)

    def leaf(self, files: FileSet, reading: Reading) -> TokenSource:
        """Return the source of the documents of indexed files.

        Raises:
            InvalidArgument: the documents lack one of the columns.
            UnsupportedFormat: files differ in their arrays.
        """
        columns = None if reading.columns is None else checked_names("columns", reading.columns)
        made = TokenSource(files, self.name, reading.shown, columns=columns, errors=reading.errors)
        check_arrays(made)
        warn_of_files(made, UserWarning)
        return made

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> TokenSource:
        """Return the source of a described one whose files were found, with the same columns."""
        columns = described.get("columns")
        return TokenSource(files, self.name, shown, columns=None if columns is None else tuple(columns))
