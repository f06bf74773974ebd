"""``seekable tokenize``: write the texts of data as a store of tokens."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from seekable.cli.shared_options import (
    DataOptions,
    ExecutorOption,
    JobsOption,
    Shown,
    argument,
    examples,
    option,
)

EPILOG = examples(
    "tokenize 'corpus/*.jsonl' --to tokens --tokenizer tokenizer.json --eos '<|endoftext|>'",
    "tokenize corpus/ --to tokens --tokenizer tiktoken:gpt2 --column content --eos 50256",
    "tokenize a.parquet --to tokens --tokenizer t.json --jobs 8 --engine gigatoken",
    "tokenize s3://bucket/corpus --to s3://bucket/tokens --tokenizer t.json --eos 0 --executor ray",
    "tokenize a.jsonl --to tokens --tokenizer t.json --eos '</s>' --idx       Megatron's index too",
    "tokenize chats.jsonl --to tokens --tokenizer model/ --chat        by the chat template of the folder",
    "tokenize a.jsonl --to samples --tokenizer t.json --eos 0 --sample-size 1024",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The options that are arguments of ``ds.tokenize``."""

    to: Annotated[str, option("--to", "FOLDER", "Where to; it holds no other data.")]
    tokenizer: Annotated[
        str, option("--tokenizer", "FILE", "A tokenizer.json, a folder with one, or tiktoken:NAME.")
    ]
    column: Annotated[str, typer.Option("--column", metavar="NAME", help="The column of the texts.")] = "text"
    eos: Annotated[
        str | None, option("--eos", "TOKEN", "After each document: a token, or a number, its id.")
    ] = None
    bos: Annotated[str | None, option("--bos", "TOKEN", "Before each document, as --eos.")] = None
    engine: Annotated[
        str | None,
        option(
            "--engine",
            "NAME",
            "hf, tiktoken or gigatoken; that of the tokenizer if left out. The fast ones are compared with "
            "hf first.",
        ),
    ] = None
    dtype: Annotated[
        str | None,
        option(
            "--dtype",
            "NAME",
            "uint16, uint32 and so on; the smaller of these that holds the vocabulary, if left out.",
        ),
    ] = None
    sample_size: Annotated[
        int | None, option("--sample-size", "N", "Write samples of N tokens as Forager does.", least=1)
    ] = None
    rows_per_file: Annotated[
        int | None,
        option(
            "--rows-per-file",
            "N",
            "How many documents a part holds; those of 8 to 64 MB if left out.",
            least=1,
        ),
    ] = None
    idx: Annotated[bool, typer.Option("--idx", help="Write Megatron's index beside.")] = False
    chat: Annotated[
        bool,
        typer.Option("--chat", help="The records are conversations: run the chat template of --tokenizer."),
    ] = False
    mask: Annotated[
        str,
        option("--mask", "ROLE", "With --chat, whose turns are trained on; or 'weight', or 'all'."),
    ] = "assistant"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove what another call wrote there.")] = (
        False
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``ds.tokenize`` by name."""
        from seekable.formats.tokens.token_store_options import TokenStore

        given = {**asdict(self), "eos": _token(self.eos), "bos": _token(self.bos)}
        is_chat, mask = given.pop("chat"), given.pop("mask")
        if is_chat:
            from seekable.formats.tokens.chats.chat import Chat

            given["tokenizer"] = Chat(self.tokenizer, mask=mask)
        stored = ("bos", "engine", "dtype", "sample_size", "rows_per_file", "idx")
        store = TokenStore(**{name: given.pop(name) for name in stored})
        return {**given, "store": store}


def _token(token: str | None) -> str | int | None:
    """Return a token as the library takes it: a number is an id."""
    return int(token) if token is not None and token.isascii() and token.isdigit() else token


def tokenize(
    sources: Annotated[list[str], argument("SOURCE", "Files, a folder, or quoted globs of texts.")],
    *,
    store: StoreOptions,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Write texts as a store of tokens.

    Each record is a document, with --chat a conversation. Nothing stands between documents but --eos and
    --bos. Each part of the store appears whole or not at all; a command that was killed goes on where it was
    when it is given again, and the bytes are the same for any number of processes. Another source, tokenizer
    or option is refused.
    """
    from seekable.cli.data_argument import DataArgument, executor_of
    from seekable.formats.tokens.tokenizing.tokenize_data import tokenize as write_tokens
    from seekable.formats.tokens.tokenizing.tokenize_data import tokens_in

    with executor_of(executor, jobs=jobs) as cluster:
        given: dict[str, Any] = {"more": sources[1:], "jobs": jobs, "executor": cluster}
        argument = DataArgument(sources[0], data, shown, **given)
        source = argument.dataset()
        before, begun = 0 if store.overwrite else tokens_in(store.to), time.perf_counter()
        with closing(argument.watch) as watch:
            write_tokens(source, **store.arguments, jobs=jobs, executor=cluster, progress=watch)
    report = _report(store.to, time.perf_counter() - begun, before)
    _print(report, as_json=shown.as_json, quiet=shown.quiet)


def _report(folder: str, seconds: float, before: int) -> dict[str, Any]:
    """Return the document about a store that was written.

    Args:
        folder: the store.
        seconds: the time that the writing took.
        before: the number of tokens that an earlier call had written.
    """
    from seekable.formats.tokens.token_store import document_of
    from seekable.storage.paths import output_path
    from seekable.viewer.facts.json_documents import json_safe

    store = document_of(output_path(folder))
    assert store is not None
    made = store.tokens - before
    return {
        "folder": json_safe(folder),
        "documents": store.documents,
        "tokens": store.tokens,
        "tokens_kept": before,
        "empty_documents": store.empty,
        "dtype": store.dtype,
        "parts": len(store.parts),
        "bytes": _bytes_below(folder),
        **(
            {}
            if store.sample_size is None
            else {"samples": (store.tokens - store.dropped) // store.sample_size}
        ),
        "seconds": seconds,
        "tokens_per_second": made / max(seconds, 1e-9),
        "compared": store.tokenizer.compared if store.tokenizer is not None else None,
    }


def _bytes_below(folder: str) -> int:
    """Return the bytes of all files below a folder, but for those whose names begin with a dot."""
    from seekable.storage.paths import is_folder, output_of, output_path

    folder = output_path(folder)
    sizes = output_of(folder).sizes(folder)
    below = [os.path.join(folder, name) for name in output_of(folder).names(folder) if name not in sizes]
    found = sum(size for name, size in sizes.items() if not name.startswith("."))
    return found + sum(
        _bytes_below(path) for path in below if not os.path.basename(path).startswith(".") and is_folder(path)
    )


def _print(report: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from seekable.cli.output import write_document, write_line
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    if as_json:
        write_document(report)
        return
    if quiet:
        return
    documents, tokens = in_words(report["documents"], "document"), in_words(report["tokens"], "token")
    line = f"{report['folder']}: {documents}, {tokens} ({report['dtype']}), {bytes_in_words(report['bytes'])}"
    if report["tokens_kept"] < report["tokens"]:
        line += f"; {report['tokens_per_second']:,.0f} tokens a second"
    if report["tokens_kept"]:
        line += f"; {report['tokens_kept']:,} of them from an earlier run"
    if report["empty_documents"]:
        line += f"; {in_words(report['empty_documents'], 'document')} without a token"
    if report["compared"]:
        compared = report["compared"]
        line += f"; {in_words(compared['documents'], 'document')} compared with {compared['with']}: equal"
    write_line(line)
