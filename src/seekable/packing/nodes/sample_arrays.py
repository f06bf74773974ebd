"""The arrays of packed samples, of many samples at once: tokens, labels, masks, and those of segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.packing.nodes.sample_form import LOSS_MASK, OF_SEGMENTS, TOKENS
from seekable.packing.nodes.sample_segments import placed, segments_of
from seekable.packing.order.pieces import LITERAL, Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.packing.nodes.sample_form import SampleForm
    from seekable.packing.nodes.sample_segments import Placed

    Array = NDArray[Any]
    Copy = Callable[[Mapping[str, Array]], None]

__all__ = ["fitting", "records_of", "sample_arrays"]


def sample_arrays(
    pieces: Placed, form: SampleForm, columns: Sequence[str], copy: Copy, dtypes: Mapping[str, np.dtype[Any]]
) -> dict[str, Any]:
    """Return some columns of samples.

    Args:
        pieces: the pieces of one sample or more.
        form: what the columns hold.
        columns: the names of the columns to make, in their order.
        copy: copies the tokens of documents into arrays of shape (samples, width), which it gets by name:
            those of ``form.read_for(columns)``.
        dtypes: the type of each of these arrays.

    Returns:
        For each column an array with a first axis of samples, or for ``"cu_seqlens"`` a list of arrays.
    """
    out: dict[str, Any] = {}
    if any(name in OF_SEGMENTS for name in columns):
        shown = pieces if form.labels is None else _without_last(pieces)
        segments = segments_of(shown, form.positions)
        makers: dict[str, Callable[[], Any]] = {
            "segment_ids": segments.ids,
            "positions": segments.positions,
            "cu_seqlens": segments.cumulated,
            "max_seqlen": segments.longest,
        }
        out |= {name: makers[name]() for name in columns if name in makers}
    read = _read(pieces, form, columns, copy, dtypes)
    if form.labels is None:
        out |= read
    else:
        if "labels" in columns:
            out["labels"] = read[TOKENS][:, 1:].copy()
        if LOSS_MASK in columns:
            out[LOSS_MASK] = _loss_mask(pieces, form, read.pop(LOSS_MASK, None))
        out |= {name: np.ascontiguousarray(array[:, :-1]) for name, array in read.items() if name in columns}
    return {name: out[name] for name in columns}


def records_of(arrays: Mapping[str, Any], samples: int) -> list[dict[str, Any]]:
    """Return the records of samples; each owns its arrays.

    Args:
        arrays: what `sample_arrays` returned.
        samples: the number of samples.
    """
    columns = [
        [int(value) for value in values] if name == "max_seqlen" else [value.copy() for value in values]
        for name, values in arrays.items()
    ]
    names = list(arrays)
    rows = zip(*columns, strict=True) if columns else [()] * samples
    return [dict(zip(names, row, strict=True)) for row in rows]


def fitting(name: str, value: int, dtype: np.dtype[Any]) -> Any:
    """Return a number as a value of a type.

    Raises:
        InvalidArgument: the type cannot hold the number.

    Example:
        >>> fitting("pad", 7, np.dtype(np.uint16)).dtype
        dtype('uint16')
    """
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not least <= value <= most:
        message = (
            f"{name}={value} does not fit {dtype}, the type of the tokens: it holds {least} to {most}. Give "
            f"another number, or write the tokens in a wider type"
        )
        raise InvalidArgument(message)
    return dtype.type(value)


def _read(
    pieces: Placed, form: SampleForm, columns: Sequence[str], copy: Copy, dtypes: Mapping[str, np.dtype[Any]]
) -> dict[str, Array]:
    """Return the tokens and aligned arrays of samples, each of shape (samples, width)."""
    shape = pieces.samples, pieces.width
    is_full = bool((pieces.used == pieces.width).all())
    out: dict[str, Array] = {}
    for name in form.read_for(columns):
        out[name] = np.empty(shape, dtypes[name])
        if not is_full:
            out[name].fill(fitting("pad", form.pad, dtypes[name]) if name == TOKENS else 0)
    if not out:
        return out
    copy(out)
    literal = np.flatnonzero(pieces.documents == LITERAL)
    if literal.size:
        where = pieces.sample_of[literal], pieces.at[literal]
        for name, array in out.items():
            array[where] = pieces.starts[literal] if name == TOKENS else 0
    return out


def _without_last(pieces: Placed) -> Placed:
    """Return the pieces without the last token of full samples, which is a label alone."""
    columns = pieces.documents, pieces.starts, pieces.counts, pieces.joined
    return placed(Pieces(pieces.bounds, *columns), pieces.width - 1)


def _loss_mask(pieces: Placed, form: SampleForm, aligned: Array | None) -> Array:
    """Return 1 for each label that counts in the loss: uint8, shape (samples, width - 1).

    Args:
        pieces: the pieces of the samples, those of the labels too.
        form: the rule between documents.
        aligned: 0 for each token that does not count; None if all do.
    """
    mask = np.ones((pieces.samples, pieces.width - 1), dtype=np.uint8)
    if form.labels == "within":
        heads = pieces.at > 0 if pieces.joined is None else (pieces.at > 0) & ~pieces.joined
        mask[pieces.sample_of[heads], pieces.at[heads] - 1] = 0
    used = pieces.used
    for short in np.flatnonzero(used < pieces.width).tolist():
        mask[short, max(0, int(used[short]) - 1) :] = 0
    if aligned is not None:
        mask &= aligned[:, 1:] != 0
    return mask
