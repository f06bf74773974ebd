"""The method of a dataset that writes its records as a store of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.dataset.face import Face

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from seekable.formats.tokens.writing import tokens_arguments
    from seekable.parallel.progress import ProgressHook
    from seekable.writing import earlier_files, write
    from seekable.writing.manifest import Written
else:
    earlier_files = lazy("seekable.writing.earlier_files")
    tokens_arguments = lazy("seekable.formats.tokens.writing.tokens_arguments")
    write = lazy("seekable.writing.write")

__all__ = ["TokenWriting"]


class TokenWriting(Face):
    """The method that writes the records of epoch 0 as tokens."""

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
        """Write the records of epoch 0 as a store of tokens, which ``sk.open`` reads.

        Each record is a document: a list of ids, or with a tokenizer a text. All else is as in
        ``write_parquet``; the same call goes on where a killed one ended.

        For each part there are ``part-000000.bin``, the ids of all documents one after another without a
        header, ``part-000000.lengths``, the number of tokens of each document as uint32, ``part-000000.NAME``
        for each array of ``align``, ``part-000000.sources``, the file and the row that each document comes
        from, and ``part-000000.facts``, counts and digests. ``tokens.json`` describes all of them and is
        written last: a folder without it is not finished.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            tokenizer: the path of a ``tokenizer.json``, a ``tokenizers.Tokenizer``, a tokenizer of
                transformers, a ``tiktoken.Encoding``, ``"tiktoken:NAME"``, or a function of a text that
                returns ids; None for records that have ids.
            column: with a tokenizer, the column of the texts.
            key: without one, the column of the lists or arrays of ids.
            align: the columns with one number for each id, such as a loss mask; a dict says their dtypes.
            eos: the id, or with a tokenizer the token, behind each document; none if left out.
            bos: the id or the token before each document; none if left out.
            engine: ``"gigatoken"`` to make the ids of a tokenizer of Hugging Face faster.
            dtype: the dtype of the ids. With a tokenizer uint16 if no id is above 65,535, else uint32.
                Without one the dtype of the records decides: uint16 for arrays of that dtype, or where at
                most 1,024 records have no larger id, else uint32.
            rows_per_file: the records of a part; 100,000 if left out.
            idx: True to write the index of Megatron, ``part-000000.idx``, too. Ids are uint16 for
                vocabularies below 65,500 then, else int32.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage_options: as in ``write_parquet``.

        Raises:
            WrongType: a record is no document, an id does not fit into the dtype, or an array of ``align``
                has not one number for each id.
            InvalidArgument: two arguments contradict each other, or the folder holds other data.
            StateMismatch: the folder is of another pipeline, another tokenizer or other arguments.
            EndlessDataset, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import tempfile, numpy as np, seekable as sk
            >>> ds = sk.from_sequence([{"tokens": [5, 6, 7]}, {"tokens": [9]}])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = ds.write_tokens(folder, eos=0)
            ...     np.fromfile(written.paths[0], "uint16").tolist()
            [5, 6, 7, 0, 9, 0]
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
        return write.write(
            self._node,
            folder,
            form,
            rows_per_file=rows_per_file,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
            ending=tokens_arguments.ending_of_dataset(form, self._node),
        )
