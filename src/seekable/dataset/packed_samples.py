"""The methods of a dataset of documents, lists of tokens, that make samples of one length of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from seekable._lazy import lazy
from seekable.dataset.face import Face
from seekable.errors import InvalidArgument
from seekable.nodes.graph import known_size, must_be_steady

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from seekable.nodes.columns import names as column_names
    from seekable.packing.lengths import packing_columns, row_lengths
    from seekable.packing.nodes import pack as packs
    from seekable.packing.nodes import sample_cut, sample_form
    from seekable.packing.nodes import windows as fixed_windows
    from seekable.packing.nodes.packed_node import PackedNode
    from seekable.packing.order.fill_in_middle import Fim
    from seekable.parallel.progress import ProgressHook
else:
    column_names = lazy("seekable.nodes.columns.names")
    packing_columns = lazy("seekable.packing.lengths.packing_columns")
    packs = lazy("seekable.packing.nodes.pack")
    row_lengths = lazy("seekable.packing.lengths.row_lengths")
    sample_cut = lazy("seekable.packing.nodes.sample_cut")
    sample_form = lazy("seekable.packing.nodes.sample_form")
    fixed_windows = lazy("seekable.packing.nodes.windows")

__all__ = ["PackedSamples"]


class PackedSamples(Face):
    """Methods for datasets whose records have a list of token ids, such as token files.

    The dataset must have a length and the same rows in every epoch. The lengths of documents come from the
    index of token files; of any other dataset all records are read once, when the method is called.
    """

    __slots__ = ()

    def windows(  # noqa: PLR0913 - keywords
        self,
        length: int,
        *,
        next_token: bool = False,
        align: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        key: str | None = "tokens",
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
    ) -> Self:
        """Return the tokens of all documents end to end, cut into arrays of ``length`` tokens.

        Documents are in their order, and every epoch has the same windows: shuffle them as any other records.
        What is left at the end, fewer tokens than a window has, is in none.

        Args:
            length: the number of tokens of a window.
            next_token: True for ``length + 1`` tokens: each window begins with the last token of the one
                before, so that every token but the first is predicted once.
            align: names of arrays in the records that have one value for each token, such as ``"loss_mask"``.
            columns: the names of the columns of records; by default ``"tokens"`` and the aligned arrays; all
                columns of ``pack`` can be named.
            key: the name of the tokens in records; None if the records are the lists.
            jobs: the most processes that read records to count their tokens.
            executor: reads them instead.
            progress: called as they are read; by default a bar on a terminal.

        Raises:
            InvalidArgument: there are fewer tokens than a window needs, the rows differ between epochs, or an
                argument breaks a rule.
            EndlessDataset: the dataset has no length.
            MissingColumn, WrongType: a record has no flat list of integers under a name.

        Example:
            >>> import seekable as sk
            >>> docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5, 6, 7, 8]}])
            >>> [window["tokens"].tolist() for window in docs.windows(4)]
            [[1, 2, 3, 4], [5, 6, 7, 8]]
        """
        form = sample_form.checked_form(
            "windows()", default=("tokens",), key=key, align=align, columns=columns, next_token=next_token
        )
        self._check_order("windows()")
        cut = sample_cut.windows_cut(length, extra=form.extra)
        lengths = self._lengths("windows()", form, jobs, executor, progress)
        return self._packed(fixed_windows.Windows(self._node, cut, form, lengths))

    def pack(  # noqa: PLR0913 - keywords
        self,
        length: int,
        *,
        seed: int,
        method: Literal["concat", "best_fit"] = "concat",
        order: Literal["table", "exchange", "megatron"] | None = None,
        most: int | None = None,
        long: Literal["split", "truncate", "drop"] = "split",
        next_token: bool = False,
        labels: Literal["within", "across"] | None = None,
        align: Iterable[str] = (),
        positions: Literal["piece", "document"] = "piece",
        fim: Fim | None = None,
        samples: int | None = None,
        pad: int = 0,
        key: str | None = "tokens",
        columns: Iterable[str] | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
    ) -> Self:
        """Return samples of ``length`` tokens, packed of documents in a new order each epoch.

        Any sample of any epoch is computed when it is read; nothing is built for an epoch. A record has:

        - ``tokens``: the tokens of the sample's pieces of documents, in the type of the documents;
        - ``segment_ids``: the number of the piece that each token is of, int32 from 1; 0 where padded;
        - ``positions``: int32, from 0 in each piece; see ``positions``;
        - the aligned arrays, 0 where padded.

        Args:
            length: the number of tokens of a sample.
            seed: ``0 <= seed < 2**64``.
            method: ``"concat"`` puts documents end to end and cuts them; a tail shorter than a sample is left
                out, another one each epoch. ``"best_fit"`` cuts no document that is not longer than a sample,
                and pads samples.
            order: how ``"concat"`` orders documents. ``"table"`` permutes them all, which takes memory for
                each; ``"exchange"`` lets documents of equal length change places, which takes none;
                ``"megatron"`` is the order of Megatron's GPT datasets, for ``samples``. By default a table up
                to 2**20 documents.
            most: the most documents in a sample of ``"best_fit"``.
            long: what ``"best_fit"`` does with a document that is longer than a sample.
            next_token: True for arrays of ``length + 1`` tokens, the last of which is the first
                of another sample of ``"concat"``.
            labels: adds ``labels``, the token after each one, and ``loss_mask``, uint8: 1 where a label
                counts. It is 0 for padding, with ``"within"`` for the first token of a piece, and where an
                aligned array ``"loss_mask"`` has 0 for the label.
            align: names of arrays in the records that have one value for each token.
            positions: ``"document"`` goes on counting in the document, where a piece begins within one.
            fim: rearranges some documents for fill-in-the-middle; a sentinel is 0 in aligned arrays.
            samples: the number of samples that Megatron's index is built for, over all epochs; None
                for one epoch of the data. Every epoch of the dataset has the same samples then.
            pad: the token of places that no document fills.
            key: the name of the tokens in records; None if the records are the lists.
            columns: the names of the columns of records. Beside those above there are ``cu_seqlens``, int32:
                0 and then the end of each piece; and ``max_seqlen``, an int: the tokens of the longest one.
            jobs: the most processes that read records to count their tokens.
            executor: reads them instead.
            progress: called as they are read; by default a bar on a terminal.

        Raises:
            InvalidArgument: there are fewer tokens than a sample needs, the rows differ between epochs, or an
                argument breaks a rule or does not go with another.
            EndlessDataset: the dataset has no length.
            MissingColumn, WrongType: a record has no flat list of integers under a name.

        Example:
            >>> import seekable as sk
            >>> docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5, 6, 7, 8]}])
            >>> sample = docs.pack(8, seed=7)[0]
            >>> sorted(sample["tokens"].tolist()), sample["segment_ids"].dtype
            ([1, 2, 3, 4, 5, 6, 7, 8], dtype('int32'))
        """
        form = sample_form.checked_form(
            "pack()",
            default=("tokens", "segment_ids", "positions"),
            key=key,
            align=align,
            columns=columns,
            next_token=next_token,
            labels=labels,
            positions=positions,
            pad=pad,
        )
        if fim is not None and positions == "document":
            message = "pack(positions='document') counts in documents as they are, and fim= rearranges them"
            raise InvalidArgument(f"{message}: take positions='piece'")
        cut = sample_cut.checked_cut(
            length,
            seed=seed,
            method=method,
            order=order,
            most=most,
            long=long,
            fim=fim,
            samples=samples,
            extra=form.extra,
            documents=self._check_order("pack()"),
        )
        lengths = self._lengths("pack()", form, jobs, executor, progress)
        return self._packed(packs.Pack(self._node, cut, form, lengths))

    def _check_order(self, call: str) -> int:
        """Return the number of documents, if they have one order.

        Raises:
            EndlessDataset: the dataset has no length.
            InvalidArgument: its rows differ between epochs.
        """
        must_be_steady(self._node, call)
        return known_size(self._node, call)

    def _lengths(
        self,
        call: str,
        form: sample_form.SampleForm,
        jobs: int | None,
        executor: Executor | None,
        progress: ProgressHook | None,
    ) -> row_lengths.RowLengths | None:
        """Return the lengths of documents, read once; None if the index of token files has them."""
        node = self._node
        if form.key is not None and packing_columns.has_documents(node):
            column_names.must_have(node, call, (form.key, *form.align))
            if known_size(node, call) > packing_columns.MOST_IN_MEMORY:
                packing_columns.packing_columns(node, jobs=jobs, executor=executor, progress=progress)
            return None
        return row_lengths.row_lengths(
            node,
            form.key,
            align=form.align,
            jobs=jobs,
            executor=executor,
            progress=progress,
            call=call,
        )

    def _packed(self, node: PackedNode) -> Self:
        """Return the dataset of a packed node that has at least one sample, and whose tokens fit their type.

        Raises:
            InvalidArgument: it has none, or a token does not fit.
        """
        node.check()
        return self._over(node)
