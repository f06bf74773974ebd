"""``seekable index --lhotse`` and ``--energon``: indexes for other tools, beside the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.formats.shar.other_indexes import Tool


def write_for_tool(paths: list[str], tool: Tool, *, folder: str | None, quiet: bool, as_json: bool) -> None:
    """Write the indexes of all files of some paths, and print what was written.

    Args:
        paths: files, folders and globs.
        tool: the tool that is to read the indexes.
        folder: the folder for all indexes, made if it is not there; None to write each beside its file.
        quiet: True to print nothing.
        as_json: True to print a document.

    Raises:
        InvalidArgument: two indexes would have one path, or a path is an address.
        SeekableError: a file has no such index; nothing is written before all names are looked at.
    """
    import os

    from seekable.cli.output import write_document, write_line
    from seekable.errors import InvalidArgument
    from seekable.formats.shar.other_indexes import files_to_index, one_path_twice, write_indexes
    from seekable.viewer.facts.documents import json_safe

    for address in (path for path in (*paths, folder or "") if "://" in path):
        message = (
            f"{address!r} is an address, and indexes of other tools are written from files of this machine "
            f"to folders of it: name a copy of the data"
        )
        raise InvalidArgument(message)
    found = {path: files_to_index(path, tool) for path in paths}
    files = list(dict.fromkeys(file for plain, _ in found.values() for file in plain))
    if twice := one_path_twice(files, folder):
        message = f"the indexes of {twice[0]!r} and {twice[1]!r} would both lie in {folder!r} under one name"
        raise InvalidArgument(message)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    written: list[dict[str, Any]] = []
    for path, (plain, packed) in found.items():
        some = write_indexes(plain, tool, folder=folder)
        written += [
            {
                "path": json_safe(each.path),
                "index": json_safe(each.index),
                "records": each.records,
                "bytes": each.size,
            }
            for each in some
        ]
        if not as_json and not quiet:
            write_line(_in_words(path, [(each.index, each.records) for each in some], len(packed), tool))
    if as_json:
        skipped = [json_safe(file) for _, packed in found.values() for file in packed]
        write_document({"tool": tool, "indexes": written, "compressed": skipped})


def _in_words(path: str, written: list[tuple[str, int]], packed: int, tool: Tool) -> str:
    """Return the line about one path."""
    from seekable.viewer.facts.documents import in_words

    records, name = in_words(sum(count for _, count in written), "record"), tool.capitalize()
    if len(written) == 1:
        line = f"{path}: {records}; index of {name} in {written[0][0]}"
    else:
        line = f"{path}: {records} in {in_words(len(written), 'file')}, each with an index of {name}"
    left_out = (
        f"; {in_words(packed, 'compressed file')} left out, which sk.open reads without" if packed else ""
    )
    return line + left_out


def refuse_options(given: Mapping[str, object]) -> None:
    """Refuse options that are of the index of seekable alone.

    Args:
        given: the options of the command line by name, None or False for those that are not there.

    Raises:
        InvalidArgument: there is one.
    """
    from seekable.errors import InvalidArgument

    for option, value in given.items():
        if value:
            message = (
                f"{option} is for the index of seekable, and not for --lhotse and --energon: leave it out"
            )
            raise InvalidArgument(message)
