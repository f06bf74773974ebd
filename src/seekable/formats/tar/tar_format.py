"""The surveyor of tar files: archives of samples, as of WebDataset, Energon and Lhotse Shar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seekable._lazy import lazy
from seekable.errors import UnsupportedFormat
from seekable.formats.tar.samples import SampleRule, group_samples
from seekable.formats.tar.tar_words import encode_samples
from seekable.index.finder import Survey
from seekable.storage.first_bytes import check_compression

if TYPE_CHECKING:
    from seekable.index.finder import ForwardReader

if TYPE_CHECKING:
    from seekable.formats.tar import walk
    from seekable.index.finder import ForwardReader
else:
    walk = lazy("seekable.formats.tar.walk")

__all__ = ["OPTIONS", "TarSurveyor", "sample_rule_of"]

_LAST, _KEY, _PAIRS, _CONCATENATED = "last", "key", "pairs", "concatenated"
OPTIONS = (_LAST, _KEY, _PAIRS, _CONCATENATED)
"""The options that decide where samples start, in the order in which a name has them."""


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
        """Refuse a file that is empty, or is compressed and its name does not say so.

        Raises:
            UnsupportedFormat: it is such a file; the message says what to do.
        """
        if not head:
            message = f"{path!r} has no byte, and a tar file without members has 1,024 zeros: write it again"
            raise UnsupportedFormat(message)
        check_compression(head, path)

    def survey(self, source: ForwardReader) -> Survey:
        """Return the samples of a file.

        Raises:
            UnsupportedFormat: the file is damaged, has members that cannot be read, or samples whose members
                do not follow each other; the message names the place and the way out.
        """
        walked = walk.Walk(source, concatenated=_CONCATENATED in self.name.split("-"))
        samples = group_samples(walked, self.rule, path=source.path)
        words, schema = encode_samples(samples, source.path)
        digest = samples.header_digest.to_bytes(8, "little")
        return Survey(words, len(samples.key_hashes), schema, digest)
