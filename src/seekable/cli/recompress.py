"""``seekable recompress``: write files as zstd frames, so that any record is decompressed alone."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import Shown, argument, examples, option
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from seekable.cli.output import StatusLine

EPILOG = examples(
    "recompress corpus.jsonl                writes corpus.jsonl.zst",
    "recompress --to new/ web-*.jsonl.zst",
    "recompress --level 12 corpus.jsonl.gz",
)


def recompress(
    files: Annotated[list[str], argument("FILE", "Plain files, or .gz or .zst.")],
    *,
    to: Annotated[str | None, option("--to", "FOLDER", "Write here, not beside the file.")] = None,
    level: Annotated[
        int, typer.Option("--level", metavar="N", min=1, max=22, help="How hard zstd is to compress.")
    ] = 3,
    shown: Shown,
) -> None:
    """Write files as .zst that can be read from any place.

    They have a frame for about each MiB of whole lines. The content stays the same, and `zstd -d` reads it.
    What is written is read back and compared, and appears whole or not at all; nothing is overwritten, and
    the old files stay.
    """
    from seekable.cli.output import StatusLine, write_document, write_line
    from seekable.storage.compression import uncompressed_name

    targets = []
    for path in files:
        target = f"{uncompressed_name(path)}.zst"
        targets.append(target if to is None else os.path.join(to, os.path.basename(target)))
        _check(path, targets)
    with StatusLine(shown=not shown.quiet) as status:
        documents = [
            _recompressed(path, target, level, status) for path, target in zip(files, targets, strict=True)
        ]
    if shown.as_json:
        write_document({"files": documents})
    elif not shown.quiet:
        for document in documents:
            write_line(_in_words(document))


def _recompressed(path: str, target: str, level: int, status: StatusLine) -> dict[str, Any]:
    """Write one file as frames of zstd, and return the document about it."""
    from seekable.storage.files import stat_file
    from seekable.storage.memory import bytes_in_words
    from seekable.storage.seek_points import recompress as write_frames
    from seekable.viewer.facts.json_documents import json_safe

    begun, size, read = time.perf_counter(), stat_file(path).st_size, 0

    def show(count: int) -> None:
        nonlocal read
        read += count
        status.show(f"recompressing {path}: {bytes_in_words(read)} of {bytes_in_words(size)}")

    written = write_frames(path, target, level=level, on_bytes=show)
    return {
        "path": json_safe(path),
        "output": json_safe(target),
        "frames": written.frames,
        "content_bytes": written.content_bytes,
        "bytes_before": size,
        "bytes": written.bytes,
        "seconds": time.perf_counter() - begun,
    }


def _in_words(document: dict[str, Any]) -> str:
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    after, before, content = (
        bytes_in_words(document[key]) for key in ("bytes", "bytes_before", "content_bytes")
    )
    frames = in_words(document["frames"], "frame")
    return f"{document['output']}: {frames}, {after} (before: {before}) for {content} of content"


def _check(path: str, targets: list[str]) -> None:
    """Raise an error, before any work is done, if a file would be overwritten.

    Raises:
        DataNotFound: the source does not exist.
        InvalidArgument: the target exists, or another target has the same path, or one is an address.
    """
    from seekable.storage.files import stat_file

    target = targets[-1]
    for given in (path, target):
        if "://" in given:
            raise InvalidArgument(
                f"{given!r} is an address, and recompress reads and writes files of this machine: "
                f"`seekable export SOURCE TARGET --as jsonl --compression zst` takes addresses"
            )
    stat_file(path)
    if os.path.lexists(target) or target in targets[:-1]:
        raise InvalidArgument(
            f"{path!r} would be written to {target!r}, which is there already: nothing is ever overwritten; "
            f"name another folder with --to"
        )
    if not os.path.isdir(os.path.dirname(target) or "."):
        raise InvalidArgument(f"{os.path.dirname(target)!r} is not a folder that can be written to")
