"""The method of a stream that writes its items as a store of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.stream.files import StreamFiles

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from seekable.formats.tokens.writing import tokens_arguments
    from seekable.parallel.progress import ProgressHook
    from seekable.writing import earlier_files, write_stream
    from seekable.writing.manifest import Written
else:
    earlier_files = lazy("seekable.writing.earlier_files")
    tokens_arguments = lazy("seekable.formats.tokens.writing.tokens_arguments")
    write_stream = lazy("seekable.writing.write_stream")

__all__ = ["StreamTokenWriting"]


class StreamTokenWriting(StreamFiles):
    """The method that writes all items of a stream as tokens."""

    __slots__ = ()

    def write_tokens(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        tokenizer: Any = None,
        column: str = "text",
        key: str = "tokens",
        align: Sequence[str] | Mapping[str, Any] = (),
        eos: str | int | None = None,
        bos: str | int | None = None,
        engine: str | None = None,
        dtype: Any = None,
        rows_per_file: int | None = None,
        idx: bool = False,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Written:
        """Write all items as a store of tokens, in the order of slots; ``sk.open`` reads it.

        Each item is a document: a list of ids, or with a tokenizer a text. What the folder has, and all
        arguments, are as in ``Dataset.write_tokens``. Where the documents come from is not kept.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            tokenizer: as in ``Dataset.write_tokens``.
            column: as in ``Dataset.write_tokens``.
            key: as in ``Dataset.write_tokens``.
            align: as in ``Dataset.write_tokens``.
            eos: as in ``Dataset.write_tokens``.
            bos: as in ``Dataset.write_tokens``.
            engine: as in ``Dataset.write_tokens``.
            dtype: as in ``Dataset.write_tokens``; lists of ids without a tokenizer are uint32.
            rows_per_file: the slots of a part, 100,000 if left out: as many documents, or fewer where lanes
                have ended.
            idx: as in ``Dataset.write_tokens``.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage_options: as in ``write_parquet``.

        Raises:
            WrongType: an item is no document, an id does not fit into the dtype, or an array of ``align``
                has not one number for each id.
            InvalidArgument: two arguments contradict each other, or the folder holds other data.
            StateMismatch: the folder is of another pipeline, another tokenizer or other arguments.
            EndlessDataset, NotResumable, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import tempfile, numpy as np, seekable as sk
            >>> stream = sk.from_sequence([{"tokens": [5, 6]}, {"tokens": [9]}]).stream(epochs=1)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = stream.write_tokens(folder, eos=0, jobs=1)
            ...     np.fromfile(written.paths[0], "uint32").tolist()
            [5, 6, 0, 9, 0]
        """
        form = tokens_arguments.tokens(
            tokenizer,
            column=column,
            key=key,
            align=align,
            eos=eos,
            bos=bos,
            engine=engine,
            dtype=dtype,
            idx=idx,
        )
        items = self._checked_items("write_tokens()")
        return write_stream.write_stream(
            items,
            folder,
            form,
            rows_per_file=rows_per_file,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
            ending=tokens_arguments.ending_of_stream(form, items),
        )
