"""Recognition of tokens: which folders and specs name them, and which tool wrote a file.

The family of a file is found by the files beside it, else by its own first bytes. Some folders have an index
of their own, which lists the files of data in the order of their documents. They are recognised by the name
and the content of their index, because the same tools write other data too. In all other folders the names
of the files decide.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptTokens, DataNotFound, InvalidArgument, SeekableError, UnsupportedFormat
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim
from seekable.formats.lines import forager
from seekable.formats.look import OtherTool, find_files
from seekable.formats.refusals import without_their_files
from seekable.formats.table import SUFFIXES
from seekable.formats.tokens.families import forager_samples, indexed_dataset, indexed_shards, mds
from seekable.formats.tokens.families.array_files import NUMPY_MAGIC, survey_numpy, survey_safetensors
from seekable.formats.tokens.families.indexed_dataset import MAGIC, OLD_MAGIC
from seekable.formats.tokens.families.indexed_shards import INDEX, index_path, read_index
from seekable.formats.tokens.families.plain_tokens import (
    CSV_SUFFIX,
    LLM_C,
    LLM_C_EVALUATION,
    is_mask,
    survey_datatrove,
    survey_headerless,
    survey_llm_c,
    survey_olmo,
)
from seekable.formats.tokens.token_file import TOKENS, TokenFile, head_of, token_options
from seekable.formats.tokens.token_store import (
    DOCUMENT,
    FACTS,
    is_part,
    read_document,
    survey_part,
    unfinished,
)
from seekable.formats.tokens.words import TokenSchema
from seekable.storage import paths
from seekable.storage.first_bytes import HEAD_BYTES, check_compression, refuse_foreign
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from seekable.formats.look import Folder, Look
    from seekable.index.finder import ForwardReader, SideFile, Survey

__all__ = ["TokenSurveyor", "tokens_claim", "tool_of"]

_TOKEN_LISTS = frozenset({INDEX, forager.INDEX})
"""The names of which one is in each folder of tokens whose own index lists its files."""

_TOKEN_SUFFIXES = (".bin", ".ds", ".npy", ".safetensors")
"""The ends of the names of files of tokens, in lower case."""

_ORDERS = re.compile(
    r".*(_indexmap_.*_idx|[-_](document|sample|shuffle|dataset|dataset_sample)_(index|indices))\.npy"
)
"""The names of the arrays that Megatron and GPT-NeoX keep, often beside tokens, for the order of samples."""

_PEEKED_BYTES = 1 << 16


_MEGATRON = "megatron"
"""The word of specs of pairs of a file and its index."""

_SPECS = frozenset({_MEGATRON, TOKENS})

_ENDS = (".bin", ".ds", ".npy")
"""The ends of the names of files by which a folder may be a dataset of tokens."""

_DATA, _INDEX = ".bin", ".idx"
"""The ends of the names of both files of Megatron."""


_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".npz")

_INDEXES: tuple[tuple[bytes, Callable[[TokenFile], Survey]], ...] = (
    (indexed_dataset.MAGIC, indexed_dataset.survey_megatron),
    (indexed_dataset.OLD_MAGIC, indexed_dataset.survey_tntidx),
)
"""The first bytes of each kind of ``.idx`` beside a ``.bin``, and the function that reads it."""


def _listed_tokens(folder: str, names: Collection[str]) -> tuple[str, ...] | None:
    """Return the files of tokens in a folder, relative to it; None if no index of tokens names them.

    Args:
        folder: the path of the folder.
        names: the names of the files and folders in it.

    Raises:
        UnsupportedFormat: the folder is of tokens, and damaged, compressed or encrypted.
        DataNotFound: the index names no file.
    """
    files = next((files for is_one, files in _TOOLS if is_one(folder, names)), None)
    if files is None:
        return None
    found = files(folder)
    if not found:
        message = (
            f"the index in the folder {folder!r} names no file: there is nothing in this dataset of tokens"
        )
        raise DataNotFound(message)
    return found


def tool_of(folder: Folder) -> OtherTool | None:
    """Return which dataset of tokens a folder is that is opened as a whole; None for another folder."""
    if _is_listed(folder):
        return OtherTool(
            "a dataset of tokens, of LitData, MDS or Forager", "open it alone, as sk.open('DIR')"
        )
    if _is_paired(folder):
        way_out = "open its tokens as sk.open('megatron:DIR')"
        return OtherTool("an indexed dataset of Megatron or fairseq", way_out)
    if ".ds" in folder.suffixes and folder.has(r".+\.ds\.index"):
        return OtherTool("tokens of datatrove", "open its tokens as sk.open('tokens:DIR')")
    return None


def _is_listed(folder: Folder) -> bool:
    """Return True for files of tokens that an index of LitData, MDS or Forager lists."""
    names = folder.files if forager.INDEX not in folder.inner else {*folder.files, forager.INDEX}
    if _TOKEN_LISTS.isdisjoint(names):
        return False
    try:
        return _listed_tokens(folder.path, names) is not None
    except SeekableError:
        return True


def _is_paired(folder: Folder) -> bool:
    """Return True for tokens beside their index, as Megatron and fairseq write them."""
    if not folder.suffixes.issuperset((".bin", ".idx")):
        return False
    indexes = (f"{name[:-4]}.idx" for name in sorted(folder.files) if name.endswith(".bin"))
    first = next((name for name in indexes if name in folder.files), "")
    return folder.head(first).startswith((MAGIC, OLD_MAGIC))


def _survey_listed(file: TokenFile) -> Survey | None:
    """Return the documents of a file that an index lists, or that has rows; None for any other file.

    Raises:
        UnsupportedFormat: the file or its index is damaged, or of a form that is not read.
        InvalidArgument: the type of the tokens is not said, or the user says another one.
    """
    survey = _survey_of(file)
    if survey is None:
        return None
    for name, token in (("eos", file.options.eos), ("bos", file.options.bos)):
        if token is not None:
            message = (
                f"{name}={token} says where documents end, and {file.path!r} says that itself, or the index "
                f"beside it: leave {name}= out"
            )
            raise InvalidArgument(message)
    return survey(file)


def _survey_of(file: TokenFile) -> Callable[[TokenFile], Survey] | None:
    """Return what finds the documents of a file; None if none of these tools wrote it."""
    name = file.path.lower()
    if name.endswith(".mds"):
        return mds.survey_mds
    if name.endswith(".safetensors"):
        return survey_safetensors
    if not name.endswith(".bin"):
        return None
    index = index_path(file.path)
    if index is not None and indexed_shards.is_litdata(_json(os.path.dirname(index))):
        return indexed_shards.survey_litdata
    folder = forager_samples.samples_folder(file.path)
    return None if folder is None else partial(forager_samples.survey_samples, folder=folder)


def _is_litdata(folder: str, names: Collection[str]) -> bool:
    if INDEX not in names:
        return False
    index = _json(folder)
    if index is None:
        return _mentions(folder, b'"chunks"', b'"chunk_bytes"')
    return indexed_shards.is_litdata(index) and indexed_shards.has_tokens(index)


def _is_mds(folder: str, names: Collection[str]) -> bool:
    if INDEX not in names:
        return False
    index = _json(folder)
    if index is None:
        return _mentions(folder, b'"shards"', b'"mds"')
    return mds.is_mds(index) and mds.has_tokens(index)


def _is_forager(folder: str, names: Collection[str]) -> bool:
    return forager.INDEX in names and forager.is_of_tokens(folder)


_TOOLS: tuple[tuple[Callable[[str, Collection[str]], bool], Callable[[str], tuple[str, ...]]], ...] = (
    (_is_litdata, indexed_shards.chunk_names),
    (_is_mds, mds.shard_names),
    (_is_forager, forager_samples.sample_files),
)
"""For each tool, a function that recognises its folders, and one that returns the files of data."""


def _json(folder: str) -> Any:
    """Return the JSON of a folder's index; None if it is damaged, another kind, or unreadable."""
    if not _mentions(folder, b'"chunks"') and not _mentions(folder, b'"shards"'):
        return None  # it may be data, of any size
    try:
        return read_index(folder, _as_it_is)
    except (CorruptTokens, OSError):
        return None


def _as_it_is(path: str, index: Any) -> Any:  # noqa: ARG001 - the protocol of `read_index`
    return index


def _mentions(folder: str, *texts: bytes) -> bool:
    """Return True if the index of a folder has some texts at its beginning."""
    try:
        with paths.open_file(os.path.join(folder, INDEX)) as file:
            head = file.read(_PEEKED_BYTES) or b""
    except OSError:
        return False
    return all(text in head for text in texts)


def _suffixes_of_tokens(folder: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the suffixes of a folder's files with tokens; none if it may be another dataset.

    Args:
        folder: the path of the folder.
        names: the names of its files.
    """
    known = set(names)
    if any(name.endswith(".ds") and f"{name}.index" in known for name in known):
        return (".ds",)
    if any(name.endswith(".npy") and f"{name[:-4]}{CSV_SUFFIX}" in known for name in known):
        return (".npy",)
    pairs = (name for name in sorted(known) if name.endswith(".bin") and f"{name[:-4]}.idx" in known)
    first = next(pairs, None)
    if first is None:
        return ()
    head = head_of(os.path.join(folder, f"{first[:-4]}.idx"))
    return (".bin",) if head.startswith((MAGIC, OLD_MAGIC)) else ()


def _token_names(folder: str, names: Sequence[str]) -> Sequence[str]:
    """Return which files of a folder are documents: not label masks, and no orders of samples.

    Args:
        folder: the path of the folder.
        names: the names of its files that end in one of `_TOKEN_SUFFIXES`, in natural order.
    """
    return [name for name in names if not (_ORDERS.fullmatch(name) or is_mask(os.path.join(folder, name)))]


def tokens_claim(look: Look) -> Claim | None:
    """Return the files of tokens that a spec or a folder names; None if it names none.

    Raises:
        InvalidArgument: a spec has no path, or the user gave another format.
        DataNotFound: there is no such file, or one lacks its index.
        UnsupportedFormat: the folder is of tokens, and damaged, compressed or encrypted.
        CorruptState: the document of a store is damaged.
    """
    if look.spec in _SPECS:
        return _of_spec(look)
    if look.is_folder and (look.name is None or look.name.partition("-")[0] == TOKENS):
        return _in_folder(look)
    return None


def _in_folder(look: Look) -> Claim | None:
    folder, names = look.path, look.names
    if look.name is None and _is_store(names):
        return Claim(format=format_of_spec(look, TOKENS), found=_of_store(folder))
    if (
        not _TOKEN_LISTS.isdisjoint(names)
        and (listed := _listed_tokens(paths.absolute(folder), names)) is not None
    ):
        return Claim(format=format_of_spec(look, TOKENS), found=(FoundFiles(paths.absolute(folder), listed),))
    if look.name is not None:
        return Claim(format=format_of_spec(look, TOKENS), found=_found(folder))
    if not any(name.lower().endswith(_ENDS) for name in names):
        return None
    return _of_folder(look)


def _of_spec(look: Look) -> Claim:
    """Return the files of ``megatron:PREFIX`` or ``tokens:PATH``."""
    is_paired, path = look.spec == _MEGATRON, look.rest
    if not path:
        form = (
            "megatron:PREFIX, of PREFIX.bin and PREFIX.idx"
            if is_paired
            else "tokens:FILE, a glob or a folder"
        )
        message = f"{look.path!r} is not complete: the form is {form}"
        raise InvalidArgument(message)
    form_of_all = format_of_spec(look, TOKENS)
    if not is_paired:
        return Claim(format=form_of_all, found=_found(path))
    return Claim(
        format=form_of_all, found=_paired(path[: -len(_DATA)] if path.endswith((_DATA, _INDEX)) else path)
    )


def _of_folder(look: Look) -> Claim | None:
    """Return the files of a folder that is a dataset of tokens and nothing else, else None."""
    folder = look.path
    files = [name for name in look.names if not name.startswith((".", "_"))]
    beside = [name for name in files if name.lower().endswith(SUFFIXES) and not name.endswith(CSV_SUFFIX)]
    suffixes = _suffixes_of_tokens(folder, files)
    is_said = getattr(look.value, "has_options", False)
    if beside or not (is_said or suffixes):
        return None
    found = _paired(folder) if _DATA in suffixes else _found(folder, suffixes or _TOKEN_SUFFIXES)
    return Claim(format=format_of_spec(look, TOKENS), found=found)


def _found(asked: str, suffixes: tuple[str, ...] = _TOKEN_SUFFIXES) -> tuple[FoundFiles, ...]:
    """Return the files with tokens of a path, without those beside them.

    Args:
        asked: the path of a file or a folder, or a glob.
        suffixes: the ends of the names of files with tokens, in a folder.

    Raises:
        DataNotFound: there is none.
    """
    path = os.path.expanduser(asked)
    if (
        paths.is_folder(path)
        and (listed := _listed_tokens(paths.absolute(path), paths.list_folder(path))) is not None
    ):
        return (FoundFiles(paths.absolute(path), listed),)
    return find_files(path, suffixes=suffixes, inspect=without_their_files, arrange=_token_names)


def _paired(asked: str) -> tuple[FoundFiles, ...]:
    """Return files that each must have an index of Megatron or fairseq beside it.

    Args:
        asked: what their names begin with, a folder, or a glob.

    Raises:
        DataNotFound: there is none, or one lacks its index.
    """
    path = os.path.expanduser(asked)
    if not paths.is_folder(path) or paths.is_file(path + _DATA):
        path += _DATA
    found = find_files(path, suffixes=(_DATA,), inspect=without_their_files)
    for run in found:
        _check_indexes(run)
    return found


def _check_indexes(run: FoundFiles) -> None:
    for name in run.names:
        prefix = os.path.join(run.root, name).removesuffix(_DATA)
        if not paths.is_file(prefix + _INDEX):
            message = (
                f"there is no {prefix + _INDEX!r}, which says where the documents of {prefix + _DATA!r} "
                f"start: copy it there, or open 'tokens:{prefix}{_DATA}' with "
                f"sk.formats.Tokens(dtype=, eos=)"
            )
            raise DataNotFound(message)


def _is_store(names: Collection[str]) -> bool:
    return DOCUMENT in names or any(name.endswith(f".{FACTS}") for name in names)


def _of_store(path: str) -> tuple[FoundFiles, ...]:
    """Return the files of a folder that ``write_tokens`` or ``sk.tokenize`` wrote, as its document has them.

    Raises:
        DataNotFound: the store is not finished, or a file of it is missing.
        CorruptState: ``tokens.json`` is damaged.
    """
    folder = paths.absolute(path)
    document = read_document(folder)
    if document is None:
        raise unfinished(folder)
    there = set(paths.list_folder(folder))
    for part in document.parts:
        for suffix in (*part.digests, FACTS):
            if f"{part.name}.{suffix}" not in there:
                message = (
                    f"the token store {folder!r} has no {part.name + '.' + suffix!r}, which its "
                    f"{DOCUMENT!r} lists: copy the store again, or repeat the call that wrote it, which "
                    f"writes this part again"
                )
                raise DataNotFound(message)
    return (FoundFiles(folder, tuple(f"{part.name}.bin" for part in document.parts)),)


@dataclass(frozen=True, slots=True)
class TokenSurveyor:
    """Finds the documents of a file of tokens."""

    name: str
    """``"tokens"``, and the options that decide where documents start."""

    def check_head(self, head: bytes, path: str) -> None:
        """Accept every file; `survey` refuses those that are of no family of formats."""

    def side_files(self, schema: bytes) -> tuple[SideFile, ...]:
        """Return the files beside a file of tokens that its survey read, or looked for."""
        return TokenSchema.decode(schema).beside

    def survey(self, source: ForwardReader) -> Survey:
        """Return the documents of a file.

        Raises:
            UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
            InvalidArgument: an option is missing, or contradicts the file.
        """
        options = token_options(self.name)
        with paths.listing_once(source.path):
            size = paths.status(source.path).size
            return _survey_of_family(TokenFile(source.path, size, source, options))


def _survey_of_family(file: TokenFile) -> Survey:
    """Return the documents of a file, by the family that it belongs to.

    Files beside it come first, then its own first bytes; a file with neither has no header.

    Raises:
        UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
        InvalidArgument: an option is missing, or contradicts the file.
    """
    name = file.path.lower()
    if name.endswith(_PICKLES):
        message = f"{file.path!r} may run any code when it is loaded, and is never read: open files of tokens"
        raise UnsupportedFormat(message)
    if (found := _by_files_beside(file)) is not None:
        return found
    head = bytes(file.source.read(0, HEAD_BYTES))
    if head.startswith(NUMPY_MAGIC):
        return survey_numpy(file)
    magic = int.from_bytes(head[:4], "little")
    if name.endswith(".bin") and (magic in LLM_C or magic == LLM_C_EVALUATION):
        return survey_llm_c(file, magic)
    check_compression(head, file.path, renames=False)
    refuse_foreign(head, file.path, what="a file of tokens")
    return survey_olmo(file) if name.endswith(".npy") else survey_headerless(file)


def _by_files_beside(file: TokenFile) -> Survey | None:
    """Return the documents that a file beside a file of tokens lists; None if there is no such file."""
    is_bin = file.path.lower().endswith(".bin")
    if is_bin and is_part(file.path):
        return survey_part(file)
    if is_bin and paths.is_file(index := file.sibling(".idx")):
        return _by_index(file, index)
    if paths.is_file(f"{file.path}.index"):
        return survey_datatrove(file)
    return _survey_listed(file)


def _by_index(file: TokenFile, index: str) -> Survey:
    head = head_of(index)
    for magic, survey in _INDEXES:
        if head.startswith(magic):
            return survey(file)
    known = " or ".join(str(magic) for magic, _ in _INDEXES)
    message = (
        f"{index!r}: byte 0: expected {known}, as indexes of Megatron and fairseq begin, found {head!r}; the "
        f"index of {file.path!r} is cut or damaged: copy it again, or move it away if it is of something else"
    )
    raise UnsupportedFormat(message)
