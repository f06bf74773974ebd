"""The options that few token stores need, as a value: ``sk.formats.TokenStore``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._arguments import checked_choice, checked_count, checked_flag, checked_function, explains_fields
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.families.indexed_dataset import INDEX_DTYPES
from seekable.formats.tokens.tokenizing.engine import ENGINES, checked_token_dtype
from seekable.formats.tokens.tokenizing.parts import AuxGenerator, Spans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TokenStore", "check_array_name", "checked_end"]

_RESERVED = frozenset({"tokens", "segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen"})
"""The names of arrays that packed samples have besides the aligned ones."""

_SUFFIXES = frozenset({"bin", "lengths", "sources", "idx", "facts", "json", "tmp"})
"""The suffixes of the other files of a store."""


@final
@explains_fields("sk.formats.TokenStore")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStore:
    """The options of a token store, beyond its tokenizer, its column and the token that ends documents.

    ``sk.tokenize`` and ``write_tokens`` take it as ``store=``.

    Args:
        bos: the token before each document, as its text or its id; none if left out.
        engine: ``"gigatoken"`` or ``"tiktoken"`` to make the ids of a ``tokenizer.json`` faster. About 1,000
            texts of the data are compared with the ids of Hugging Face's package, ``"hf"``, first; where they
            differ, nothing is written.
        parts: of ``sk.tokenize``, a function of a record that returns a list of ``sk.Part``, or of dicts with
            a type and a text; or a dict with the ids under "tokens" and further arrays of one value for each
            id. The column "parts" if left out and ``align`` has generators.
        align: the arrays beside the tokens, with one value for each. Of texts a dict of generators,
            ``{"loss_mask": sk.LossMask()}``; those of data-forager can be given, whose loss mask is turned
            round: 1 = in the loss. Or a dict of columns of spans, ``{"spans": sk.formats.Spans()}``. Of ids
            the columns that have them, ``["loss_mask"]``, or a dict of their dtypes.
        dtype: the dtype of the ids. Of texts uint16 if no id is above 65,535, else uint32. Of ids the records
            decide: uint16 for arrays of that dtype, or where a dataset has at most 1,024 records, and no
            larger id; else uint32.
        idx: True to write Megatron's index, ``part-000000.idx``, too; ids are uint16 below a vocabulary of
            65,500 then, else int32.
        sample_size: of ``sk.tokenize``, writes samples of this many tokens, byte for byte as data-forager
            does, in place of documents; needs ``eos``. Masks then count as there, 1 = left out of the loss.
        rows_per_file: the records of a part, of a stream its slots. If left out, ``sk.tokenize`` takes those
            of 8 to 64 MB, and ``write_tokens`` 100,000.

    Raises:
        InvalidArgument: a value breaks its rule.
        WrongType: a value has a wrong type.

    Example:
        >>> import tempfile, seekable as sk
        >>> ds = sk.from_sequence([{"tokens": [5, 6], "weight": [0, 3]}, {"tokens": [7], "weight": [4]}])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     how = sk.formats.TokenStore(align=["weight"], dtype="uint32")
        ...     written = ds.write_tokens(folder, eos=0, store=how)
        ...     [document["weight"].tolist() for document in sk.open(folder)]
        [[0, 3, 0], [4, 0]]
    """

    bos: str | int | None = None
    engine: str | None = None
    parts: Callable[[Any], Any] | None = None
    align: Sequence[str] | Mapping[str, Any] = ()
    dtype: Any = None
    idx: bool = False
    sample_size: int | None = None
    rows_per_file: int | None = None

    def __post_init__(self) -> None:
        """Check what needs no tokenizer."""
        checked_end("bos", self.bos)
        if self.engine is not None:
            checked_choice("engine", self.engine, ENGINES)
        if self.parts is not None:
            checked_function("parts", self.parts)
        _check_align(self.align)
        checked_flag("idx", self.idx)
        if self.dtype is not None:
            dtype = checked_token_dtype(self.dtype)
            if self.idx and dtype not in INDEX_DTYPES:
                message = (
                    f"dtype must be uint16 or int32 with idx=True, and Megatron's index has no "
                    f"{dtype.name}: leave out one"
                )
                raise InvalidArgument(message)
        for name in ("sample_size", "rows_per_file"):
            if getattr(self, name) is not None:
                checked_count(name, getattr(self, name), least=1)
        self._check_spans()

    def _check_spans(self) -> None:
        """Check that documents with spans are texts of one part.

        Raises:
            InvalidArgument: they are something else.
        """
        if not self.spans:
            return
        name = next(iter(self.spans))
        for other, is_given in (
            ("parts=", self.parts is not None),
            ("other arrays of align=", len(self.spans) < len(self.align)),
            ("sample_size=", self.sample_size is not None),
        ):
            if is_given:
                message = (
                    f"align[{name!r}] has spans, which stand beside one text a document, and not with "
                    f"{other}: leave out one"
                )
                raise InvalidArgument(message)

    @property
    def generators(self) -> dict[str, AuxGenerator]:
        """The generators of arrays beside the tokens, by name."""
        if not isinstance(self.align, Mapping):
            return {}
        return {name: made for name, made in self.align.items() if isinstance(made, AuxGenerator)}

    @property
    def spans(self) -> dict[str, Spans]:
        """The columns of spans beside texts, by name."""
        if not isinstance(self.align, Mapping):
            return {}
        return {name: made for name, made in self.align.items() if isinstance(made, Spans)}

    @property
    def columns(self) -> dict[str, np.dtype[Any] | None]:
        """The columns of arrays beside the tokens, each with the dtype that the user chose."""
        if not isinstance(self.align, Mapping):
            return dict.fromkeys(self.align)
        return {
            name: _checked_dtype(name, dtype)
            for name, dtype in self.align.items()
            if not isinstance(dtype, AuxGenerator | Spans)
        }


def checked_end(name: str, token: object) -> str | int | None:
    """Return the token at an end of documents.

    Raises:
        WrongType: it is neither a text nor an id.
    """
    if token is None or isinstance(token, str):
        return token
    if isinstance(token, bool) or not isinstance(token, int | np.integer):
        message = f"{name} must be a token of the vocabulary or its id (got {token!r})"
        raise WrongType(message)
    return int(token)


def _check_align(align: object) -> None:
    """Check the names of the arrays beside the tokens, and what makes them.

    Raises:
        WrongType: ``align`` holds no names, or neither dtypes nor generators.
        InvalidArgument: an array cannot have the name, or is named twice.
    """
    if not isinstance(align, list | tuple | Mapping):
        message = (
            f"align must be a list of names such as ['loss_mask'], or a dict of dtypes or of generators such "
            f"as {{'loss_mask': sk.LossMask()}} (got {align!r})"
        )
        raise WrongType(message)
    for name in align:
        check_array_name(name)
    if isinstance(align, Mapping):
        for name, made in align.items():
            if not isinstance(made, AuxGenerator | Spans):
                _checked_dtype(name, made)
    elif len(set(align)) < len(align):
        message = f"align names an array twice (got {list(align)})"
        raise InvalidArgument(message)


def check_array_name(name: object) -> None:
    """Raise an error for a name that no array beside the tokens can have."""
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier():
        message = f"an array beside the tokens has an identifier as its name, 'loss_mask' say (got {name!r})"
        raise InvalidArgument(message)
    if name in _RESERVED | _SUFFIXES:
        taken = ", ".join(sorted(_RESERVED | _SUFFIXES))
        message = f"an array beside the tokens cannot be named {name!r}; other names that are taken: {taken}"
        raise InvalidArgument(message)


def _checked_dtype(name: object, dtype: object) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype).newbyteorder("<")  # type: ignore[call-overload]
    except TypeError:
        message = (
            f"align[{name!r}] must be a dtype such as 'uint8', or have dtype, generate() and "
            f"generate_for_eos() as sk.LossMask() has (got {dtype!r})"
        )
        raise WrongType(message) from None
    if dtype is None or found.kind not in "biuf" or found.itemsize > 8:  # noqa: PLR2004 - 64 bits
        message = f"align[{name!r}] must be a dtype of numbers such as 'uint8' (got {dtype!r})"
        raise InvalidArgument(message)
    return found
