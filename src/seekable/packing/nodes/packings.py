"""The arithmetic of a cut: which class finds the pieces of its samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from seekable.packing.lengths.documents import Documents
    from seekable.packing.nodes.sample_cut import SampleCut
    from seekable.packing.order import best_fit, exchange, fixed_windows, megatron, table
    from seekable.packing.order.pieces import Packing
else:
    best_fit = lazy("seekable.packing.order.best_fit")
    exchange = lazy("seekable.packing.order.exchange")
    fixed_windows = lazy("seekable.packing.order.fixed_windows")
    megatron = lazy("seekable.packing.order.megatron")
    table = lazy("seekable.packing.order.table")

__all__ = ["packing_of"]


def packing_of(cut: SampleCut, documents: Documents) -> Packing:
    """Return what finds the pieces of each sample of a cut.

    Args:
        cut: the arguments of the cut.
        documents: the lengths of the documents.

    Raises:
        InvalidArgument: the documents, or the arguments, are beyond the limits of Megatron's order.
    """
    if cut.method == "windows":
        return fixed_windows.FixedWindows(documents.axis, stride=cut.length, overlap=cut.extra)
    if cut.method == "best_fit":
        return best_fit.best_fit(
            documents.order, capacity=cut.full, seed=cut.seed, most=cut.most, long=cut.long
        )
    if cut.order == "megatron":
        return _megatron(cut, documents)
    if cut.order == "exchange":
        return exchange.Exchange(
            documents.order, stride=cut.length, overlap=cut.extra, seed=cut.seed, fim=cut.fim
        )
    return table.Table(documents.offsets, stride=cut.length, overlap=cut.extra, seed=cut.seed, fim=cut.fim)


def _megatron(cut: SampleCut, documents: Documents) -> Packing:
    try:
        indexes = megatron.build_indexes(
            documents.offsets,
            length=cut.length,
            extra=cut.extra,
            seed=cut.seed,
            samples=cut.samples,
            keep_last=cut.keep_last,
        )
    except ValueError as error:
        message = f"pack(order='megatron'): {error}"
        raise InvalidArgument(message) from error
    except MemoryError as error:
        message = (
            f"pack(order='megatron'): there is not enough memory for Megatron's index, which has a place for "
            f"each document of each epoch ({error}): take fewer samples"
        )
        raise InvalidArgument(message) from error
    return megatron.Megatron(documents.offsets, indexes, cut.length, cut.extra)
