"""Which files make a split in a repository: its README says it, or the file names do. Pure.

The ``configs`` of the README name datasets, their splits and patterns of files. Without them a file belongs
to the split that its name contains (``data/train-00000-of-00002.parquet``, ``corpus-train.jsonl.gz``) or that
is the name of a folder above it (``train/0000.parquet``); files whose folders differ otherwise belong to
different datasets. Where no name contains a split, all files belong to ``train``.

A split has one format. Patterns, and repositories without splits in their names, take in files that are no
data: where some of the files are Parquet, only these are the split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.storage.file_names import check_complete, natural_sorted

__all__ = ["PARQUET", "Suffixes", "shards_of"]

Suffixes = Mapping[str, Sequence[str]]
"""The ends of the names of data files, in lower case, by the name of their format."""

_PARQUET = "parquet"
PARQUET: Suffixes = {_PARQUET: (".parquet", ".pq")}

_WEAK = (".json", ".txt")
"""Suffixes of data and of other files: these count as data where nothing else is of another format."""

_NO_DATA = re.compile(
    r"(config|dataset_infos?|dataset_dict|state)\.json"
    r"|(licen[cs]e|notice|readme|requirements|citation)([-_.].*)?\.(txt|json)"
)
"""Names of files that describe a repository, in lower case."""

_WILD = re.compile(r"[*?\[]")
"""A character of a path that makes it a pattern."""

_DEFAULT = "default"
_TRAIN = "train"
_KNOWN = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
}
"""The words for splits in names, each with the split that the package ``datasets`` makes of it."""

_MOST_SHOWN = 20
_MOST_SHOWN_CHARACTERS = 60

_MEANINGS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def shards_of(
    names: Iterable[str],
    configs: object,
    *,
    split: str,
    config: str | None,
    where: str,
    suffixes: Suffixes = PARQUET,
) -> list[str]:
    """Return the data files of a split, in natural order; none if the split has no file of these suffixes.

    Args:
        names: the paths of all files of the repository.
        configs: the ``configs`` of the metadata of the README, if any.
        split: the name of the split.
        config: the dataset, where the repository has several.
        where: the name of the repository in error messages.
        suffixes: the ends of the names of data files, by their format.

    Raises:
        DataNotFound: the split does not exist, or lacks a file that the README or the names of others name.
        InvalidArgument: several datasets have the split, and ``config`` is None.
        UnsupportedFormat: the files of the split have several formats, or the ``configs`` have another form
            than the Hub says.

    Example:
        >>> names = ["data/train-1.parquet", "data/train-0.parquet", "data/test-0.parquet", "README.md"]
        >>> shards_of(names, None, split="train", config=None, where="me/web")
        ['data/train-0.parquet', 'data/train-1.parquet']
    """
    names = list(names)
    visible = [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]
    try:
        said = _said(configs)
    except _OtherForm as error:
        message = (
            f"{where}: the configs in the metadata of its README.md say which files are data, and {error}. "
            f"Correct them, or open the files by their path"
        )
        raise UnsupportedFormat(message) from None
    if said:
        found = _by_readme(names, visible, said, split=split, config=config, where=where)
        mixed = True
    else:
        data = [name for name in visible if not _NO_DATA.fullmatch(name.rpartition("/")[2].lower())]
        found, mixed = _by_names(_of_formats(data, suffixes), split=split, config=config, where=where)
    shards = natural_sorted(_of_one_format(found, suffixes, prefer=mixed, split=split, where=where))
    check_complete(shards, where)
    return shards


def _by_readme(
    names: Sequence[str],
    visible: Sequence[str],
    said: Mapping[str, Mapping[str, list[str]]],
    *,
    split: str,
    config: str | None,
    where: str,
) -> list[str]:
    having = [name for name, splits in said.items() if split in splits]
    chosen = _chosen(having, split=split, config=config, where=where, there=_listed(said))
    patterns = said[chosen][split]
    # As in the package `datasets`, a file that is named must be there, and a pattern may match none.
    named = [pattern for pattern in patterns if not _WILD.search(pattern)]
    if missing := sorted(set(named).difference(names)):
        message = f"{where} says that {chosen}/{split} is in {missing[0]!r}, and has no such file"
        raise DataNotFound(message)
    wild = [re.compile(_expression(pattern)) for pattern in patterns if _WILD.search(pattern)]
    matching = [*named, *(name for name in visible if any(pattern.fullmatch(name) for pattern in wild))]
    matching = list(dict.fromkeys(matching))
    if not matching:
        message = f"{where} says that {chosen}/{split} is in {', '.join(patterns)}, and has no such file"
        raise DataNotFound(message)
    return matching


def _by_names(shards: list[str], *, split: str, config: str | None, where: str) -> tuple[list[str], bool]:
    """Return the files of a split, and True if no name contains a split, so that all files are returned."""
    if not shards:
        return [], False
    found: dict[tuple[str, str], list[str]] = {}
    for name in shards:
        found.setdefault(_dataset_and_split(name, split), []).append(name)
    nameless = not any(of for _, of in found)
    if nameless and split == _TRAIN:
        # No name contains a split: all files are for training, as in the package `datasets`.
        found = {("", split): shards}
    splits: dict[str, dict[str, list[str]]] = {}
    for (folder, of), some in found.items():
        splits.setdefault(folder or _DEFAULT, {})[of or "?"] = some
    having = [folder for folder, parts in splits.items() if split in parts]
    chosen = _chosen(having, split=split, config=config, where=where, there=_listed(splits))
    return splits[chosen][split], nameless


def _of_formats(names: Iterable[str], suffixes: Suffixes) -> list[str]:
    ends = tuple(end for some in suffixes.values() for end in some)
    return [name for name in names if name.lower().endswith(ends)]


def _of_one_format(
    names: Sequence[str], suffixes: Suffixes, *, prefer: bool, split: str, where: str
) -> list[str]:
    """Return the data files among some files; if ``prefer``, only those of Parquet where there are any.

    Raises:
        UnsupportedFormat: they have several formats.
    """
    formats = {form: _of_formats(names, {form: ends}) for form, ends in suffixes.items()}
    formats = {form: some for form, some in formats.items() if some}
    strong = {form for form, some in formats.items() if not all(map(_is_weak, some))}
    if strong:
        formats = {form: some for form, some in formats.items() if form in strong}
    if prefer and _PARQUET in formats:
        return formats[_PARQUET]
    if len(formats) > 1:
        shown = ", ".join(f"{form} ({len(some)}, such as {some[0]!r})" for form, some in formats.items())
        message = (
            f"{where} has files of several formats for the split {split!r}: {shown}. Choose one with "
            f"format=, such as format={next(iter(formats))!r}; or open each, and join them with sk.concat"
        )
        raise UnsupportedFormat(message)
    return next(iter(formats.values()), [])


def _is_weak(name: str) -> bool:
    return name.lower().endswith(_WEAK)


def _dataset_and_split(name: str, split: str) -> tuple[str, str]:
    """Return the dataset and the split of a file; "" for the split if its name contains none."""
    *folders, last = name.split("/")
    stem = last.rsplit(".", 1)[0]
    for of in (split, *_KNOWN):
        means = split if _KNOWN.get(of) == split else of
        if re.fullmatch(rf"(?:.*[-._ ])?{re.escape(of)}(?:[-._ ].*|\d+)?", stem):
            return _dataset(folders), means
        if of in folders:
            return _dataset(folders[: folders.index(of)]), means
    return _dataset(folders), ""


def _dataset(folders: list[str]) -> str:
    """Return the name of a dataset by its folders; the first folder does not count if it is ``data``."""
    return "/".join(folders[1:] if folders[:1] == ["data"] else folders)


def _chosen(having: list[str], *, split: str, config: str | None, where: str, there: str) -> str:
    """Return the name of the dataset to read, of those that have the split."""
    if config is not None:
        if config in having:
            return config
        message = f"{where} has no {config}/{split}; it has {there}"
        raise DataNotFound(message)
    if not having:
        message = f"{where} has no split {split!r}; it has {there}"
        raise DataNotFound(message)
    if len(having) > 1 and _DEFAULT not in having:
        message = (
            f"{where} has several datasets with a split {split!r}: write which in front of it, such as "
            f"{having[0]}/{split}. It has {there}"
        )
        raise InvalidArgument(message)
    return _DEFAULT if _DEFAULT in having else having[0]


def _listed(said: Mapping[str, Mapping[str, object]]) -> str:
    names = [f"{config}/{split}" for config, splits in said.items() for split in splits]
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN]) or 'no split'}{more}"


class _OtherForm(Exception):
    """What is wrong with the form of ``configs``."""


def _said(configs: object) -> dict[str, dict[str, list[str]]]:
    """Return the patterns of each split of each dataset.

    Raises:
        _OtherForm: the configs, or data files of one, are not as the Hub says.
    """
    said: dict[str, dict[str, list[str]]] = {}
    default = None
    if configs and not isinstance(configs, list):
        raise _OtherForm(f"are no list: {_shown(configs)}")
    for config in configs if isinstance(configs, list) else []:
        if not isinstance(config, Mapping):
            raise _OtherForm(f"have no mapping but {_shown(config)}")
        if config.get("data_files") is None:
            continue
        name = str(config.get("config_name", _DEFAULT))
        folder = str(config.get("data_dir") or "").strip("/")
        said[name] = _patterns(config["data_files"], f"{folder}/" if folder else "")
        default = name if config.get("default") is True else default
    if default is not None and _DEFAULT not in said:
        said[_DEFAULT] = said[default]
    return said


def _patterns(files: Any, folder: str) -> dict[str, list[str]]:
    """Return the patterns of each split of ``data_files``, which has several forms."""
    if isinstance(files, Mapping):
        pairs = list(files.items())
    elif isinstance(files, list) and files and all(isinstance(some, Mapping) for some in files):
        pairs = [(some.get("split", _TRAIN), some.get("path")) for some in files]
    else:
        pairs = [(_TRAIN, files)]
    found: dict[str, list[str]] = {}
    for split, paths in pairs:
        for path in paths if isinstance(paths, list) else [paths]:
            if not isinstance(path, str):
                raise _OtherForm(f"name no path but {_shown(path)} for the split {split!r}")
            found.setdefault(str(split), []).append(folder + path.removeprefix("./"))
    return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN_CHARACTERS else f"{text[:_MOST_SHOWN_CHARACTERS]}..."


def _expression(pattern: str) -> str:
    """Return a regular expression for a pattern: ``*`` matches within a name, ``**`` over folders too."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]*\])", pattern)
    return "".join(_MEANINGS.get(part) or (part if part[:1] == "[" else re.escape(part)) for part in parts)
