"""Specs of the Hub, and the files of a split: listed on the Hub, with the list on disk, or in a folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

from seekable._log import LOG
from seekable.errors import (
    AccessDenied,
    DataNotFound,
    InvalidArgument,
    SeekableError,
    Unreachable,
    UnsupportedFormat,
)
from seekable.remote.placeholder import HubFile, repo_folder
from seekable.remote.splits import PARQUET, shards_of
from seekable.remote.stores.hub_store import hub, hub_error
from seekable.storage.file_names import INDEX_FOLDER, INDEX_SUFFIX
from seekable.storage.files import make_private_folder, regular_only, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seekable.remote.splits import Suffixes

__all__ = ["HubSpec", "hub_spec", "list_folder", "list_hub"]

_HUB = "hf:"
_FORM = "hf:REPO:SPLIT:COLUMN, hf:REPO@REVISION:SPLIT:COLUMN, or without :COLUMN for all columns"

_LOCAL = ("/", "./", "../", "~")

_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"

_REPO = re.compile(rf"(?:{_NAME}/)?{_NAME}")

_ADDRESS = re.compile(rf"hf://datasets/({_NAME}/{_NAME}(?:@[^/]+)?)(?:/.*)?")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_MAIN = "main"
_CONVERTED = "refs/convert/parquet"
_README = "README.md"
_TAR = ".tar"
_PARQUET_ENDS = tuple(end for some in PARQUET.values() for end in some)


@dataclass(frozen=True, slots=True)
class HubSpec:
    """A split of a repository on the Hub, or of a folder with such files."""

    text: str
    """The text of the spec, as the user wrote it."""

    repo: str
    """The repository: ``NAMESPACE/NAME``, a name alone, or the absolute path of a folder."""

    revision: str | None
    """A branch, a tag or a commit, if one was named."""

    config: str | None
    """The dataset of the repository, if it has several; else None."""

    split: str
    column: str | None
    """The only column to read; None for all columns."""

    format: str | None = None
    """The format that the user named; None for the format that the files have."""

    @property
    def is_local(self) -> bool:
        """True if the repository is a folder of this machine."""
        return self.repo.startswith("/")


class _ListedShard(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    size: int
    etag: str
    index: tuple[int, str] | None = None
    """Of a tar file, the size and the etag of the index beside it (``x.tar.idx``), if there is one."""


class _Listing(msgspec.Struct, frozen=True):
    """The shards of a split at a commit, as the JSON file on disk has them."""

    schema: int
    repo: str
    asked: str
    """The revision of the request, or the commit."""
    split: str
    revision: str
    """The commit of the list."""
    shards: list[_ListedShard]


def hub_spec(text: str) -> HubSpec:
    """Return a spec ``hf:...``, parsed.

    Raises:
        InvalidArgument: it is incomplete, or names no repository and no folder.

    Example:
        >>> hub_spec("hf:me/web@v1:train:text").revision
        'v1'
    """
    rest = text.removeprefix(_HUB)
    if rest.startswith(_LOCAL):
        repo, revision, split, column = _local_parts(text, rest)
    else:
        name, *others = rest.split(":", 2)
        repo, at, found = name.partition("@")
        split, column = [*others, "", ""][:2]
        revision = found if at else None
        if not _REPO.fullmatch(repo) or "--" in repo or ".." in repo or revision == "":
            message = (
                f"{text!r} names no repository: {name!r} is not NAMESPACE/NAME or NAMESPACE/NAME@REVISION. "
                f"The form is {_FORM}; a folder of this machine begins with '/', './' or '~'"
            )
            raise InvalidArgument(message)
    config, _, split = split.rpartition("/")
    if not split or (column == "" and text.endswith(":")):
        message = f"{text!r} is not complete: the form is {_FORM}"
        raise InvalidArgument(message)
    return HubSpec(text, repo, revision, config or None, split, column or None)


def _local_parts(text: str, rest: str) -> tuple[str, None, str, str]:
    """Return folder, revision, split and column; the longest part that is a folder counts as the folder."""
    parts = rest.split(":")
    for after in (2, 1):
        folder = os.path.abspath(os.path.expanduser(":".join(parts[:-after])))
        if len(parts) > after and os.path.isdir(folder):
            split, column = [*parts[-after:], ""][:2]
            return folder, None, split, column
    if os.path.isdir(os.path.expanduser(rest)):
        message = f"{text!r} is not complete: name the split after the folder, such as {f'{text}:train'!r}"
    elif (address := _ADDRESS.match(text)) is not None:
        message = f"{text!r} is an address; name the split of its repository: 'hf:{address.group(1)}:SPLIT'"
    else:
        message = f"{text!r} names no folder that is there: {parts[0]!r}. The form is {_FORM}"
    raise InvalidArgument(message)


def list_hub(spec: HubSpec, folder: str, suffixes: Suffixes) -> tuple[list[HubFile], list[HubFile]]:
    """Return the files of a split, in natural order, and the indexes of tar files beside them.

    The commit of a branch or a tag is requested each time; the list of a commit is kept on disk. If the Hub
    cannot be reached, the last list is used, and a warning is logged.

    Args:
        spec: the split.
        folder: the folder on this machine for placeholders and lists.
        suffixes: the ends of the names of data files, by their format.

    Raises:
        AccessDenied: the repository is private or gated, and the token does not open it.
        DataNotFound: the repository or the split does not exist.
        InvalidArgument: several datasets of the repository have the split.
        UnsupportedFormat: the files of the split have several formats.
        Unreachable: the Hub cannot be reached, and there is no list on disk.
        MissingDependency: ``huggingface_hub`` is not installed.
    """
    asked = spec.revision or _MAIN
    kept = _load(_path(spec, folder, asked))
    if kept is None or not _COMMIT.fullmatch(asked):
        try:
            kept = _requested(spec, folder, asked, suffixes)
        except Unreachable as error:
            if kept is None:
                raise
            LOG.warning("%s is as it was listed last, at commit %s: %s", spec.text, kept.revision, error)
    made = partial(HubFile, folder, kept.repo, kept.revision)
    files = [made(shard.path, shard.size, shard.etag) for shard in kept.shards]
    return files, [made(shard.path + INDEX_SUFFIX, *shard.index) for shard in kept.shards if shard.index]


def list_folder(spec: HubSpec, suffixes: Suffixes) -> list[str]:
    """Return the paths of a split's files, relative to the folder that holds the files of the repository.

    Args:
        spec: the split.
        suffixes: the ends of the names of data files, by their format.

    Raises:
        DataNotFound: the split does not exist, or has no data files.
        InvalidArgument: several datasets of the repository have the split.
        UnsupportedFormat: the files of the split have several formats, or the README cannot be parsed.
        MissingDependency: ``huggingface_hub`` is not installed, and the README must be parsed.
    """
    names = [
        os.path.relpath(os.path.join(folder, name), spec.repo)
        for folder, _, files in os.walk(spec.repo)
        for name in files
    ]
    where = f"the folder {spec.repo!r}"
    shards = _shards_of(spec, names, _configs_in(spec.repo), where=where, suffixes=suffixes)
    if not shards:
        message = f"{spec.text!r}: {_without_data(where, suffixes)}; open its files by their path"
        raise DataNotFound(message)
    return shards


def _shards_of(
    spec: HubSpec, names: Iterable[str], configs: object, *, where: str, suffixes: Suffixes
) -> list[str]:
    return shards_of(names, configs, split=spec.split, config=spec.config, where=where, suffixes=suffixes)


def _without_data(where: str, suffixes: Suffixes) -> str:
    ends = ", ".join(end for some in suffixes.values() for end in some)
    return f"{where} has no data file of this split (their names end with {ends})"


def _requested(spec: HubSpec, folder: str, asked: str, suffixes: Suffixes) -> _Listing:
    """Request the list from the Hub, and write it to disk."""
    info = _call(spec, lambda api: api.dataset_info(spec.repo, revision=asked, timeout=_timeout()))
    at_commit = _path(spec, folder, info.sha)
    listing = _load(at_commit) or _listed(spec, info, suffixes)
    written = {at_commit: info.sha, _path(spec, folder, asked): asked}
    if listing.revision == info.sha:
        written[_path(spec, folder, info.sha, own=True)] = info.sha
    for path, revision in written.items():
        wanted = msgspec.structs.replace(listing, asked=revision)
        if _load(path) != wanted:
            make_private_folder(os.path.dirname(path))
            write_atomically(path, msgspec.json.format(msgspec.json.encode(wanted)) + b"\n")
    return listing


def _listed(spec: HubSpec, info: Any, suffixes: Suffixes) -> _Listing:
    files, revision = _tree(spec, info.sha), info.sha
    where = f"{spec.repo!r} (commit {revision[:8]})"
    try:
        configs = info.card_data.get("configs") if info.card_data is not None else None
    except AttributeError:
        configs = None
    chosen: list[str] = []
    refused: SeekableError | None = None
    try:
        chosen = _shards_of(spec, files, configs, where=where, suffixes=suffixes)
    except (DataNotFound, InvalidArgument, UnsupportedFormat) as error:
        refused = error
    own = _is_own(spec)
    if not own and not any(name.lower().endswith(_PARQUET_ENDS) for name in files):
        converted = _converted(spec, required=not chosen and refused is None)
        if converted is not None:
            revision, files, chosen = converted
    if not chosen and refused is not None:
        raise refused
    if not chosen:
        message = f"{spec.text!r}: {_without_data(where, suffixes)}"
        raise DataNotFound(message if own else f"{message}, and no branch {_CONVERTED!r} with Parquet of it")
    shards = [
        _ListedShard(
            name, *files[name], files.get(name + INDEX_SUFFIX) if name.lower().endswith(_TAR) else None
        )
        for name in chosen
    ]
    return _Listing(1, spec.repo, revision, _split_text(spec), revision, shards)


def _converted(spec: HubSpec, *, required: bool) -> tuple[str, dict[str, tuple[int, str]], list[str]] | None:
    """Return the commit, the files and the shards of the branch that the Hub fills with Parquet itself.

    Args:
        spec: the split.
        required: False if the files of the repository itself are used, or their error is raised, where the
            branch has no such split.

    Returns:
        None if there is no branch, or no file of the split in it.
    """
    try:
        info = _call(spec, lambda api: api.dataset_info(spec.repo, revision=_CONVERTED, timeout=_timeout()))
    except DataNotFound:
        return None
    files = _tree(spec, info.sha)
    branch = f"the branch {_CONVERTED!r} of {spec.repo!r}"
    try:
        chosen = _shards_of(spec, files, None, where=branch, suffixes=PARQUET)
    except (DataNotFound, InvalidArgument):
        if required:
            raise
        return None
    return (info.sha, files, chosen) if chosen else None


def _tree(spec: HubSpec, revision: str) -> dict[str, tuple[int, str]]:
    """Return the size and the etag of each file at a commit."""

    def ask(api: Any) -> dict[str, tuple[int, str]]:
        tree = api.list_repo_tree(spec.repo, recursive=True, revision=revision, repo_type="dataset")
        files = [file for file in tree if hasattr(file, "blob_id")]
        return {file.path: (file.size, file.lfs.sha256 if file.lfs else file.blob_id) for file in files}

    files: dict[str, tuple[int, str]] = _call(spec, ask)
    for name in files:
        if (
            any(part in ("", ".", "..", INDEX_FOLDER, ".seekable.idx") for part in name.split("/"))
            or "\0" in name
        ):
            message = f"{spec.text!r}: the Hub lists a file called {name!r}, which is not read"
            raise InvalidArgument(message)
    return files


def _call(spec: HubSpec, ask: Callable[[Any], Any]) -> Any:
    """Call the API of the Hub; its errors become those of this library."""
    package = hub()
    try:
        return ask(package.HfApi(library_name="seekable"))
    except SeekableError:
        raise
    except Exception as error:  # of several packages for HTTP, by the version of huggingface_hub
        raise hub_error(error, f"{spec.text!r}") from error


def _timeout() -> float:
    seconds: float = hub().constants.HF_HUB_ETAG_TIMEOUT
    return seconds


def _configs_in(folder: str) -> object:
    """Return the ``configs`` of the metadata in the README of a folder, None if it has none.

    Raises:
        AccessDenied: the README cannot be read.
        UnsupportedFormat: the metadata cannot be parsed.
    """
    path = os.path.join(folder, _README)
    try:
        with open(path, encoding="utf-8-sig", errors="replace", opener=regular_only) as file:
            text = file.read()
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        message = f"{path!r} may say which files are data, and cannot be read ({error.strerror or error})"
        raise AccessDenied(message) from error
    if not text.startswith("---") or "configs:" not in text:
        return None
    try:
        card = hub().RepoCard(text, ignore_metadata_errors=True).data.to_dict()
    except SeekableError:
        raise
    except Exception as error:  # of pyyaml, whose version is that of huggingface_hub
        shown = " ".join(str(error).split())
        message = (
            f"{path!r} begins with metadata, between lines of '---', that are no YAML: {shown}. Correct "
            f"them, or open the files of the folder by their path"
        )
        raise UnsupportedFormat(message) from error
    return card.get("configs")


def _is_own(spec: HubSpec) -> bool:
    """Return True if only files of the repository itself are meant, and none that the Hub has converted."""
    return spec.revision is not None or spec.format not in (None, *PARQUET)


def _path(spec: HubSpec, folder: str, asked: str, *, own: bool = False) -> str:
    """Return where the list of a split lies; ``own`` for a spec with ``@REVISION``."""
    form = f"#{spec.format or ''}" if spec.format or not (own or _is_own(spec)) else ""
    digest = xxhash.xxh3_64_hexdigest(f"{_split_text(spec)}@{asked}{form}".encode())
    return os.path.join(repo_folder(folder, spec.repo), "listings", f"{digest}.json")


def _split_text(spec: HubSpec) -> str:
    return f"{spec.config}/{spec.split}" if spec.config else spec.split


def _load(path: str) -> _Listing | None:
    try:
        with open(path, "rb", opener=regular_only) as file:
            return msgspec.json.decode(file.read(), type=_Listing)
    except (OSError, msgspec.DecodeError):
        return None
