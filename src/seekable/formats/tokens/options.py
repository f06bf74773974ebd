"""The options ``dtype``, ``eos`` and ``bos`` of ``sk.formats.Tokens``, and the name of a format with them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from seekable.errors import InvalidArgument, WrongType

__all__ = ["DTYPES", "TOKENS", "TokenOptions", "checked_dtype", "token_options"]

TOKENS = "tokens"
"""The name of the format without options."""

DTYPES = ("<u2", "<u4", "<i4", "|u1", "|i1", "<i2", "<u8", "<i8")
"""The types that tokens can have, in the form in which names and schemas have them."""

_NAME = re.compile(rf"{TOKENS}(?:-([iu][1248]))?(?:-eos(\d+))?(?:-bos(\d+))?")


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """The arguments of the user that decide where documents of tokens start.

    Example:
        >>> TokenOptions("<u2", eos=50256).name
        'tokens-u2-eos50256'
    """

    dtype: str | None = None
    """The type of a token, one of `DTYPES`; None where files say it."""

    eos: int | None = None
    """The last token of each document; None where files say where documents end."""

    bos: int | None = None
    """The first token of each document; None where files say where documents end."""

    @property
    def name(self) -> str:
        """The name of the format with these options."""
        parts = (
            "" if self.dtype is None else f"-{self.dtype[1:]}",
            "" if self.eos is None else f"-eos{self.eos}",
            "" if self.bos is None else f"-bos{self.bos}",
        )
        return TOKENS + "".join(parts)


def token_options(name: str) -> TokenOptions:
    """Return the options in the name of the format.

    Raises:
        InvalidArgument: the name is of another form.

    Example:
        >>> token_options("tokens-u2-eos50256")
        TokenOptions(dtype='<u2', eos=50256, bos=None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        message = (
            f"format {name!r} is not known; tokens are 'tokens', with the options dtype=, eos= and bos= of "
            f"sk.formats.Tokens"
        )
        raise InvalidArgument(message)
    dtype, eos, bos = found.groups()
    return TokenOptions(
        None if dtype is None else checked_dtype(dtype),
        None if eos is None else int(eos),
        None if bos is None else int(bos),
    )


def checked_dtype(dtype: object) -> str:
    """Return a type of tokens in the form of `DTYPES`.

    Raises:
        InvalidArgument: tokens cannot be of this type.
        WrongType: it is no type.

    Example:
        >>> checked_dtype("uint16"), checked_dtype(np.int32)
        ('<u2', '<i4')
    """
    try:
        found = np.dtype(dtype).str  # type: ignore[call-overload]
    except (TypeError, ValueError):
        message = f"dtype must be the name of a type of integers, as 'uint16' (got {dtype!r})"
        raise WrongType(message) from None
    if dtype is None or found not in DTYPES:
        names = ", ".join(repr(np.dtype(each).name) for each in DTYPES)
        message = f"dtype must be one of {names} (got {dtype!r})"
        raise InvalidArgument(message)
    return str(found)
