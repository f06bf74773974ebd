"""The surveyor of tar files: archives of samples, as of WebDataset, Energon and Lhotse Shar."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seekable._arguments import checked_flag
from seekable._lazy import lazy
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tar.layout import encode_samples
from seekable.formats.tar.sample_rule import SampleRule
from seekable.formats.tar.samples import group_samples
from seekable.index.surveyor import Survey
from seekable.storage.compression import compression_of

if TYPE_CHECKING:
    from seekable.formats.source_options import SourceOptions
    from seekable.formats.tar import walk as archive
    from seekable.index.surveyor import ForwardReader
else:
    archive = lazy("seekable.formats.tar.walk")

__all__ = ["TarSurveyor", "sample_rule_of", "tar_name", "tar_variant"]

_LAST, _KEY, _PAIRS, _CONCATENATED = "last", "key", "pairs", "concatenated"
_OPTIONS = (_LAST, _KEY, _PAIRS, _CONCATENATED)
"""The options that decide where samples start, in the order in which a name has them."""

_MAGICS = ((b"\x1f\x8b", "gzip", ".tar.gz"), (b"\x28\xb5\x2f\xfd", "zstd", ".tar.zst"),
           (b"BZh", "bzip2", ""), (b"\xfd7zXZ\0", "xz", ""))  # fmt: skip
"""The first bytes of compressed files, the names of the compressions, and the suffixes that are read."""


def tar_name(
    *, last: bool = False, key: bool = False, pairs: bool = False, concatenated: bool = False
) -> str:
    """Return the name of the format with its options.

    Example:
        >>> tar_name(), tar_name(last=True, concatenated=True)
        ('tar', 'tar-last-concatenated')
    """
    given = zip(_OPTIONS, (last, key, pairs, concatenated), strict=True)
    return "-".join(["tar", *(option for option, wanted in given if wanted)])


def tar_variant(options: SourceOptions, name: str) -> str:
    """Return the name of the format with the options of a name and those of ``sk.open``.

    Args:
        options: the arguments of the user.
        name: ``"tar"``, or a name with options.

    Raises:
        InvalidArgument: the name has an unknown option, or an argument has a wrong value.
        WrongType: ``concatenated`` is no bool.
    """
    options.refuse_those_of_tokens("tar")
    for argument, given, known in (
        ("group", options.group, ("key",)),
        ("splitname", options.splitname, ("first", "last")),
        ("missing", options.missing, ("none",)),
    ):
        if given is not None and given not in known:
            message = f"{argument} must be {' or '.join(map(repr, known))}, or left out (got {given!r})"
            raise InvalidArgument(message)
    concatenated = checked_flag("concatenated", options.concatenated)
    _, *named = name.split("-")
    if unknown := [option for option in named if option not in _OPTIONS]:
        message = f"format {name!r} has the unknown option {unknown[0]!r}; there are {', '.join(_OPTIONS)}"
        raise InvalidArgument(message)
    return tar_name(
        last=options.splitname == _LAST or _LAST in named,
        key=options.group == _KEY or _KEY in named,
        pairs=_PAIRS in named,
        concatenated=concatenated or _CONCATENATED in named,
    )


def sample_rule_of(name: str) -> SampleRule:
    """Return the rule by which the members of a file become samples, from the name of the format."""
    options = name.split("-")[1:]
    split: Literal["first", "last"] = "last" if _LAST in options else "first"
    return SampleRule(split=split, adjacent=_KEY not in options, pairs=_PAIRS in options)


@dataclass(frozen=True, slots=True)
class TarSurveyor:
    """Finds the samples of a tar file by the headers of its members.

    Example:
        >>> TarSurveyor("tar-last").rule.split
        'last'
    """

    name: str
    """``"tar"``, and the options that decide where samples start."""

    @property
    def rule(self) -> SampleRule:
        """The rule by which members become samples."""
        return sample_rule_of(self.name)

    def check_head(self, head: bytes, path: str) -> None:
        """Refuse a file that has no byte, or is compressed where its name says nothing of it.

        Raises:
            UnsupportedFormat: it is such a file; the message says what to do.
        """
        if not head:
            message = f"{path!r} has no byte, and a tar file without members has 1,024 zeros: write it again"
            raise UnsupportedFormat(message)
        for magic, kind, suffix in _MAGICS:
            if head.startswith(magic):
                raise UnsupportedFormat(_compressed(path, kind, suffix))

    def survey(self, source: ForwardReader) -> Survey:
        """Return the samples of a file.

        Raises:
            UnsupportedFormat: the file is damaged, has members that cannot be read, or samples whose members
                do not follow each other; the message names the place and the way out.
        """
        walked = archive.walk(source, concatenated=_CONCATENATED in self.name.split("-"))
        samples = group_samples(walked, self.rule, path=source.path)
        words, schema = encode_samples(samples, source.path)
        digest = samples.header_digest.to_bytes(8, "little")
        return Survey(words, len(samples.key_hashes), schema, digest)


def _compressed(path: str, kind: str, suffix: str) -> str:
    what = f"{path!r} begins as a file compressed by {kind}"
    if compression_of(path):
        return f"{what} inside of the compression that its name says: decompress it once"
    if not suffix:
        return f"{what}, which has no cheap way to its middle: decompress it once, or compress it as .tar.zst"
    stem = os.path.splitext(path)[0]
    return f"{what}, and its name does not say so: rename it to {stem + suffix!r}"
