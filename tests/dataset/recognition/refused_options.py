"""Cases of wrong options of lines and tables, and of values and keywords that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.dataset.recognition.files import (
    CSV,
    LINE,
    PARQUET,
    TAR,
    TEXT,
    case,
)

import seekable as sk

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

__all__ = ["REFUSED_OPTIONS"]

FORMATS: Any = sk.formats
"""The formats, for options of types that they do not take."""


def lines(answer: str, **options: Any) -> Case:
    """Return a case of options for JSON lines."""
    return case(f"jsonl with {options}", {"a.jsonl": LINE}, "a.jsonl", answer, **options)


def text(answer: str, **options: Any) -> Case:
    """Return a case of options for text."""
    return case(f"text with {options}", {"a.txt": TEXT}, "a.txt", answer, **options)


def csv(answer: str, **options: Any) -> Case:
    """Return a case of options for CSV."""
    return case(f"csv with {options}", {"a.csv": CSV}, "a.csv", answer, **options)


def table(answer: str, **options: Any) -> Case:
    """Return a case of options for Parquet."""
    return case(f"parquet with {options}", {"a.parquet": PARQUET}, "a.parquet", answer, **options)


OF_LINES: list[Case] = [
    lines("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is jsonl: say "
          "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    lines("InvalidArgument: decode must be one of 'json', 'text', 'bytes' or a function of the line's "
          "bytes; got 'webdataset'", decode="webdataset"),
    lines("WrongType: decode must be a name or a function of the line's bytes; got 3", decode=3),
    lines("WrongType: decode must be a name or a function of the line's bytes; got {'a': 'json'}",
          decode={"a": "json"}),
    lines("WrongType: errors must be a function of a CorruptRecord (got 'skip')", errors="skip"),
    lines("WrongType: key must be the name of a field or a function of the record (got 3)", key=3),
    lines("BadKey: DIR/a.jsonl: record 0 at byte 0 has no field 'id' to be its key: it has ['a']", key="id"),
    lines("InvalidArgument: partitions= adds columns, so records must be dicts, and decode='bytes' makes "
          "none: open lines of text as 'txt:PATH:COLUMN'",
          format=sk.formats.Jsonl(partitions="hive"), decode="bytes"),
    lines("InvalidArgument: the index of 'DIR' cannot be published: it is a folder of this machine, where "
          "the index lies beside the data anyway; publish is for addresses such as s3://bucket/data",
          index=sk.Index(publish=True)),
    lines("InvalidArgument: format must be one of FORMATS; got 'json'", format="json"),
    lines("InvalidArgument: format must be one of FORMATS; got '.jsonl'", format=".jsonl"),
    lines("InvalidArgument: format must be one of FORMATS; got 'JSONL'", format="JSONL"),
    lines("InvalidArgument: format must be one of FORMATS; got ''", format=""),
    lines("InvalidArgument: holder must be one of ...", format="ark-nope"),
    lines("InvalidArgument: format 'tar-nope' has the unknown option 'nope'; there are last, key, pairs, "
          "concatenated", format="tar-nope"),
    lines("InvalidArgument: format 'tokens-nope' is not known; tokens are 'tokens', with the options "
          "dtype=, eos= and bos= of sk.formats.Tokens", format="tokens-nope"),
    lines("InvalidArgument: format 'csv-nope' is not known; CSV is 'csv' or 'tsv', with the options "
          "delimiter=, quote= and encoding= of sk.formats.Csv", format="csv-nope"),
    lines("InvalidArgument: format must be one of FORMATS; got 'text-nope'", format="text-nope"),
    lines("UnsupportedFormat: 'DIR/a.jsonl' is opened with the directory that it is in, as 'kaldi:DIR'; "
          "leave format='kaldi-directory' out", format="kaldi-directory"),
    text("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is text: say "
         "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    text("InvalidArgument: decode must be one of 'json', 'text', 'bytes' or a function of the line's bytes; "
         "got 'arrow'", decode="arrow"),
    text("BadKey: DIR/a.txt: record 0 at byte 0 has no field 'id' to be its key: it is a str", key="id"),
    text("InvalidArgument: partitions= adds columns, so records must be dicts, and decode='text' makes "
         "none: open lines of text as 'txt:PATH:COLUMN'", format=sk.formats.Text(partitions="hive")),
    csv("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is csv: say "
        "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    csv("InvalidArgument: sk.formats.Csv: quote must be one ASCII character that is no line end and not the "
        "delimiter ',', or '' where nothing is quoted (got ',')", format=sk.formats.Csv(quote=",")),
    csv("InvalidArgument: decode must be one of 'json', 'text', 'bytes', 'csv' or a function of the line's "
        "bytes; got 'nope'", decode="nope"),
    case("txt: with decode", {"a.txt": TEXT}, "txt:a.txt:line",
         "CorruptRecord: DIR/a.txt: record 0 at byte 0 (3 bytes) cannot be decoded: JSONDecodeError: "
         "Expecting value: line 1 column 1 (char 0); it starts with b'one'. Look at it with `tail -c +1 "
         "FILE | head -c 3`, mend the file, or open it with decode='bytes' to read past it", decode="json"),
    case("txt: with columns", {"a.txt": TEXT}, "txt:a.txt:line",
         "InvalidArgument: columns= is for tables (Parquet, Arrow), and this is text: say "
         "sk.open(...).select_columns(['line']), which makes no values of the others", columns=["line"]),
    case("txt: with index", {"a.txt": TEXT}, "txt:a.txt:line",
         "InvalidArgument: Index(sampled=True) opens some files of a folder, a glob or a list, and the "
         "files of 'txt:a.txt:line' belong together: leave it out, or name the files",
         index=sk.Index(sampled=True)),
]  # fmt: skip

OF_TABLES = [
    table("InvalidArgument: decode must be one of 'python', 'numpy', 'arrow' for tables (got 'json'); a "
          "function of records goes into ds.map", decode="json"),
    table("InvalidArgument: decode must be one of 'python', 'numpy', 'arrow' for tables (got <built-in "
          "function len>); a function of records goes into ds.map", decode=len),
    table("WrongType: columns must be a list of names (got 'a')", columns="a"),
    table("InvalidArgument: columns must be names, each once (got 'a' in ['a', 'a'])", columns=["a", "a"]),
    table("InvalidArgument: columns must be names, each once (got 3 in ['a', 3])", columns=["a", 3]),
    table("InvalidArgument: no file has a column 'nope'; there are 'a', 'b'", columns=["nope"]),
    table("InvalidArgument: no file has a column 'nope', and no folder is one; there are 'a', 'b'",
          format=sk.formats.Tables(partitions="hive"), columns=["nope"]),
    table("BadKey: DIR/a.parquet: record 0 at byte 4 has no field 'nope' to be its key: it has ['a', 'b']",
          key="nope"),
]  # fmt: skip

OF_VALUES = [
    case("tar over a folder of lines", {"a.jsonl": LINE}, ".", "InvalidArgument: format=Tar(...) is for "
                                                               "tar, and '.' is jsonl: leave it out, or "
                                                               "name the files",
                                                               format=sk.formats.Tar(group="key")),
    case("tokens over a glob of lines", {"a.jsonl": LINE}, "*", "InvalidArgument: format=Tokens(...) is "
                                                                "for tokens, and '*' is jsonl: leave it "
                                                                "out, or name the files",
                                                                format=sk.formats.Tokens(eos=0)),
    case("CSV over a folder of text", {"a.txt": TEXT}, ".", "InvalidArgument: format=Csv(...) is for csv, "
                                                            "tsv, csv-semicolon, and '.' is text: leave it "
                                                            "out, or name the files",
                                                            format=sk.formats.Csv(delimiter="|")),
    case("tables over a column of text", {"a.txt": TEXT}, "txt:a.txt:line", "InvalidArgument: "
                                                                            "format=Tables(...) is for "
                                                                            "parquet, arrow, and "
                                                                            "'txt:a.txt:line' is text: "
                                                                            "leave it out, or name the "
                                                                            "files",
                                                                            format=sk.formats.Tables()),
    case("Kaldi over a folder of Parquet", {"a.parquet": PARQUET}, ".", "InvalidArgument: "
                                                                        "format=Kaldi(...) is for ark, "
                                                                        "scp, kaldi-directory, and '.' is "
                                                                        "parquet: leave it out, or name "
                                                                        "the files",
                                                                        format=sk.formats.Kaldi()),
    case("tables over a list of lines", {"a.jsonl": LINE}, ["a.jsonl"], "UnsupportedFormat: DIR/a.jsonl: 9 "
                                                                        "bytes are too few for a Parquet "
                                                                        "file: copy it again",
                                                                        format=sk.formats.Tables()),
    case("a suffix for one source", {"a.tar": TAR}, ".", "InvalidArgument: suffix= is for a dict of "
                                                         "archives, and this is other data (got '_x'): "
                                                         "drop it", format=sk.formats.Tar(suffix="_x")),
    case("a number as format", {"a.jsonl": LINE}, ".", "WrongType: format must be a name, or a value such "
                                                       "as sk.formats.Tar() (got 3)", format=3),
    case("a class as format", {"a.jsonl": LINE}, ".", "WrongType: format must be a name, or a value such "
                                                      "as sk.formats.Tar() (got <class "
                                                      "'seekable.formats.tar.tar.Tar'>)",
                                                      format=sk.formats.Tar),
    case("a text as index", {"a.jsonl": LINE}, ".", "WrongType: index must be a sk.Index(...), or left out "
                                                    "(got 'sampled')", index="sampled"),
    case("a class as index", {"a.jsonl": LINE}, ".", "WrongType: index must be a sk.Index(...), or left "
                                                     "out (got <class "
                                                     "'seekable.index.index_location.Index'>)",
                                                     index=sk.Index),
    case("a dict as storage", {"a.jsonl": LINE}, ".", "WrongType: storage must be a sk.Storage(...), or "
                                                      "left out (got {})", storage={}),
    case("an unknown keyword", {"a.jsonl": LINE}, ".", "InvalidArgument: open() has no argument "
                                                       "'nonsense': it has source, format, decode, "
                                                       "columns, key, errors, version, index, storage, "
                                                       "progress", nonsense=1),
]  # fmt: skip

OF_KEYWORDS = [
    lines("InvalidArgument: open() has no argument 'delimiter': write format=sk.formats.Csv(delimiter=...)",
          delimiter="x"),
    lines("InvalidArgument: open() has no argument 'quote': write format=sk.formats.Csv(quote=...)",
          quote="x"),
    lines("InvalidArgument: open() has no argument 'encoding': write format=sk.formats.Csv(encoding=...)",
          encoding="x"),
    lines("InvalidArgument: open() has no argument 'group': write format=sk.formats.Tar(group=...)",
          group="x"),
    lines("InvalidArgument: open() has no argument 'splitname': write format=sk.formats.Tar(splitname=...)",
          splitname="x"),
    lines("InvalidArgument: open() has no argument 'missing': write format=sk.formats.Tar(missing=...)",
          missing="x"),
    lines("InvalidArgument: open() has no argument 'concatenated': write "
          "format=sk.formats.Tar(concatenated=...)", concatenated="x"),
    lines("InvalidArgument: open() has no argument 'suffix': write format=sk.formats.Tar(suffix=...)",
          suffix="x"),
    lines("InvalidArgument: open() has no argument 'dtype': write format=sk.formats.Tokens(dtype=...)",
          dtype="uint16"),
    lines("InvalidArgument: open() has no argument 'eos': write format=sk.formats.Tokens(eos=...)", eos=0),
    lines("InvalidArgument: open() has no argument 'bos': write format=sk.formats.Tokens(bos=...)", bos="x"),
    lines("InvalidArgument: open() has no argument 'holder': write format=sk.formats.Kaldi(holder=...)",
          holder="x"),
    lines("InvalidArgument: open() has no argument 'pipes': write format=sk.formats.Kaldi(pipes=...)",
          pipes="x"),
    lines("InvalidArgument: open() has no argument 'strict': write format=sk.formats.Tables(strict=...)",
          strict="x"),
    lines("InvalidArgument: open() has no argument 'partitions': write "
          "format=sk.formats.Tables(partitions=...), or that of Jsonl, Text, Csv, Tar or Tokens",
          partitions="x"),
    lines("InvalidArgument: open() has no argument 'index_dir': write index=sk.Index(folder=...)",
          index_dir="i"),
    lines("InvalidArgument: open() has no argument 'jobs': write index=sk.Index(jobs=...)", jobs=1),
    lines("InvalidArgument: open() has no argument 'executor': write index=sk.Index(executor=...)",
          executor="x"),
    lines("InvalidArgument: open() has no argument 'publish': write index=sk.Index(publish=...)",
          publish="x"),
    lines("InvalidArgument: open() has no argument 'most_bytes': write index=sk.Index(most_bytes=...)",
          most_bytes="x"),
    lines("InvalidArgument: open() has no argument 'storage_options': write storage=sk.Storage(options=...)",
          storage_options={}),
    lines("InvalidArgument: open() has no argument 'cache': write storage=sk.Storage(cache=...)", cache="x"),
    lines("InvalidArgument: open() has no argument 'pin': write storage=sk.Storage(pin=...)", pin="x"),
    lines("InvalidArgument: open() has no argument 'refresh': write storage=sk.Storage(refresh=...)",
          refresh="x"),
    lines("InvalidArgument: open() has no argument 'max_open_files': write "
          "storage=sk.Storage(max_open_files=...)", max_open_files="x"),
    lines("InvalidArgument: open() has no argument 'split': write hf:REPO:SPLIT as the source, or "
          "ds.split({...}, seed=0)", split={"train": 0.9}),
    lines("InvalidArgument: open() has no argument 'streaming': write ds.stream() of what is "
          "returned; no record is read before it is asked for", streaming="x"),
    lines("InvalidArgument: open() has no argument 'shuffle': write ds.shuffle(seed=0)", shuffle="x"),
    lines("InvalidArgument: open() has no argument 'num_workers': write sk.Loader(ds, workers=...), "
          "or index=sk.Index(jobs=...)", num_workers="x"),
    lines("InvalidArgument: open() has no argument 'data_files': write the files as the source",
          data_files="x"),
]  # fmt: skip

REFUSED_OPTIONS: dict[str, list[Case]] = {
    "refused options of lines": OF_LINES,
    "refused options of tables": OF_TABLES,
    "refused values": OF_VALUES,
    "refused keywords": OF_KEYWORDS,
}
