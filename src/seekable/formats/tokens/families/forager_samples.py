"""Samples of tokens that Forager (data-forager) made: files of samples, and the folder ``index/`` over them.

The index has the bytes of each sample. Where it has a ``sample_schema.json``, each sample is an array of
tokens and then arrays of as many elements; else it is tokens alone, whose type is not written anywhere.

Arrays are delivered as they are stored. In a ``loss_mask`` of Forager 1 excludes a token from the loss, the
opposite of most tools.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.lines import forager
from seekable.formats.tokens.token_file import DTYPES, damage
from seekable.formats.tokens.token_store import HIDDEN_DOCUMENT, read_document
from seekable.formats.tokens.words import SideFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.lines.forager import ForagerIndex
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.finder import Survey

__all__ = ["sample_files", "samples_folder", "survey_samples"]

_SCHEMA = "sample_schema.json"

_WAY_OUT = "the index is of other files, or a file is cut: copy the folder again, or index the texts again"


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of the samples of a folder; digests hold its repr, so all names in it stay."""

    dtype: str | None
    """The type of a token; None where it is written nowhere."""
    inside: tuple[tuple[str, str], ...] = ()
    """The name and the type of each array after the tokens."""
    size: int | None = None
    """The bytes of a sample; None if they differ."""


def samples_folder(path: str) -> str | None:
    """Return the folder above a file whose index of Forager names it; None if there is none."""
    folder = os.path.dirname(path)
    while True:
        if _index_of(folder, path) is not None:
            return folder
        above = os.path.dirname(folder)
        if above in (folder, "") or above.endswith(":"):
            return None
        folder = above


def sample_files(folder: str) -> tuple[str, ...]:
    """Return the files of samples in a folder, relative to it, in the order of the index.

    Raises:
        UnsupportedFormat: the index is damaged, or names files outside of the folder.
    """
    found = forager.read_index(folder)
    if found is None:
        place = os.path.join(folder, forager.INDEX)
        message = (
            f"the index of Forager in {place!r} is not whole: a file of it is missing, it has no sample, a "
            f"name with a NUL byte or without a line end, or samples that are no multiple of 24 bytes. "
            f"Index the texts again, or copy the folder again"
        )
        raise UnsupportedFormat(message)
    names = tuple(found.files)
    outside = next((name for name in names if name.startswith("..") or os.path.isabs(name)), None)
    if outside is not None:
        message = (
            f"the index of Forager in {folder!r} names {outside!r}, which lies outside of the folder: move "
            f"the files of samples below it, and change their paths in {forager.INDEX}/file_location.txt"
        )
        raise UnsupportedFormat(message)
    used = found.samples[[0, -1], 0].tolist() if len(found.samples) else [0, len(names) - 1]
    if used != [0, len(names) - 1] or len(set(names)) < len(names):
        path = os.path.join(folder, forager.INDEX, "sample_locations.bin")
        expected = f"samples of the files 0 to {len(names) - 1}, one file after another"
        raise damage(path, 0, expected=expected, found=f"files {used[0]} to {used[1]}", way_out=_WAY_OUT)
    return names


def survey_samples(file: TokenFile, folder: str) -> Survey:
    """Return the samples of a file.

    Args:
        file: the file.
        folder: the folder whose index names it.

    Raises:
        CorruptTokens: the index is damaged, or is not that of the file.
        InvalidArgument: the type of the tokens is not said, or the user says another one.
    """
    index = _index_of(folder, file.path)
    assert index is not None  # `samples_folder` found it
    form = _form(os.path.join(folder, forager.INDEX, _SCHEMA))
    dtype = _dtype(file, form, folder)
    bounds = _bounds(file, index, os.path.relpath(file.path, folder))
    sizes = np.diff(bounds)
    width = np.dtype(dtype).itemsize + sum(np.dtype(each).itemsize for _, each in form.inside)
    wrong = np.flatnonzero(sizes % np.uint64(width) if form.size is None else sizes != form.size)
    if wrong.size:
        row = int(wrong[0])
        expected = f"tokens of {width} bytes" if form.size is None else f"a sample of {form.size} bytes"
        raise damage(
            file.path,
            int(bounds[row]),
            expected=expected,
            found=f"a sample of {sizes[row]} bytes",
            way_out="say another dtype=, or copy the folder with its index again",
            row=row,
        )
    schema = TokenSchema(dtype, inside=form.inside, beside=_beside(file, folder))
    digest = xxhash.xxh3_64_digest(repr((dtype, form)).encode() + bounds.tobytes())
    return token_survey(bounds, schema, digest=digest)


def _index_of(folder: str, path: str) -> ForagerIndex | None:
    """Return the index in a folder if it names a file of tokens."""
    index = forager.read_index(folder)
    name = os.path.relpath(path, folder)
    return index if index is not None and name in index.files else None


def _bounds(file: TokenFile, index: ForagerIndex, name: str) -> NDArray[np.uint64]:
    """Return where each sample of a file starts, and where the last one ends.

    Raises:
        CorruptTokens: the samples do not follow each other, or do not fill the file.
    """
    parts, end, rows = [np.zeros(1, np.uint64)], 0, 0
    found = index.find(name)
    for starts, lengths in found.ranges if found else ():
        stops = starts + lengths
        expected = np.concatenate([np.array([end], np.uint64), stops[:-1]])
        wrong = np.flatnonzero((starts != expected) | (stops < starts))
        if wrong.size:
            row = int(wrong[0])
            raise damage(
                file.path,
                int(min(int(starts[row]), file.size)),
                expected=f"sample {rows + row} at byte {expected[row]}, where the one before it ends",
                found=f"byte {starts[row]} and {lengths[row]} bytes, as {index.label} says",
                way_out=_WAY_OUT,
                row=rows + row,
            )
        parts.append(stops)
        end, rows = int(stops[-1]), rows + len(stops)
    if end != file.size:
        raise damage(
            file.path,
            min(end, file.size),
            expected=f"{end} bytes, as {index.label} says of its {rows} samples",
            found=f"{file.size}",
            way_out=_WAY_OUT,
        )
    return np.concatenate(parts)


def _dtype(file: TokenFile, form: _Form, folder: str) -> str:
    if form.dtype is not None:
        return file.dtype_of(form.dtype, where=_SCHEMA)
    if (described := read_document(folder, HIDDEN_DOCUMENT)) is not None:
        return file.dtype_of(np.dtype(described.dtype).newbyteorder("<").str, where=HIDDEN_DOCUMENT)
    if file.options.dtype is None:
        message = (
            f"{file.path!r} has samples of Forager, which writes their type nowhere: say it, as "
            f"sk.formats.Tokens(dtype='uint16'), which is what TokensDataset takes as token_dtype"
        )
        raise InvalidArgument(message)
    return file.options.dtype


def _beside(file: TokenFile, folder: str) -> tuple[SideFile, ...]:
    """Return what the schema keeps of the files of the index."""
    sides = []
    for name in (*sorted(forager.NEEDED), _SCHEMA):
        path = os.path.join(folder, forager.INDEX, name)
        below = os.path.relpath(path, os.path.dirname(file.path))
        try:
            status = paths.status(path)
        except FileNotFoundError:
            sides.append(SideFile.absent(below))
        else:
            sides.append(SideFile(below, status.size, status.mtime_ns))
    return tuple(sides)


def _form(path: str) -> _Form:
    """Return the form of samples by their schema, if there is one.

    Raises:
        CorruptTokens: the schema is not as Forager writes it.
        UnsupportedFormat: an array is not of numbers.
    """
    try:
        text = paths.read_bytes(path)
    except FileNotFoundError:
        return _Form(None)
    try:
        schema = json.loads(text)
        size, arrays = schema["sample_size"], schema["arrays"]
        named = [(array["name"], np.dtype(array["dtype"]), array["offset"]) for array in arrays]
        total = schema["total_bytes_per_sample"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    offset = 0
    for number, (name, dtype, at) in enumerate(named):
        is_known = dtype.kind in "iufb" and (number or dtype.newbyteorder("<").str in DTYPES)
        if not is_known:
            message = (
                f"{path!r}: the array {name!r} is of {dtype}, and not of {'numbers' if number else 'tokens'}"
            )
            raise UnsupportedFormat(message)
        if at != offset or type(size) is not int or size < 1 or (name == "tokens") != (number == 0):
            raise _damaged(path, f"the array {name!r} at byte {at!r}, where byte {offset} is expected")
        offset += size * dtype.itemsize
    names = [name for name, _, _ in named]
    if (
        not named
        or offset != total
        or len(set(names)) < len(names)
        or not all(isinstance(name, str) for name in names)
    ):
        raise _damaged(path, f"arrays {names} of {offset} bytes, and a sample of {total!r}")
    forms = [(name, dtype.newbyteorder("<").str) for name, dtype, _ in named]
    return _Form(forms[0][1], tuple(forms[1:]), offset)


def _damaged(path: str, found: str) -> Any:
    return damage(
        path,
        0,
        expected="the tokens and then arrays of as many elements, as Forager describes samples",
        found=found,
        way_out="the schema is damaged: copy it again, or index the texts again",
    )
