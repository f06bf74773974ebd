"""The methods of a dataset whose code is that of a subject, which is loaded when one of them is called.

The names, the arguments and what they mean are here; `seekable.formats.table` says where the code lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from seekable.dataset.face import Face
from seekable.formats.table import plugged

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor
    from typing import Protocol

    from seekable._typing import Int64s
    from seekable.parallel.progress import ProgressHook

    class FimOptions(Protocol):
        """What type checkers know here of ``sk.Fim``."""

        @property
        def rate(self) -> float: ...
        @property
        def sentinels(self) -> tuple[int, int, int]: ...
        @property
        def spm(self) -> float: ...
        @property
        def end_tokens(self) -> int: ...


__all__ = ["Plugged"]


class Plugged(Face):
    """Methods for datasets whose records have a list of token ids, such as token files.

    The dataset must have a length and the same rows in every epoch. The lengths of documents come from the
    index of token files; of any other dataset all records are read once, when the method is called.
    """

    __slots__ = ()

    @property
    def lengths(self) -> Int64s:
        """The token count of each document in token files: int64, one a record; it cannot be written.

        No data file is read. The rows may be chosen and put into any fixed order.

        Raises:
            InvalidArgument: records are no documents of token files, or rows differ between epochs.
        """
        found: Int64s = plugged("packing").lengths_of_documents(self._node)
        return found

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
        return self._over(
            plugged("packing").windows(
                self._node,
                length,
                next_token=next_token,
                align=align,
                columns=columns,
                key=key,
                jobs=jobs,
                executor=executor,
                progress=progress,
            )
        )

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
        fim: FimOptions | None = None,
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
        return self._over(
            plugged("packing").pack(
                self._node,
                length,
                seed=seed,
                method=method,
                order=order,
                most=most,
                long=long,
                next_token=next_token,
                labels=labels,
                align=align,
                positions=positions,
                fim=fim,
                samples=samples,
                pad=pad,
                key=key,
                columns=columns,
                jobs=jobs,
                executor=executor,
                progress=progress,
            )
        )
