"""Cases of options of archives, tokens and Shar: for formats of another kind, or of wrong values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.dataset.recognition.files import (
    ARK,
    KALDI,
    LINE,
    MEGATRON,
    SPLIT_TAR,
    TAR,
    case,
    energon,
    of_litdata,
    of_pack,
    shar,
    wids,
)

import seekable as sk

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

__all__ = ["REFUSED_OPTIONS_OF_OTHERS"]

FORMATS: Any = sk.formats
"""The formats, for options of types that they do not take."""


def tar(answer: str, **options: Any) -> Case:
    """Return a case of options for tar files."""
    return case(f"tar with {options}", {"a.tar": TAR}, "a.tar", answer, **options)


def archive(answer: str, **options: Any) -> Case:
    """Return a case of options for archives of Kaldi."""
    return case(f"ark with {options}", {"a.ark": ARK}, "a.ark", answer, **options)


def directory(answer: str, **options: Any) -> Case:
    """Return a case of options for data directories of Kaldi."""
    return case(f"kaldi: with {options}", KALDI, "kaldi:DIR", answer, **options)


def tokens(answer: str, **options: Any) -> Case:
    """Return a case of options for tokens."""
    return case(f"tokens with {options}", MEGATRON, "a.bin", answer, **options)


def cuts(answer: str, **options: Any) -> Case:
    """Return a case of options for a Shar."""
    return case(f"Shar with {options}", shar("0"), ".", answer, **options)


def siblings(answer: str, **options: Any) -> Case:
    """Return a case of options for sibling archives."""
    files = {"a.tar": TAR, "b.tar": SPLIT_TAR}
    return case(f"siblings with {options}", files, {"x": "a.tar", "y": "b.tar"}, answer, **options)


OF_TAR: list[Case] = [
    tar("InvalidArgument: no sample has a field 'nope'; there are '__key__', 'txt'", columns=["nope"]),
    tar("WrongType: columns takes a list of names of columns (got 'txt')", columns="txt"),
    tar("InvalidArgument: decode must be one of 'bytes', ...", decode="nope"),
    tar("InvalidArgument: decode has 'nope', and the fields of 'a.tar' are 'txt'", decode={"nope": "text"}),
    tar("InvalidArgument: decode must say which field a function is for: decode={'FIELD': len}", decode=len),
    siblings("InvalidArgument: format=Tokens(...) is for tokens, and {'x': 'a.tar', 'y': 'b.tar'} is tar: "
             "leave it out, or name the files",
             format=sk.formats.Tokens(dtype="uint16")),
    siblings("InvalidArgument: format=Csv(...) is for csv, tsv, csv-semicolon, and {'x': 'a.tar', 'y': "
             "'b.tar'} is tar: leave it out, or name the files", format=sk.formats.Csv(delimiter=",")),
    siblings("InvalidArgument: key= is for one source, and samples of archives have the key '__key__': "
             "leave it out", key="id"),
    siblings("InvalidArgument: no sample has a field 'nope'; there are '__key__', 'txt', 'jpg'",
             columns=["nope"]),
    siblings("InvalidArgument: suffix has 'z', and the archives are 'x', 'y'",
             format=sk.formats.Tar(suffix={"z": "_2"})),
    siblings("InvalidArgument: decode has 'nope', and the fields of 'a.tar' are 'txt', 'jpg'",
             decode={"nope": "text"}),
    siblings("InvalidArgument: {'x': 'a.tar', 'y': 'b.tar'} is tar; leave format='jsonl' out",
             format="jsonl"),
    siblings("InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
             "files of {'x': 'a.tar', 'y': 'b.tar'} belong together: leave it out, or name the files",
             index=sk.Index(sampled=True)),
    case("energon: with dtype", energon("a"), "energon:DIR:a",
         "InvalidArgument: format=Tokens(...) is for tokens, and 'energon:DIR:a' is tar: leave it out, or "
         "name the files",
         format=sk.formats.Tokens(dtype="uint16")),
    case("energon: with index", energon("a"), "energon:DIR:a",
         "InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of 'energon:DIR:a' belong together: leave it out, or name the files",
         index=sk.Index(sampled=True)),
    case("wids: with delimiter", {"i.json": wids(("a.tar", 1)), "a.tar": TAR}, "wids:i.json",
         "InvalidArgument: format=Csv(...) is for csv, tsv, csv-semicolon, and 'wids:i.json' is tar: leave "
         "it out, or name the files",
         format=sk.formats.Csv(delimiter=",")),
    case("idxpack: with index", of_pack, "c.idxpack",
         "InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of 'c.idxpack' belong together: leave it out, or name the files",
         index=sk.Index(sampled=True)),
    case("idxpack: with dtype", of_pack, "c.idxpack",
         "InvalidArgument: format=Tokens(...) is for tokens, and 'c.idxpack' is jsonl: leave it out, or "
         "name the files",
         format=sk.formats.Tokens(dtype="uint16")),
    case("idxpack: as tar", of_pack, "c.idxpack",
         "UnsupportedFormat: DIR/b.jsonl: byte 0: 9 bytes, where a header has 512: the file ends there; no "
         "good member is before it. The archive is damaged, or was cut: put a whole copy of it there",
         format="tar"),
]  # fmt: skip

OF_KALDI = [
    archive("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is ark-matrix: say "
            "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    archive("InvalidArgument: decode= is for lines (got 'json'); the objects of ark-matrix are read by "
            "holder=", decode="json"),
    archive("InvalidArgument: key= is for records that are dicts, and those of Kaldi's tables are pairs of "
            "a key and an object: leave it out (got 'id')", key="id"),
    case("scp: with decode", {"a.ark": ARK, "a.scp": b"u1 a.ark:3\n"}, "scp:a.scp",
         "InvalidArgument: decode= is for lines (got 'json'); the objects of scp are read by holder=",
         decode="json"),
    case("scp: with index", {"a.ark": ARK, "a.scp": b"u1 a.ark:3\n"}, "scp:a.scp",
         "InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of 'scp:a.scp' belong together: leave it out, or name the files",
         index=sk.Index(sampled=True)),
    directory("InvalidArgument: format=Tokens(...) is for tokens, and 'kaldi:DIR' is kaldi-directory: "
              "leave it out, or name the files", format=sk.formats.Tokens(dtype="uint16")),
    directory("InvalidArgument: holder= is for Kaldi's tables (ark, scp), and this is kaldi-directory: drop "
              "it", format=sk.formats.Kaldi(holder="matrix")),
    directory("InvalidArgument: decode= is for lines, and this is a data directory of Kaldi (got 'json')",
              decode="json"),
    directory("InvalidArgument: format=Tables(...) is for parquet, arrow, and 'kaldi:DIR' is "
              "kaldi-directory: leave it out, or name the files", format=sk.formats.Tables(strict=True)),
    directory("InvalidArgument: the data directory 'DIR' has no column 'nope'; its tables make the columns "
              "'key', 'audio', 'text', 'speaker'", columns=["nope"]),
    directory("InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and "
              "the files of 'kaldi:DIR' belong together: leave it out, or name the files",
              index=sk.Index(sampled=True)),
]  # fmt: skip

OF_TOKENS = [
    tokens("InvalidArgument: decode= is for lines and fields, and tokens are arrays as they are stored: "
           "drop it", decode="json"),
    tokens("InvalidArgument: there is no column 'nope'. There are 'tokens'", columns=["nope"]),
    tokens("WrongType: columns takes a list of names of columns (got 'tokens')", columns="tokens"),
    tokens("InvalidArgument: dtype='uint32' contradicts 'DIR/a.idx', which says that the tokens of "
           "'DIR/a.bin' are uint16: leave dtype= out", format=sk.formats.Tokens(dtype="uint32")),
    case("tokens: with group", MEGATRON, "tokens:a.bin",
         "InvalidArgument: format=Tar(...) is for tar, and 'tokens:a.bin' is tokens: leave it out, or name "
         "the files",
         format=sk.formats.Tar(group="key")),
    case("megatron: with index", MEGATRON, "megatron:a",
         "InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of 'megatron:a' belong together: leave it out, or name the files",
         index=sk.Index(sampled=True)),
    case("a folder of LitData with eos", of_litdata, ".",
         "InvalidArgument: eos=2 says where documents end, and 'DIR/chunk-0-0.bin' says that itself, or the "
         "index beside it: leave eos= out", format=sk.formats.Tokens(eos=2)),
]  # fmt: skip

OF_SHAR = [
    cuts("InvalidArgument: format=Tokens(...) is for tokens, and '.' is shar: leave it out, or name the "
         "files", format=sk.formats.Tokens(dtype="uint16")),
    cuts("InvalidArgument: format=Tar(...) is for tar, and '.' is shar: leave it out, or name the files",
         format=sk.formats.Tar(missing="none")),
    cuts("InvalidArgument: format=Jsonl(...) is for jsonl, and '.' is shar: leave it out, or name the files",
         format=sk.formats.Jsonl(partitions="hive")),
    cuts("InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of '.' belong together: leave it out, or name the files", index=sk.Index(sampled=True)),
    cuts("InvalidArgument: decode='json' is the decoder of one field: say which, decode={'FIELD': 'json'}",
         decode="json"),
    cuts("InvalidArgument: decode has 'text', and the fields of this Shar with payloads are none",
         decode={"text": "text"}),
    cuts("InvalidArgument: columns= chooses keys of dicts, and decode='lhotse' makes cuts, which need them "
         "all: leave columns= out (got ['id'])", decode="lhotse", columns=["id"]),
    cuts("InvalidArgument: the cuts of this Shar have no column 'nope', and it has no such field; there are "
         "'id', 'text'", columns=["nope"]),
    cuts("WrongType: columns takes a list of names of columns (got 'id')", columns="id"),
    cuts("BadKey: DIR/cuts.0.jsonl: record 0 at byte 0 has no field 'nope' to be its key: it has ['id']",
         key="nope"),
    case("a dict of a Shar with suffix", shar("0"), {"cuts": "DIR"},
         "InvalidArgument: format=Tar(...) is for tar, and {'cuts': 'DIR'} is shar: leave it out, or name "
         "the files",
         format=sk.formats.Tar(suffix="_x")),
    case("a dict of a Shar with dtype", shar("0"), {"cuts": "DIR"},
         "InvalidArgument: format=Tokens(...) is for tokens, and {'cuts': 'DIR'} is shar: leave it out, or "
         "name the files",
         format=sk.formats.Tokens(dtype="uint16")),
    case("cuts alone with holder", {"cuts.0.jsonl": LINE}, ".",
         "InvalidArgument: format=Kaldi(...) is for ark, scp, kaldi-directory, and '.' is shar: leave it "
         "out, or name the files",
         format=sk.formats.Kaldi(holder="matrix")),
]  # fmt: skip

REFUSED_OPTIONS_OF_OTHERS: dict[str, list[Case]] = {
    "refused options of tar": OF_TAR,
    "refused options of Kaldi": OF_KALDI,
    "refused options of tokens": OF_TOKENS,
    "refused options of Shar": OF_SHAR,
}
