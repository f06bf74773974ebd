"""Which files of a repository make a split: by what its README says, else by their names. Pure.

The README's ``configs`` name datasets, their splits and patterns of files. Without them, files belong to a
split whose name theirs begins with (``data/train-00000-of-00002.parquet``) or that a folder above them has
(``train/0000.parquet``), and what lies in different folders otherwise are different datasets. Where no file
tells of any split, all are ``train``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seekable.errors import DataNotFound, InvalidArgument
from seekable.storage.listing import natural_sorted

__all__ = ["SUFFIXES", "shards_of"]

SUFFIXES = (".parquet", ".pq")

_DEFAULT = "default"
_TRAIN = "train"
_KNOWN = ("train", "training", "test", "testing", "eval", "evaluation", "val", "valid", "validation", "dev")
_MOST_SHOWN = 20


def shards_of(
    names: Iterable[str], configs: object, *, split: str, config: str | None, where: str
) -> list[str]:
    """Return the Parquet files of a split, in natural order; none if the repository has it in another format.

    Args:
        names: the paths of all files of the repository.
        configs: what the README says under ``configs``, if anything.
        split: the name of the split.
        config: which dataset, if there are several.
        where: what the repository is called in errors.

    Raises:
        DataNotFound: there is no such split.
        InvalidArgument: several datasets have it, and none was named.

    Example:
        >>> names = ["data/train-1.parquet", "data/train-0.parquet", "data/test-0.parquet", "README.md"]
        >>> shards_of(names, None, split="train", config=None, where="me/web")
        ['data/train-0.parquet', 'data/train-1.parquet']
    """
    visible = [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]
    said = _said(configs)
    if said:
        return _by_readme(visible, said, split=split, config=config, where=where)
    return _by_names(visible, split=split, config=config, where=where)


def _by_readme(
    names: Sequence[str],
    said: Mapping[str, Mapping[str, list[str]]],
    *,
    split: str,
    config: str | None,
    where: str,
) -> list[str]:
    having = [name for name, splits in said.items() if split in splits]
    chosen = _chosen(having, split=split, config=config, where=where, there=_listed(said))
    patterns = [re.compile(_expression(pattern)) for pattern in said[chosen][split]]
    matching = [name for name in names if any(pattern.fullmatch(name) for pattern in patterns)]
    shards = [name for name in matching if name.lower().endswith(SUFFIXES)]
    if not matching:
        message = (
            f"{where} says that {chosen}/{split} is in {', '.join(said[chosen][split])}, and has no such file"
        )
        raise DataNotFound(message)
    return natural_sorted(shards)


def _by_names(names: Sequence[str], *, split: str, config: str | None, where: str) -> list[str]:
    shards = [name for name in names if name.lower().endswith(SUFFIXES)]
    if not shards:
        return []
    found: dict[tuple[str, str], list[str]] = {}
    for name in shards:
        found.setdefault(_place(name, split), []).append(name)
    if not any(of for _, of in found) and split == _TRAIN:
        # Nothing tells of splits: all is for training, as `datasets` takes it too.
        found = {("", split): shards}
    splits: dict[str, dict[str, list[str]]] = {}
    for (folder, of), some in found.items():
        splits.setdefault(folder or _DEFAULT, {})[of or "?"] = some
    having = [folder for folder, parts in splits.items() if split in parts]
    chosen = _chosen(having, split=split, config=config, where=where, there=_listed(splits))
    return natural_sorted(splits[chosen][split])


def _place(name: str, split: str) -> tuple[str, str]:
    """Return the folder of a file's dataset, and its split: nothing where its name tells of none."""
    *folders, last = name.split("/")
    stem = last.rsplit(".", 1)[0]
    for of in (split, *_KNOWN):
        if re.fullmatch(rf"{re.escape(of)}(?:[-._ ].*|\d+)?", stem):
            return _dataset(folders), of
        if of in folders:
            return _dataset(folders[: folders.index(of)]), of
    return _dataset(folders), ""


def _dataset(folders: list[str]) -> str:
    """Return the name of a dataset by its folder; ``data`` is where those are that have no name."""
    return "/".join(folders[1:] if folders[:1] == ["data"] else folders)


def _chosen(having: list[str], *, split: str, config: str | None, where: str, there: str) -> str:
    """Return which dataset is meant, of those that have the split."""
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


def _said(configs: object) -> dict[str, dict[str, list[str]]]:
    """Return the patterns of each split of each dataset; nothing of what cannot be understood."""
    said: dict[str, dict[str, list[str]]] = {}
    default = None
    for config in configs if isinstance(configs, list) else []:
        if not isinstance(config, Mapping) or "data_files" not in config:
            continue
        name = str(config.get("config_name", _DEFAULT))
        folder = str(config.get("data_dir") or "").strip("/")
        splits = _patterns(config["data_files"], f"{folder}/" if folder else "")
        if splits:
            said[name] = splits
            default = name if config.get("default") is True else default
    if default is not None and _DEFAULT not in said:
        said[_DEFAULT] = said[default]
    return said


def _patterns(files: Any, folder: str) -> dict[str, list[str]]:
    """Return the patterns of each split, as ``data_files`` has them in one of its several forms."""
    if isinstance(files, Mapping):
        pairs = list(files.items())
    elif isinstance(files, list) and files and all(isinstance(some, Mapping) for some in files):
        pairs = [(some.get("split", _TRAIN), some.get("path")) for some in files]
    else:
        pairs = [(_TRAIN, files)]
    found: dict[str, list[str]] = {}
    for split, paths in pairs:
        for path in paths if isinstance(paths, list) else [paths]:
            if isinstance(path, str):
                found.setdefault(str(split), []).append(folder + path.removeprefix("./"))
    return found


def _expression(pattern: str) -> str:
    """Return a regular expression for a pattern: ``*`` within a name, ``**`` over folders too."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]*\])", pattern)
    return "".join(_MEANINGS.get(part) or (part if part[:1] == "[" else re.escape(part)) for part in parts)


_MEANINGS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
