"""Tar files as a format: ``sk.formats.Tar``, also for datasets of Energon and wids, and sibling archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from seekable._arguments import checked_flag, checked_word, explains_fields
from seekable._lazy import lazy
from seekable.errors import InvalidArgument, SeekableError, TarWarning, WrongType
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim, Format, check_partitions
from seekable.formats.look import OtherTool
from seekable.formats.table import card_named
from seekable.formats.tar.field_decoders import checked_decode
from seekable.formats.tar.sample_source import SampleSource, check_columns
from seekable.formats.tar.tar_words import OPTIONS, TarSurveyor
from seekable.nodes.columns.names import checked_names
from seekable.nodes.files.leaf import warn_of_files
from seekable.nodes.key import SAMPLE_KEY

if TYPE_CHECKING:
    from seekable.formats.contract import Card, Checking, Hive, Opening, Reading
    from seekable.formats.look import Folder, Look
    from seekable.formats.tar import energon, siblings
    from seekable.index.fileset import FileSet
    from seekable.index.verification import Verification
    from seekable.nodes.key import KeyOf
    from seekable.nodes.node import Node
else:
    energon = lazy("seekable.formats.tar.energon")
    siblings = lazy("seekable.formats.tar.siblings")

__all__ = ["Tar"]


class _Sides(NamedTuple):
    """The sources of sibling archives, and if the user gave their format."""

    sources: Mapping[str, Any]
    is_given: bool


@explains_fields("sk.formats.Tar")
@dataclass(frozen=True, slots=True, kw_only=True)
class Tar(Format):
    """Tar files of samples as in WebDataset; also the sides of sibling archives.

    Args:
        group: ``"key"`` if members with one key are one sample wherever they lie in a file; else members of a
            sample follow each other, and an error says where they do not.
        splitname: ``"last"`` if the key of a member ends at the last dot of its base name; by default at the
            first, as in WebDataset.
        missing: ``"none"`` if a column of ``columns`` that a sample lacks is None, and so are the fields of a
            sample that a sibling archive lacks; by default that is an error.
        concatenated: True if a file may be several archives, one after the other.
        suffix: of sibling archives, what is appended to a field that another archive has too: a text for all
            archives but the first, or a dict by archive.
        partitions: ``"hive"`` if folders are columns; see ``Jsonl``.
        pairs: True if each two members are a payload and its manifest, as in a Shar of Lhotse.

    Raises:
        InvalidArgument: an option is another word, or a suffix is empty.
        WrongType: an option has another type.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Tar(group="key", splitname="last").name
        'tar-last-key'
    """

    card: ClassVar[Card] = card_named("tar")

    group: Literal["key"] | None = None
    splitname: Literal["first", "last"] | None = None
    missing: Literal["none"] | None = None
    concatenated: bool = False
    suffix: str | Mapping[str, str] | None = None
    partitions: Hive | None = None
    pairs: bool = False

    def __post_init__(self) -> None:
        """Check the types and words that the options have."""
        checked_word("group", self.group, ("key",))
        checked_word("splitname", self.splitname, ("first", "last"))
        checked_word("missing", self.missing, ("none",))
        checked_flag("concatenated", self.concatenated)
        _check_suffix(self.suffix)
        check_partitions(self.partitions)
        checked_flag("pairs", self.pairs)

    @property
    def name(self) -> str:
        """The name of the format, with the options that decide where samples start."""
        wanted = (self.splitname == "last", self.group == "key", self.pairs, self.concatenated)
        return "-".join(["tar", *(option for option, on in zip(OPTIONS, wanted, strict=True) if on)])

    def with_name(self, name: str) -> Self:
        """Return the format with the options of a name besides its own.

        Raises:
            InvalidArgument: the name has an unknown option.
        """
        _, *named = name.split("-")
        if unknown := [option for option in named if option not in OPTIONS]:
            message = f"format {name!r} has the unknown option {unknown[0]!r}; there are {', '.join(OPTIONS)}"
            raise InvalidArgument(message)
        return replace(
            self,
            group="key" if "key" in named else self.group,
            splitname="last" if "last" in named else self.splitname,
            pairs=self.pairs or "pairs" in named,
            concatenated=self.concatenated or "concatenated" in named,
        )

    @property
    def finder(self) -> TarSurveyor:
        """The surveyor that finds the samples."""
        return TarSurveyor(self.name)

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Claim a split of Energon, a list of wids, or sibling archives."""
        if isinstance(look.source, Mapping):
            is_given = look.name is not None or look.value is not None
            return Claim(format=format_of_spec(look, "tar"), detail=_Sides(look.source, is_given))
        if look.spec == "energon":
            return energon.energon_claim(look)
        return energon.wids_claim(look) if look.spec == "wids" else None

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return how a folder of Energon is opened, with the names of its splits; None for other folders."""
        if energon.META not in folder.inner:
            return None
        try:
            splits = f"; there is {energon.splits_in_words(energon.read_energon(folder.path))}"
        except SeekableError:
            splits = ""
        way_out = f"open a split of it as megatron.energon does, sk.open('energon:DIR:SPLIT'){splits}"
        return OtherTool("a dataset of Energon", way_out)

    def check(self, reading: Reading) -> None:
        """Check the columns and the decoding of fields.

        Raises:
            InvalidArgument: an argument breaks a rule.
            WrongType: one is of the wrong type.
        """
        if reading.columns is not None:
            checked_names("columns", reading.columns)
        checked_decode(reading.decode)

    def leaf(self, files: FileSet, reading: Reading) -> SampleSource:
        """Return the source of the samples of indexed files.

        Raises:
            InvalidArgument: no file has one of the columns.
            UnsupportedFormat: records would have a field that is pickled.
        """
        made = SampleSource(
            files,
            self.name,
            checked_decode(reading.decode),
            asked=reading.shown,
            columns=None if reading.columns is None else checked_names("columns", reading.columns),
            fills=self.missing == "none",
            version=reading.version,
            errors=reading.errors,
        )
        check_columns(made)
        warn_of_files(made, TarWarning)
        return made

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> SampleSource:
        """Return the source of a described one whose files were found; its fields are bytes."""
        return SampleSource(files, self.name, checked_decode(self.raw), asked=shown)

    def key(self, asked: KeyOf | None, reading: Reading) -> KeyOf:
        """Return the key of a record: that of its sample, unless the user names another one."""
        return SAMPLE_KEY if asked is None else asked

    def verified(self, claim: Claim, checking: Checking) -> Verification:
        """Return what is wrong with the files of a claim.

        Raises:
            InvalidArgument: they are sibling archives, of which each is verified by itself.
        """
        if isinstance(claim.detail, _Sides):
            message = (
                f"sibling archives are verified one by one (got {', '.join(map(repr, claim.detail.sources))})"
            )
            raise InvalidArgument(message)
        return super(Tar, self).verified(claim, checking)

    def open(self, claim: Claim, opening: Opening) -> Node:
        """Return the samples of a claim: one source, a split of Energon, or sibling archives.

        Raises:
            InvalidArgument: ``suffix=`` is given for one source.
        """
        if isinstance(claim.detail, _Sides):
            side = replace(self, suffix=None, missing=None) if claim.detail.is_given else None
            fills = self.missing == "none"
            sources = claim.detail.sources
            return siblings.open_siblings(sources, opening, side, suffix=self.suffix, fills=fills)
        if self.suffix is not None:
            message = (
                f"suffix= is for a dict of archives, and this is other data (got {self.suffix!r}): drop it"
            )
            raise InvalidArgument(message)
        source: SampleSource = opening.records(claim)
        return source if claim.detail is None else claim.detail.kept(source)


def _check_suffix(suffix: object) -> None:
    """Check what is appended to the names of fields that several archives have.

    Raises:
        WrongType: it is neither a text nor a dict of texts.
        InvalidArgument: a text is empty.
    """
    given = list(suffix.values()) if isinstance(suffix, Mapping) else [] if suffix is None else [suffix]
    for text in given:
        if not isinstance(text, str) or not text:
            message = f"suffix must be a text that is not empty, or a dict of those by archive (got {text!r})"
            raise InvalidArgument(message) if isinstance(text, str) else WrongType(message)
