"""The whole files of a write: those that the manifest lists, and those that a kill kept out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.storage.paths import output_of
from seekable.writing.manifest import Shards

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.formats.file_format import FileFormat
    from seekable.writing.manifest import Manifest
    from seekable.writing.target import Target

__all__ = ["finished", "recorded", "rows_in", "total_size"]


def recorded(target: Target, manifest: Manifest) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of the files that a manifest lists and that still have that size."""
    names = manifest.identity.names(target)
    sizes = target.output.sizes(target.folder) if target.mounts else None

    def size_of(number: int) -> int | None:
        files = (names.name(number), *names.beside(number))
        if sizes is None:
            return total_size(map(target.join, files))
        return sum(sizes[name] for name in files) if sizes.keys() >= set(files) else None

    return {
        number: (rows, size)
        for number, (rows, size) in manifest.finished.items()
        if number >= 0 and size_of(number) == size
    }


def finished(target: Target, manifest: Manifest, form: FileFormat) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of all files of a dataset that are whole, by number.

    A file gets its name when it is complete. It is read here to find out if it was damaged later.
    """
    shards, there = manifest.identity.names(target), recorded(target, manifest)
    assert isinstance(shards, Shards)
    for name in set(target.output.names(target.folder)):
        number = shards.number(name)
        # A recorded file of another size was damaged after it was written.
        if number is None or number in manifest.finished:
            continue
        file, beside = target.join(name), [target.join(each) for each in shards.beside(number)]
        size = total_size([file, *beside])
        rows = None if size is None else rows_in(form, file, beside)
        if size is not None and rows is not None and rows <= len(shards.rows(number)):
            there[number] = rows, size
    return dict(sorted(there.items()))


def rows_in(form: FileFormat, path: str, beside: Sequence[str]) -> int | None:
    """Return the number of rows of a file that was written, also in a store; None if it is damaged.

    Args:
        form: the format of the file.
        path: the path of the file.
        beside: the paths of the files that belong to it, which exist.
    """
    with output_of(path).local([path, *beside]) as (copy, *others):
        return form.rows_in(copy, beside=others)


def total_size(paths: Iterable[str]) -> int | None:
    """Return the number of bytes of some files; None if one of them is not there."""
    sizes = [output_of(path).size(path) for path in paths]
    found = [size for size in sizes if size is not None]
    return sum(found) if len(found) == len(sizes) else None
