"""The nodes that make samples of pieces of documents: ``pack`` and ``windows``.

The tokens of documents that are left out become padding; all others stay in place.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._spans import is_spans
from seekable.errors import InvalidArgument, StateMismatch
from seekable.nodes.bases import UnaryNode
from seekable.nodes.files.leaf import SlicedLeaf
from seekable.nodes.node import Node, RecordNode
from seekable.nodes.rows_to_exclude import rows_left_out
from seekable.nodes.without import excluded
from seekable.order.blocks import cut_long_blocks, default_blocks
from seekable.order.exclusion import row_set
from seekable.packing.document_lengths import (
    CountedDocuments,
    IndexedDocuments,
    RowLengths,
    has_documents,
    row_lengths,
)
from seekable.packing.nodes.packed_plan import PackedReader, copy_records, spans_of_records
from seekable.packing.nodes.sample_arrays import SampleMaker, fitting, records_of
from seekable.packing.nodes.sample_form import LOSS_MASK, TOKENS, SampleForm
from seekable.packing.order.axis import FixedWindows
from seekable.packing.order.sample_pieces import LEFT_OUT, Pieces
from seekable.packing.packing_options import SampleCut, usual_order
from seekable.state.excluded_rows import described_rows, rows_as_text, rows_of_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes import kinds
    from seekable.nodes.graph import Reader, SearchRange
    from seekable.nodes.node import Taking
    from seekable.nodes.saving import Loading, Saving
    from seekable.order.exclusion import RowSet
    from seekable.packing.document_lengths import Documents
    from seekable.packing.nodes.sample_arrays import PlacedPieces
    from seekable.packing.order import best_fit, megatron_order, table_order
    from seekable.packing.order.sample_pieces import Packing
else:
    kinds = lazy("seekable.nodes.kinds")
    best_fit = lazy("seekable.packing.order.best_fit")
    megatron_order = lazy("seekable.packing.order.megatron_order")
    table_order = lazy("seekable.packing.order.table_order")

__all__ = ["LeftOutDocuments", "PackNode", "PackedNode", "WindowsNode"]


_SENTINELS = ("prefix", "suffix", "middle")


@dataclass(frozen=True, eq=False, repr=False)
class PackedNode(UnaryNode, RecordNode):
    """Row ``r`` is a sample: a dict of arrays, made from pieces of the child's records.

    The child is steady, so the documents of every epoch are its rows of epoch 0.
    """

    child: Node
    cut: SampleCut
    form: SampleForm
    rows: RowLengths | None
    """The lengths of the child's lists; None if the index of token files has them."""

    only: frozenset[str] | None = None
    """The columns that are used above; None for all. The description leaves them out."""

    left_out: LeftOutDocuments | None = None
    """The rows of the child that are left out: their tokens are padding."""

    counted: ClassVar[bool] = True
    masks: ClassVar[bool] = True
    order_unknown: ClassVar[str] = (
        "the description has a digest of the lengths of documents, and not the lengths (token files that "
        "are found again have them)"
    )

    @abstractmethod
    def call(self) -> str:
        """Return the call that makes the node, without what it is called of."""

    def check(self) -> None:
        """Check that there is a sample, and that the tokens of the arguments fit the type of documents.

        Raises:
            InvalidArgument: there are too few tokens, or a token does not fit.
        """
        if not self.size:
            lengths, cut = self.documents.lengths, self.cut
            way = "Take a shorter length, or more documents"
            if cut.long == "drop" and lengths.any():
                way = f"long='drop' leaves out documents of more than {cut.full:,}: take long='split'"
            message = (
                f"{self.kind}({cut.length:,}) makes no sample: {lengths.size:,} documents have "
                f"{int(lengths.sum()):,} tokens, and a sample takes {cut.full:,}. {way}"
            )
            raise InvalidArgument(message)
        fim = self.cut.fim
        own = {} if fim is None else {f"fim.{name}": getattr(fim, name) for name in _SENTINELS}
        for name, token in {"pad": self.form.pad, **own}.items():
            fitting(name, token, self.documents.dtypes[TOKENS])

    @cached
    def documents(self) -> Documents:
        """The lengths of the child's documents."""
        return IndexedDocuments(self.child) if self.rows is None else CountedDocuments(self.rows)

    @cached
    def packing(self) -> Packing:
        """The arithmetic that finds the pieces of each sample."""
        return _packing_of(self.cut, self.documents)

    @cached
    def maker(self) -> SampleMaker:
        """The making of the samples."""
        columns, key = self.form.needed(self.only), self.form.key
        dtypes, names = self.documents.dtypes, self.form.read_for(columns)
        spans = frozenset(name for name in names if is_spans(dtypes[name]))
        read = frozenset(name if name != TOKENS else key or name for name in names if name not in spans)
        child = self.child if key is None else self.child.narrowed(read)
        # Columns of segments need the documents, and those of token files as they are stored do not.
        are_stored = bool(columns) and key == TOKENS and frozenset(columns) == read
        is_window = are_stored and self.cut.method == "windows" and self.left_out is None
        return SampleMaker(
            child=child,
            documents=self.documents,
            packing=self.packing,
            form=self.form,
            columns=columns,
            # The form may need a token more than the cut has: in a begun epoch of a pipeline without labels.
            width=self.cut.length + self.form.extra,
            is_sliced=self.rows is None,
            call=f"{self.kind}()",
            stride=self.cut.length,
            beside=self.child.narrowed(spans) if spans else None,
            axis=child.axis if is_window and isinstance(child, SlicedLeaf) else None,
            mark=None if self.left_out is None else self.left_out.out_of,
        )

    @cached
    def size(self) -> int:
        """The number of samples of an epoch."""
        return self.packing.samples

    @property
    def steady(self) -> bool:
        """True if every epoch is cut alike."""
        return self.cut.steady

    @property
    def lanes(self) -> int:
        """1: pieces come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the arguments, the number of samples, the digest of lengths, and what is left out."""
        lengths = {} if self.rows is None else {"lengths": self.rows.digest}
        left_out = {} if self.left_out is None else self.left_out.described()
        return {**self.cut.described(), **self.form.described(), "count": self.size, **lengths, **left_out}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Self | None:
        """Return the samples of token files; None for other data, whose lengths are not described."""
        left_out = LeftOutDocuments.from_description(arguments)
        is_known = ("excluded" in arguments) == (left_out is not None)
        if "lengths" in arguments or not has_documents(children[0]) or not is_known:
            return None
        cut, form = SampleCut.from_description(arguments), SampleForm.from_description(arguments)
        return cls(children[0], cut, form, None, left_out=left_out)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call that makes the node."""
        without = "" if self.left_out is None else f".without(<{self.left_out.rows.size:,} rows>)"
        return f"{children[0]}.{self.call()}{without}"

    def remark(self) -> str:
        """Return what the packing says of an epoch: its tail or padding, and what never moves.

        With a loss mask it says how many tokens of all documents are trained on, where their files know it.
        """
        facts = self.packing.facts()
        texts = [f"{name.replace('_', ' ')} {_shown(fact)}" for name, fact in facts.items()]
        if LOSS_MASK in self.form.align and isinstance(self.child, SlicedLeaf):
            trained = self.child.trained
            texts += [] if trained is None else [f"trained tokens {trained:,}"]
        if self.left_out is not None:
            texts.append(f"{self.left_out.rows.size:,} of {self.child.size or 0:,} documents are padding")
        return "; " + ", ".join(texts)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the node for some columns; arrays that these are not made of are not read."""
        only = columns if self.only is None else columns & self.only
        return self if only == self.only else replace(self, only=only)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns; only records show their types."""
        return dict.fromkeys(self.form.columns)

    def masked(self, rows: Int64s) -> Self:
        """Return the same samples with padding in the places of some documents.

        Raises:
            InvalidArgument: samples have neither segments nor a mask of the loss.
        """
        if not {"segment_ids", LOSS_MASK}.intersection(self.form.columns):
            message = (
                f"{self.kind}({self.cut.length:,}) has no column that says what is padding, so that no "
                f"document can be left out of its samples: ask for one with columns=['tokens', "
                f"'segment_ids'], or align=['loss_mask'] where documents have such a mask"
            )
            raise InvalidArgument(message)
        before = self.left_out
        left_out = LeftOutDocuments(rows) if before is None else before.with_rows(rows)
        return self if left_out is before else replace(self, left_out=left_out)

    @classmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return a reader that plans the child of each node by itself."""
        return PackedReader([node.maker for node in nodes])

    def record(self, position: int) -> Any:
        """Return one sample; each document of it is read by itself."""
        epoch, row = divmod(position, self.size)
        maker = self.maker
        pieces = maker.placed(_as_columns(self.packing.pieces_of_one(row, epoch)))

        def copy(out: Mapping[str, Any]) -> None:
            copy_records(maker, pieces, out)

        def beside() -> Sequence[Any]:
            return spans_of_records(maker, pieces)

        return records_of(maker.arrays(pieces, copy, beside), 1)[0]

    def first_of(self, position: int) -> tuple[Node, int] | None:
        """Return the child and the row of it that has the first piece of a sample; row 0 without a piece."""
        epoch, row = divmod(position, self.size)
        documents = (piece[0] for piece in self.packing.pieces_of_one(row, epoch))
        return self.child, next((document for document in documents if document >= 0), 0)

    def taking(self, old: Node, go: Taking) -> Node | None:
        """Return the old samples: cut as they were, with the columns of these.

        Raises:
            StateMismatch: the documents have other lengths.
        """
        tree = old.describe(None)
        kind = kinds.node_class(tree["kind"]) if tree["kind"] in kinds.KINDS else Node
        if not issubclass(kind, PackedNode):
            return None
        child, form, lengths = go(tree["of"][0], self.child), self.form, self.rows
        if lengths is not None and child is not self.child:
            lengths = row_lengths(child, form.key, align=form.align, call="resume='rows'")
        if lengths is not None and tree.get("lengths") not in (None, lengths.digest):
            message = (
                f"the documents of {old!r} have other lengths now: their samples cannot be cut as they were. "
                f"Go on with the data that the run began with"
            )
            raise StateMismatch(message)
        made = kind(child, SampleCut.from_description(tree), form, lengths, self.only)
        if self.left_out is None:
            return made
        return excluded(made, rows_left_out(self.child, self.left_out.rows))

    def child_range(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the range of one epoch of the child, because all its epochs are equal."""
        return 0, self.child.size

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of the samples that have tokens of the child's rows, in each epoch."""
        none, packing = np.empty(0, dtype=np.int64), self.packing
        positions = positions if self.left_out is None else self.left_out.kept(positions)
        epochs = within.in_each_epoch(np.zeros(1, dtype=np.int64), self.size) // self.size
        found = [
            epoch * self.size + packing.samples_with(document, epoch)
            for epoch in epochs.tolist()
            for document in positions.tolist()
        ]
        return np.concatenate([none, *found])


def _as_columns(found: list[tuple[int, int, int, bool]]) -> Pieces:
    """Return the pieces of one sample as columns."""
    documents, starts, counts, joined = zip(*found, strict=True)
    return Pieces(
        np.array([0, len(found)]),
        np.array(documents, dtype=np.int64),
        np.array(starts, dtype=np.int64),
        np.array(counts, dtype=np.int64),
        np.array(joined) if any(joined) else None,
    )


def _shown(fact: float | str) -> str:
    return fact if isinstance(fact, str) else f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"


_OF_PACKING = frozenset({"long", "most", "order", "pad", "positions", "samples"})
"""The arguments that ``sk.Packing`` holds."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class PackNode(PackedNode):
    """Samples of documents that change places each epoch: concatenated and cut, or fitted together."""

    kind: ClassVar[str] = "pack"

    @property
    def blocks(self) -> Int64s:
        """The default blocks of ``size`` rows: pieces of neighbours come from anywhere in the child."""
        return default_blocks(self.size)

    def call(self) -> str:
        """Return the call of ``pack``, with the arguments that are not the default ones."""
        given = self._given()
        how = {name: value for name, value in given.items() if name in _OF_PACKING}
        given = {name: value for name, value in given.items() if name not in _OF_PACKING}
        method = given.pop("method", None)
        texts = [f"{self.cut.length}, seed={self.cut.seed}"]
        if how:
            texts.append(
                f"method=sk.Packing({', '.join([*([repr(method)] if method else []), *_named(how)])})"
            )
        elif method is not None:
            texts.append(f"method={method!r}")
        if self.form.key not in {None, TOKENS}:
            texts.append(f"key={self.form.key!r}")
        return f"pack({', '.join([*texts, *_named(given)])})"

    def saved_form(self, children: Sequence[str]) -> str:
        """Return the call with all arguments beside each other, as pipeline files have it."""
        texts = [f"{self.cut.length}, seed={self.cut.seed}", *_named(self._given())]
        return f"{children[0]}.pack({', '.join(texts)})"

    def _given(self) -> dict[str, Any]:
        """Return the arguments that are not the default ones, beside length, seed and key."""
        cut, form = self.cut, self.form
        usual = usual_order(self.child.size or 0) if cut.method == "concat" else None
        arguments = {
            "method": (cut.method, "concat"),
            "order": (cut.order, usual),
            "most": (cut.most, None),
            "long": (cut.long, "split"),
            "fim": (cut.fim, None),
            "samples": (cut.samples, None),
            "next_token": (form.next_token, False),
            "labels": (form.labels, None),
            "align": (form.align, ()),
            "positions": (form.positions, "piece"),
            "pad": (form.pad, 0),
        }
        return {name: value for name, (value, default) in arguments.items() if value != default}


def _named(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in arguments.items()]


@final
@dataclass(frozen=True, eq=False, repr=False)
class WindowsNode(PackedNode):
    """Window ``r`` has the tokens from ``r * length`` on of all documents end to end, in every epoch."""

    kind: ClassVar[str] = "windows"

    @property
    def blocks(self) -> Int64s:
        """The child's blocks, each edge moved to the first window that begins at it or later."""
        tokens = self.documents.offsets[self.child.blocks]
        edges = np.minimum(-(-tokens // self.cut.length), self.size)
        return cut_long_blocks(np.diff(np.unique(np.append(edges, self.size))))

    def call(self) -> str:
        """Return the call of ``windows``, with the arguments that are not the default ones."""
        given = [str(self.cut.length)]
        given += ["next_token=True"] if self.form.next_token else []
        given += [f"align={self.form.align!r}"] if self.form.align else []
        return f"windows({', '.join(given)})"


def _packing_of(cut: SampleCut, documents: Documents) -> Packing:
    """Return what finds the pieces of each sample of a cut.

    Args:
        cut: the arguments of the cut.
        documents: the lengths of the documents.

    Raises:
        InvalidArgument: the documents, or the arguments, are beyond the limits of Megatron's order.
    """
    if cut.method == "windows":
        return FixedWindows(documents.axis, stride=cut.length, overlap=cut.extra)
    if cut.method == "best_fit":
        return best_fit.best_fit(
            documents.order, capacity=cut.full, seed=cut.seed, most=cut.most, long=cut.long
        )
    if cut.order == "megatron":
        return _megatron(cut, documents)
    if cut.order == "exchange":
        return table_order.Exchange(
            documents.order, stride=cut.length, overlap=cut.extra, seed=cut.seed, fim=cut.fim
        )
    return table_order.TableOrder(
        documents.offsets, stride=cut.length, overlap=cut.extra, seed=cut.seed, fim=cut.fim
    )


def _megatron(cut: SampleCut, documents: Documents) -> Packing:
    try:
        indexes = megatron_order.build_indexes(
            documents.offsets,
            length=cut.length,
            extra=cut.extra,
            seed=cut.seed,
            samples=cut.samples,
            keep_last=cut.keep_last,
        )
    except ValueError as error:
        message = f"sk.Packing(order='megatron'): {error}"
        raise InvalidArgument(message) from error
    except MemoryError as error:
        message = (
            f"sk.Packing(order='megatron'): not enough memory for Megatron's index, which has a place for "
            f"each document of each epoch ({error}): take fewer samples"
        )
        raise InvalidArgument(message) from error
    return megatron_order.Megatron(documents.offsets, indexes, cut.length, cut.extra)


@final
@dataclass(frozen=True, eq=False)
class LeftOutDocuments:
    """Rows of the child of a packing whose tokens are masked in its samples."""

    rows: Int64s
    """The rows: int64, ascending and distinct."""

    def described(self) -> dict[str, Any]:
        """Return the number and the digest of the rows, and few rows themselves, JSON-safe."""
        return described_rows(self.rows)

    @classmethod
    def from_description(cls, tree: Mapping[str, Any]) -> LeftOutDocuments | None:
        """Return the documents that a description of a node has; None if it has none."""
        return cls(rows_of_text(tree["list"])) if "list" in tree else None

    def as_json(self, into: Saving) -> str:
        """Return the rows as text."""
        return rows_as_text(self.rows)

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> LeftOutDocuments:
        """Return the rows that `as_json` wrote; errors are those of `seekable.nodes.saving.Loading`."""
        return cls(rows_of_text(given.checked(value, str, where)))

    def with_rows(self, rows: Int64s) -> LeftOutDocuments:
        """Return more documents: itself if the rows are left out already."""
        joined = np.union1d(self.rows, rows)
        return self if joined.size == self.rows.size else LeftOutDocuments(joined)

    def out_of(self, pieces: PlacedPieces) -> PlacedPieces:
        """Return the pieces, with those that these documents made marked as left out.

        The sentinels of a document that was rearranged are left out with it.
        """
        out = np.zeros(pieces.documents.size, dtype=np.bool_)
        stored = np.flatnonzero(pieces.documents >= 0)
        out[stored[self._holding(pieces.documents[stored])]] = True
        if not out.any():
            return pieces
        if pieces.joined is not None:
            heads = ~pieces.joined
            heads[pieces.bounds[:-1]] = True
            out = np.logical_or.reduceat(out, np.flatnonzero(heads))[np.cumsum(heads) - 1]
        return replace(pieces, documents=np.where(out, LEFT_OUT, pieces.documents))

    def kept(self, rows: Int64s) -> Int64s:
        """Return those of some rows that are not left out."""
        is_kept = np.ones(rows.size, dtype=np.bool_)
        is_kept[self._holding(rows)] = False
        return rows[is_kept]

    def _holding(self, rows: Int64s) -> NDArray[np.intp]:
        # What is asked for may be any document, also one after the last that is left out.
        return self._set.holding(np.minimum(rows, self._set.size - 1))

    @cached
    def _set(self) -> RowSet:
        return row_set(self.rows, int(self.rows[-1]) + 2)
