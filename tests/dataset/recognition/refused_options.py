"""Cases of options of lines and tables: for formats of another kind, or of wrong values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.dataset.recognition.files import (
    CSV,
    LINE,
    PARQUET,
    TEXT,
    case,
)

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

__all__ = ["REFUSED_OPTIONS"]


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
    lines("InvalidArgument: dtype= is for files of tokens, and this is jsonl (got 'uint16'): drop it",
          dtype="uint16"),
    lines("InvalidArgument: eos= is for files of tokens, and this is jsonl (got 0): drop it", eos=0),
    lines("InvalidArgument: bos= is for files of tokens, and this is jsonl (got 1): drop it", bos=1),
    lines("InvalidArgument: missing= is for tar files, and this is jsonl (got 'none'): drop it",
          missing="none"),
    lines("InvalidArgument: group= is for tar files, and this is jsonl (got 'key'): drop it", group="key"),
    lines("InvalidArgument: splitname= is for tar files, and this is jsonl (got 'last'): drop it",
          splitname="last"),
    lines("InvalidArgument: concatenated= is for tar files, and this is jsonl (got True): drop it",
          concatenated=True),
    lines("InvalidArgument: delimiter= is for CSV, and this is jsonl (got ','): drop it, or say format='csv'",
          delimiter=","),
    lines("InvalidArgument: quote= is for CSV, and this is jsonl (got ''): drop it, or say format='csv'",
          quote=""),
    lines("InvalidArgument: encoding= is for CSV, and this is jsonl (got 'utf-8'): drop it, or say "
          "format='csv'", encoding="utf-8"),
    lines("InvalidArgument: holder= is for Kaldi's tables (ark, scp), and this is jsonl: drop it",
          holder="matrix"),
    lines("InvalidArgument: pipes= is for Kaldi's tables (ark, scp), and this is jsonl: drop it",
          pipes="allow"),
    lines("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is jsonl: say "
          "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    lines("InvalidArgument: strict= is for tables (Parquet, Arrow), and this is jsonl", strict=True),
    lines("InvalidArgument: suffix= is for a dict of archives, and this is other data (got '_x'): drop it",
          suffix="_x"),
    lines("InvalidArgument: decode must be one of 'json', 'text', 'bytes' or a function of the line's "
          "bytes; got 'webdataset'", decode="webdataset"),
    lines("WrongType: decode must be a name or a function of the line's bytes; got 3", decode=3),
    lines("WrongType: decode must be a name or a function of the line's bytes; got {'a': 'json'}",
          decode={"a": "json"}),
    lines("WrongType: errors must be a function of a CorruptRecord (got 'skip')", errors="skip"),
    lines("WrongType: key must be the name of a field or a function of the record (got 3)", key=3),
    lines("BadKey: DIR/a.jsonl: record 0 at byte 0 has no field 'id' to be its key: it has ['a']", key="id"),
    lines('InvalidArgument: partitions must be "hive", or left out (got \'year\')', partitions="year"),
    lines("InvalidArgument: partitions= adds columns, so records must be dicts, and decode='bytes' makes "
          "none: open lines of text as 'txt:PATH:COLUMN'", partitions="hive", decode="bytes"),
    lines('InvalidArgument: index must be "sampled", or left out (got \'whole\')', index="whole"),
    lines('InvalidArgument: pin must be "etag" or "version" (got \'tag\')', pin="tag"),
    lines("InvalidArgument: most_bytes must be at least 0 (got -1)", most_bytes=-1),
    lines("InvalidArgument: max_open_files must be at least 1 (got 0)", max_open_files=0),
    lines("WrongType: publish must be True or False (got 3)", publish=3),
    lines("InvalidArgument: the index of 'DIR' cannot be published: it is a folder of this machine, where "
          "the index lies beside the data anyway; publish is for addresses such as s3://bucket/data",
          publish=True),
    lines("InvalidArgument: format must be one of FORMATS; got 'json'", format="json"),
    lines("InvalidArgument: format must be one of FORMATS; got '.jsonl'", format=".jsonl"),
    lines("InvalidArgument: format must be one of FORMATS; got 'JSONL'", format="JSONL"),
    lines("InvalidArgument: format must be one of FORMATS; got ''", format=""),
    lines("InvalidArgument: holder must be one of ...", format="ark-nope"),
    lines("InvalidArgument: format 'tar-nope' has the unknown option 'nope'; there are last, key, pairs, "
          "concatenated", format="tar-nope"),
    lines("InvalidArgument: format 'tokens-nope' is not known; tokens are 'tokens', with the options "
          "dtype=, eos= and bos= of sk.open", format="tokens-nope"),
    lines("InvalidArgument: format 'csv-nope' is not known; CSV is 'csv' or 'tsv', with the options "
          "delimiter=, quote= and encoding= of sk.open", format="csv-nope"),
    lines("InvalidArgument: format must be one of FORMATS; got 'text-nope'", format="text-nope"),
    lines("UnsupportedFormat: 'DIR/a.jsonl' is opened with the directory that it is in, as 'kaldi:DIR'; "
          "leave format='kaldi-directory' out", format="kaldi-directory"),
    text("InvalidArgument: dtype= is for files of tokens, and this is text (got 'uint16'): drop it",
         dtype="uint16"),
    text("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is text: say "
         "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    text("InvalidArgument: strict= is for tables (Parquet, Arrow), and this is text", strict=True),
    text("InvalidArgument: delimiter= is for CSV, and this is text (got '\\t'): drop it, or say format='csv'",
         delimiter="\t"),
    text("InvalidArgument: decode must be one of 'json', 'text', 'bytes' or a function of the line's bytes; "
         "got 'arrow'", decode="arrow"),
    text("BadKey: DIR/a.txt: record 0 at byte 0 has no field 'id' to be its key: it is a str", key="id"),
    text("InvalidArgument: partitions= adds columns, so records must be dicts, and decode='text' makes "
         "none: open lines of text as 'txt:PATH:COLUMN'", partitions="hive"),
    csv("InvalidArgument: dtype= is for files of tokens, and this is csv (got 'uint16'): drop it",
        dtype="uint16"),
    csv("InvalidArgument: group= is for tar files, and this is csv (got 'key'): drop it", group="key"),
    csv("InvalidArgument: holder= is for Kaldi's tables (ark, scp), and this is csv: drop it",
        holder="matrix"),
    csv("InvalidArgument: pipes= is for Kaldi's tables (ark, scp), and this is csv: drop it", pipes="allow"),
    csv("InvalidArgument: columns= is for tables (Parquet, Arrow), and this is csv: say "
        "sk.open(...).select_columns(['a']), which makes no values of the others", columns=["a"]),
    csv("InvalidArgument: strict= is for tables (Parquet, Arrow), and this is csv", strict=True),
    csv("InvalidArgument: delimiter must be one ASCII character and no line end (got ';;')", delimiter=";;"),
    csv("WrongType: delimiter must be a text (got 3)", delimiter=3),
    csv("InvalidArgument: quote must be one ASCII character that is no line end and not the delimiter ',', "
        "or '' where nothing is quoted (got ',')", quote=","),
    csv("InvalidArgument: encoding must be one in which line ends and quotes are single bytes, such as "
        "'utf-8', 'latin-1', 'cp1252' or 'gb18030' (got 'utf-16'); convert other files once, by iconv -t "
        "UTF-8", encoding="utf-16"),
    csv("InvalidArgument: encoding must be one in which line ends and quotes are single bytes, such as "
        "'utf-8', 'latin-1', 'cp1252' or 'gb18030' (got 'nope'); convert other files once, by iconv -t UTF-8",
        encoding="nope"),
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
         'InvalidArgument: index="sampled" opens some files of a folder, a glob or a list, and the files of '
         '"\'txt:a.txt:line\'" belong together: leave it out, or name the files', index="sampled"),
]  # fmt: skip

OF_TABLES = [
    table("InvalidArgument: dtype= is for files of tokens, and this is parquet (got 'uint16'): drop it",
          dtype="uint16"),
    table("InvalidArgument: eos= is for files of tokens, and this is parquet (got 0): drop it", eos=0),
    table("InvalidArgument: group= is for tar files, and this is parquet (got 'key'): drop it", group="key"),
    table("InvalidArgument: missing= is for tar files, and this is parquet (got 'none'): drop it",
          missing="none"),
    table("InvalidArgument: delimiter= is for CSV, and this is parquet (got ','): drop it, or say "
          "format='csv'", delimiter=","),
    table("InvalidArgument: holder= is for Kaldi's tables (ark, scp), and this is parquet: drop it",
          holder="matrix"),
    table("InvalidArgument: pipes= is for Kaldi's tables (ark, scp), and this is parquet: drop it",
          pipes="allow"),
    table("InvalidArgument: decode must be one of 'python', 'numpy', 'arrow' for tables (got 'json'); a "
          "function of records goes into ds.map", decode="json"),
    table("InvalidArgument: decode must be one of 'python', 'numpy', 'arrow' for tables (got <built-in "
          "function len>); a function of records goes into ds.map", decode=len),
    table("WrongType: strict must be True or False (got 'yes')", strict="yes"),
    table("WrongType: columns must be a list of names (got 'a')", columns="a"),
    table("InvalidArgument: columns must be names, each once (got 'a' in ['a', 'a'])", columns=["a", "a"]),
    table("InvalidArgument: columns must be names, each once (got 3 in ['a', 3])", columns=["a", 3]),
    table("InvalidArgument: no file has a column 'nope'; there are 'a', 'b'", columns=["nope"]),
    table("InvalidArgument: no file has a column 'nope', and no folder is one; there are 'a', 'b'",
          columns=["nope"], partitions="hive"),
    table("BadKey: DIR/a.parquet: record 0 at byte 4 has no field 'nope' to be its key: it has ['a', 'b']",
          key="nope"),
]  # fmt: skip

REFUSED_OPTIONS: dict[str, list[Case]] = {
    "refused options of lines": OF_LINES,
    "refused options of tables": OF_TABLES,
}
