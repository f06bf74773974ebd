"""The holders by their names, and the user's own beside them."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.holders.basic_vectors import (
    BasicVectorHolder,
    PairVectorHolder,
    VectorVectorHolder,
)
from seekable.formats.kaldi.holders.blobs import BlobHolder, NumpyArrayHolder
from seekable.formats.kaldi.holders.compressed_holders import CompressedMatrixHolder, GeneralMatrixHolder
from seekable.formats.kaldi.holders.dense import MatrixHolder, VectorHolder
from seekable.formats.kaldi.holders.feature_files import HtkHolder, SphinxHolder
from seekable.formats.kaldi.holders.holder import Holder
from seekable.formats.kaldi.holders.objects import ObjectHolder
from seekable.formats.kaldi.holders.packed import PackedMatrixHolder
from seekable.formats.kaldi.holders.posteriors import GaussPosteriorHolder, PosteriorHolder
from seekable.formats.kaldi.holders.scalars import BoolHolder, NumberHolder, TokenHolder, TokenVectorHolder
from seekable.formats.kaldi.holders.sparse import SparseMatrixHolder, SparseVectorHolder
from seekable.formats.kaldi.holders.wave import WaveHolder, WaveInfoHolder
from seekable.formats.kaldi.objects.basic_types import BASIC_TYPES

__all__ = ["find_holder", "holder_names", "is_own", "register_holder"]


def _own_holders() -> list[Holder]:
    found: list[Holder] = [NumberHolder(name, basic) for name, basic in BASIC_TYPES.items()]
    for name, basic in BASIC_TYPES.items():
        found.append(PairVectorHolder(f"{name}-pair-vector", basic))
        if not basic.is_float:
            found.append(BasicVectorHolder(f"{name}-vector", basic))
            found.append(VectorVectorHolder(f"{name}-vector-vector", basic))
    for prefix, basic in (("", BASIC_TYPES["float"]), ("double-", BASIC_TYPES["double"])):
        found += [VectorHolder(f"{prefix}vector", basic), MatrixHolder(f"{prefix}matrix", basic)]
        for kind, upper in (("packed", "absent"), ("sp", "mirrored"), ("tp", "zero")):
            found.append(PackedMatrixHolder(f"{prefix}{kind}-matrix", basic, upper))
    found += [BoolHolder(), TokenHolder(), TokenVectorHolder(), PosteriorHolder(), GaussPosteriorHolder()]
    found += [CompressedMatrixHolder(), GeneralMatrixHolder(), SparseVectorHolder(), SparseMatrixHolder()]
    found += [HtkHolder(), SphinxHolder(), WaveHolder(), WaveInfoHolder(), BlobHolder(), NumpyArrayHolder()]
    return found


_OWN = {each.name: each for each in _own_holders()}
_HOLDERS: dict[str, Holder] = dict(_OWN)


def holder_names() -> list[str]:
    """Return the names of all holders, sorted.

    Example:
        >>> "matrix" in holder_names()
        True
    """
    return sorted(_HOLDERS)


def is_own(holder: Holder) -> bool:
    """Return True for a holder of seekable, whatever its options; False for one of the user.

    Example:
        >>> is_own(find_holder("matrix", precision=9))
        True
    """
    return type(holder) is type(_OWN.get(holder.name))


def register_holder(holder: Holder) -> None:
    """Make a holder known by its name, in this process; a later one of the same name replaces it.

    Raises:
        WrongType: it has not all methods of a Holder.
        InvalidArgument: its name is one of seekable's own, or is empty.
    """
    if isinstance(holder, type) or not isinstance(holder, Holder):
        raise WrongType(f"holder must have name, read, write, skip and shape (got {holder!r})")
    if not holder.name or not isinstance(holder.name, str) or holder.name in _OWN:
        raise InvalidArgument(f"the name of a holder must be new, and not empty (got {holder.name!r})")
    _HOLDERS[holder.name] = holder


def find_holder(holder: object, **options: Any) -> Holder:
    """Return the holder that is meant.

    Args:
        holder: a name, a holder, or a class with Read and Write in the style of Kaldi.
        options: fields of the holder to change, such as ``precision=9``, or ``method=2`` of a compressed-
            matrix.

    Raises:
        InvalidArgument: no holder has this name, or the holder lacks an option, or the precision is less
            than 1.
        WrongType: it is something else, or the precision is no int.

    Example:
        >>> find_holder("vector", precision=9).precision
        9
    """
    found = _resolved(holder)
    if not options:
        return found
    fields: tuple[dataclasses.Field[Any], ...] = (
        dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    )
    for option in options:
        if option not in [each.name for each in fields]:
            raise InvalidArgument(f"{option}= has no meaning for the holder {found.name}")
    if "precision" in options:
        checked_count("precision", options["precision"], least=1)
    changed: Holder = dataclasses.replace(found, **options)  # type: ignore[type-var]
    return changed


def _resolved(holder: object) -> Holder:
    if isinstance(holder, str):
        if holder not in _HOLDERS:
            near = difflib.get_close_matches(holder, _HOLDERS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidArgument(f"holder must be one of {', '.join(holder_names())} (got {holder!r}){hint}")
        return _HOLDERS[holder]
    if isinstance(holder, type) and callable(getattr(holder, "Read", None)):
        return ObjectHolder(holder)
    if not isinstance(holder, type) and isinstance(holder, Holder):
        return holder
    raise WrongType(f"holder must be a name, a holder, or a class with Read and Write (got {holder!r})")
