"""Cases of values, paths, specs and addresses that are refused because of what they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.dataset.recognition.files import (
    ARK,
    KALDI,
    LINE,
    LITDATA,
    MEGATRON,
    PARQUET,
    SCP,
    SPLIT_TAR,
    TAR,
    TEXT,
    broken_link,
    case,
    energon,
    of_pack,
    of_two_collections,
    pipe,
    shar,
    wids,
)

import seekable as sk

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

__all__ = ["REFUSED_NAMES"]

PATHS: list[Case] = [
    case("a name that is not there", {"train.jsonl": LINE}, "trian.jsonl",
         "DataNotFound: there is no 'DIR/trian.jsonl'; in 'DIR' there is 'train.jsonl': was that meant?"),
    case("a folder that is not there", {"data/a.jsonl": LINE}, "dta/a.jsonl",
         "DataNotFound: there is no 'DIR/dta/a.jsonl'; in 'DIR' there is 'data': was that meant?"),
    case("nothing near", {}, "corpus/a.jsonl",
         "DataNotFound: there is no 'DIR/corpus/a.jsonl'; the nearest folder that exists is 'DIR', with 0 "
         "entries"),
    case("a glob of nothing", {"a.jsonl": LINE}, "*.json",
         "DataNotFound: no file matches 'DIR/*.json'; in 'DIR' there is 'a.jsonl': was that meant?"),
    case("a glob in no folder", {"data/a.jsonl": LINE}, "date/*.jsonl",
         "DataNotFound: nothing matches 'DIR/date/*.jsonl': there is no folder 'DIR/date'; in 'DIR' there "
         "is 'data': was that meant?"),
    case("braces that lack one", {"a-0.jsonl": LINE}, "a-{0..1}.jsonl",
         "DataNotFound: of the 2 paths that 'a-{0..1}.jsonl' stands for, 1 do not exist; the first of "
         "these is 'DIR/a-1.jsonl': in 'DIR' there is 'a-0.jsonl': was that meant?"),
    case("a broken link", broken_link, "a.jsonl",
         "DataNotFound: 'DIR/a.jsonl' is a link to 'gone.jsonl', which is not there"),
    case("a broken link in a folder", broken_link, ".",
         "DataNotFound: there is no file 'DIR/a.jsonl', or it links to one that is gone"),
    case("a named pipe", pipe, "a.jsonl",
         "DataNotFound: 'DIR/a.jsonl' is neither a regular file nor a folder; only those can be indexed"),
    case("names with two colons", {"a.tar": TAR}, "a.tar::b.tar",
         "DataNotFound: there is no 'DIR/a.tar::b.tar'; WebDataset separates lists of files by '::'; write "
         "them as one list, sk.open([...])"),
    case("a home folder", {}, "~/no such folder/a.jsonl",
         "DataNotFound: there is no 'DIR/~/no such folder/a.jsonl'; the nearest folder that exists is "
         "'DIR', with 0 entries"),
    case("an empty text", {}, "",
         "DataNotFound: an empty string names no data; write '.' for the working folder"),
    case("an empty list", {}, [], "DataNotFound: an empty list names no data; give at least one path"),
    case("a list of an empty text", {}, [""],
         "DataNotFound: an empty string names no data; write '.' for the working folder"),
    case("a list of one that is not there", {"a.jsonl": LINE}, ["a.jsonl", "b.jsonl"],
         "DataNotFound: there is no 'DIR/b.jsonl'; in 'DIR' there is 'a.jsonl': was that meant?"),
    case("an int", {}, 3, "WrongType: data is given as a str, a path, or a list of those; got 3"),
    case("None", {}, None, "WrongType: data is given as a str, a path, or a list of those; got None"),
    case("bytes", {"a.jsonl": LINE}, b"a.jsonl",
         "WrongType: data is given as a str, a path, or a list of those; got b'a.jsonl'"),
    case("a set", {}, {"a.jsonl"},
         "WrongType: data is given as a str, a path, or a list of those; got {'a.jsonl'}"),
    case("a list of an int", {}, ["a.jsonl", 3], "WrongType: a list of data holds strings and paths; got 3"),
    case("a list of a list", {}, [["a.jsonl"]],
         "WrongType: a list of data holds strings and paths; got ['a.jsonl']"),
    case("a list of a dict", {}, [{"a": 1}],
         "WrongType: a list of data holds strings and paths; got {'a': 1}"),
    case("a dataset", {}, sk.from_sequence([1, 2], version=1),
         "WrongType: a list of data holds strings and paths; got 1"),
    case("a list of datasets", {}, [sk.from_sequence([1, 2], version=1)],
         "WrongType: a list of data holds strings and paths; got <Dataset, 2 records: "
         "from_sequence(<builtins.list of 2>)>"),
    case("an empty dict", {}, {},
         "InvalidArgument: a dict of archives needs at least one (got an empty dict)"),
    case("a dict of an int", {}, {"x": 3},
         "WrongType: data is given as a str, a path, or a list of those; got 3"),
    case("a dict of None", {"cuts.0.jsonl": LINE}, {"cuts": "DIR", "recording": None},
         "WrongType: data is given as a str, a path, or a list of those; got None"),
    case("a dict with a number as key", {"a.tar": TAR}, {1: "a.tar"},
         "WrongType: the keys of a dict of archives must be names (got 1)"),
    case("a dict of lines", {"a.jsonl": LINE}, {"x": "a.jsonl"},
         "InvalidArgument: a dict is for sibling archives, tar files of samples, and 'x' is <Dataset, 1 "
         "record: open('a.jsonl')>: sk.join(a, b, on=...) and sk.zip(a, b) put other data together"),
    case("a dict of a spec", {"a.jsonl": LINE}, {"x": "shar:DIR"},
         "DataNotFound: 'DIR' has no cuts: a Shar has files cuts.000000.jsonl (or .jsonl.gz, .jsonl.zst). "
         "Name the folder that has them, or open other files by themselves"),
    case("a dict of equal fields", {"a.tar": TAR}, {"x": "a.tar", "y": "a.tar"},
         "InvalidArgument: 'x' and 'y' both have a field 'txt', which would be the column 'txt': say "
         "sk.formats.Tar(suffix={'y': '_y'}) (another one), or leave the column out with columns="),
    case("a dict of other numbers of shards", {"a.tar": TAR, "b.tar": SPLIT_TAR},
         {"x": ["a.tar", "a.tar"], "y": "b.tar"},
         "UnsupportedFormat: sibling archives go together shard by shard, and their numbers of shards "
         "differ: 'x' has 2, 'y' has 1. sk.join(sk.open(...), sk.open(...), on='__key__') matches samples "
         "by key between any shards\nDuplicateKeys: 2 records share 1 of the keys '__key__' with "
         "others:\n  '0': DIR/a.tar row 0, DIR/a.tar row 0"),
    case("a Shar of two folders that lacks a shard", shar("0", "1"), {"cuts": "DIR", "text": "text.0.jsonl"},
         "UnsupportedFormat: the field 'text' has 1 files and the cuts have 2, and each shard needs one of "
         "both: 'DIR/text.0.jsonl' beside 'DIR/cuts.0.jsonl', 'DIR/cuts.1.jsonl'. Name as many, or leave "
         "the field out"),
    case("a Shar whose cuts are tar", {"a.tar": TAR}, {"cuts": "a.tar"},
         "UnsupportedFormat: the cuts of a Shar are JSON lines (.jsonl, .jsonl.gz or .jsonl.zst), not "
         "'DIR/a.tar'"),
    case("a Shar of text files", {**shar("0"), "a.txt": TEXT}, {"cuts": "DIR", "text": "a.txt"},
         "UnsupportedFormat: 'DIR/a.txt' is no file of a Shar, whose files end in .tar, .tar.gz, .tgz, "
         ".tar.zst, .jsonl, .jsonl.gz, .jsonl.zst"),
    case("a Shar with an empty name", shar("0"), {"cuts": "DIR", "": "DIR"},
         "InvalidArgument: the fields of a Shar have names (got '')"),
    case("a Shar of a field that is not there", shar("0"), {"cuts": "DIR", "audio": "DIR"},
         "DataNotFound: no file matches 'DIR/audio.*'; the nearest folder that exists is 'DIR', with 2 "
         "entries"),
]  # fmt: skip

SPECS = [
    case("txt: without operands", {}, "txt:",
         "InvalidArgument: 'txt:' is not complete: txt:PATH:COLUMN, where COLUMN is the name of the column "
         "of lines"),
    case("txt: without a column", {"a.txt": TEXT}, "txt:a.txt",
         "InvalidArgument: 'txt:a.txt' is not complete: txt:PATH:COLUMN, where COLUMN is the name of the "
         "column of lines"),
    case("txt: of nothing", {}, "txt:a.txt:line",
         "DataNotFound: there is no 'DIR/a.txt'; the nearest folder that exists is 'DIR', with 0 entries"),
    case("txt: as lines", {"a.txt": TEXT}, "txt:a.txt:line",
         "InvalidArgument: 'txt:a.txt:line' is text; leave format='jsonl' out", format="jsonl"),
    case("a mistyped txt:", {"a.txt": TEXT}, "text:a.txt:line",
         "DataNotFound: there is no 'DIR/text:a.txt:line'; the nearest folder that exists is 'DIR', with 1 "
         "entries"),
    case("scp: without operands", {}, "scp:",
         "InvalidArgument: 'scp:' cannot be opened, because a dataset needs files with records in any "
         "order; its table is standard input, which can only be read once, from start to end: "
         "seekable.kaldi.SequentialReader('scp:', HOLDER) does so; or write the table to a file"),
    case("scp: of nothing", {}, "scp:a.scp",
         "DataNotFound: there is no 'DIR/a.scp'; the nearest folder that exists is 'DIR', with 0 entries"),
    case("scp: with an unknown option", {"a.scp": SCP}, "scp,zz:a.scp",
         "InvalidArgument: 'scp,zz:a.scp' is not an rspecifier: 'zz' is not an option. Before the ':' stand "
         "options, each separated by one comma or space: ark scp o no p np s ns cs ncs bg b t"),
    case("scp: as an archive", {"a.scp": SCP}, "scp:a.scp",
         "InvalidArgument: 'scp:a.scp' is scp; leave format='ark' out", format="ark"),
    case("ark: of standard input", {}, "ark:-",
         "InvalidArgument: 'ark:-' cannot be opened, because a dataset needs files with records in any "
         "order; its table is standard input, which can only be read once, from start to end: "
         "seekable.kaldi.SequentialReader('ark:-', HOLDER) does so; or write the table to a file"),
    case("ark: of a command", {}, "ark:gunzip -c a.ark.gz |",
         "InvalidArgument: 'ark:gunzip -c a.ark.gz |' cannot be opened, because a dataset needs files with "
         "records in any order; its table is a command, which can only be read once, from start to end: "
         "seekable.kaldi.SequentialReader('ark:gunzip -c a.ark.gz |', HOLDER) does so; or write the table "
         "to a file"),
    case("ark: of a byte", {"a.ark": ARK}, "ark:a.ark:3",
         "InvalidArgument: 'ark:a.ark:3' cannot be opened, because a dataset needs files with records in "
         "any order; it names one byte of a file. Open all of it: ark:a.ark"),
    case("both of Kaldi", {"a.scp": SCP}, "ark,scp:a.ark,a.scp",
         "InvalidArgument: 'ark,scp:a.ark,a.scp' is not an rspecifier: a table to read is either ark or scp "
         "(got ark and scp)"),
    case("kaldi: without operands", {}, "kaldi:",
         "InvalidArgument: 'kaldi:' is not complete: kaldi:DIR, where DIR is a data directory such as "
         "data/train"),
    case("kaldi: of nothing", {}, "kaldi:no",
         "DataNotFound: there is no data directory 'DIR/no': it does not exist"),
    case("kaldi: of a folder without tables", {"a.txt": TEXT}, "kaldi:DIR",
         "DataNotFound: 'DIR' is not a data directory of Kaldi: it has none of the files segments, wav.scp, "
         "feats.scp, text, utt2spk"),
    case("kaldi: as text", KALDI, "kaldi:DIR",
         "InvalidArgument: 'kaldi:DIR' is kaldi-directory; leave format='text' out", format="text"),
    case("shar: without operands", {}, "shar:",
         "InvalidArgument: 'shar:' is not complete: shar:DIR, where DIR has the files cuts.*.jsonl"),
    case("shar: of nothing", {}, "shar:no",
         "DataNotFound: 'DIR/no' is no folder, and a Shar is one; name the folder that has the "
         "cuts.*.jsonl files"),
    case("shar: of a file", shar("0"), "shar:cuts.0.jsonl",
         "DataNotFound: 'DIR/cuts.0.jsonl' is no folder, and a Shar is one; name the folder that has the "
         "cuts.*.jsonl files"),
    case("shar: of a folder without cuts", {"a.jsonl": LINE}, "shar:DIR",
         "DataNotFound: 'DIR' has no cuts: a Shar has files cuts.000000.jsonl (or .jsonl.gz, .jsonl.zst). "
         "Name the folder that has them, or open other files by themselves"),
    case("shar: as lines", shar("0"), "shar:DIR",
         "InvalidArgument: 'shar:DIR' is a Shar; leave format='jsonl' out", format="jsonl"),
    case("an uppercase SHAR:", shar("0"), "SHAR:DIR",
         "UnsupportedFormat: 'SHAR:DIR' names a folder of Lhotse Shar, which cannot be opened; whose cuts "
         "are read in any order: sk.open('shar:DIR'), and its stream() if one is needed"),
    case("megatron: without operands", {}, "megatron:",
         "InvalidArgument: 'megatron:' is not complete: the form is megatron:PREFIX, of PREFIX.bin and "
         "PREFIX.idx"),
    case("megatron: of nothing", {}, "megatron:no",
         "DataNotFound: there is no 'DIR/no.bin'; the nearest folder that exists is 'DIR', with 0 entries"),
    case("megatron: without an index", {"a.bin": b"\1\0"}, "megatron:a",
         "DataNotFound: there is no 'DIR/a.idx', which says where the documents of 'DIR/a.bin' start: copy "
         "it there, or open 'tokens:DIR/a.bin' with sk.formats.Tokens(dtype=, eos=)"),
    case("megatron: as tar", MEGATRON, "megatron:a",
         "InvalidArgument: 'megatron:a' is tokens; leave format='tar' out", format="tar"),
    case("tokens: without operands", {}, "tokens:",
         "InvalidArgument: 'tokens:' is not complete: the form is tokens:FILE, a glob or a folder"),
    case("tokens: of nothing", {}, "tokens:no.bin",
         "DataNotFound: there is no 'DIR/no.bin'; the nearest folder that exists is 'DIR', with 0 entries"),
    case("tokens: of a folder without tokens", {"a.jsonl": LINE}, "tokens:DIR",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in .bin, .ds, .npy, "
         ".safetensors (names that start with '.' or '_' are skipped); name the files themselves, or use a "
         "glob"),
    case("tokens: of LitData without tokens", {"index.json": LITDATA, "chunk-0-0.bin": b""}, "tokens:DIR",
         "UnsupportedFormat: 'DIR/index.json' is a dataset of LitData whose items are None of "
         "TokensLoader, and not tokens of TokensLoader: give litdata.StreamingDataset of the folder to "
         "sk.from_sequence(..., version=1), or write it with litdata.optimize(..., "
         "item_loader=TokensLoader())"),
    case("energon: without operands", {}, "energon:",
         "InvalidArgument: 'energon:' is not complete: the form is energon:DIR:SPLIT"),
    case("energon: of nothing", {}, "energon:no:train",
         "DataNotFound: 'energon:no:train' names no folder that is there: 'no'. The form is "
         "energon:DIR:SPLIT"),
    case("energon: without a split", energon("train", "val"), "energon:DIR",
         "InvalidArgument: 'energon:DIR' names no split, and there is 'train', 'val': write "
         "'energon:DIR:SPLIT'"),
    case("energon: of another split", energon("train", "val"), "energon:DIR:test",
         "DataNotFound: 'DIR' has no split 'test'; there is 'train', 'val'"),
    case("energon: with an empty split", energon("train"), "energon:DIR:",
         "InvalidArgument: 'energon:DIR:' is not complete: the form is energon:DIR:SPLIT"),
    case("energon: of a plain folder", {"a.tar": TAR}, "energon:DIR:train",
         "DataNotFound: 'DIR' is no prepared dataset of Energon: there is no .info.json or .info.yaml in "
         "'DIR/.nv-meta'. Its tar files are opened as 'DIR/*.tar'"),
    case("energon: as lines", energon("train"), "energon:DIR:train",
         "InvalidArgument: 'energon:DIR:train' is tar; leave format='jsonl' out", format="jsonl"),
    case("wids: without operands", {}, "wids:",
         "InvalidArgument: 'wids:' is not complete: the form is wids:PATH, as in 'wids:shards/index.json'"),
    case("wids: of nothing", {}, "wids:no.json",
         "DataNotFound: there is no file 'DIR/no.json', or it links to one that is gone"),
    case("wids: of lines", {"a.json": LINE}, "wids:a.json",
         "UnsupportedFormat: 'DIR/a.json' is no list of shards of wids (wids-shard-index-v1): its __kind__ "
         "is '', with 0 shards. Open the tar files themselves"),
    case("wids: of a folder", {"index.json": wids(("a.tar", 1)), "a.tar": TAR}, "wids:DIR",
         "DataNotFound: 'DIR' is not a regular file; only those can be indexed"),
    case("wids: with another number", {"i.json": wids(("a.tar", 2)), "a.tar": TAR}, "wids:i.json",
         "IndexStale: 'DIR/a.tar' has 1 samples, and 'DIR/i.json' says 2: the shard was changed or is "
         "damaged. Put the old file back, or make the list again"),
    case("wids: of a shard that is not there", {"i.json": wids(("a.tar", 1))}, "wids:i.json",
         "DataNotFound: there is no 'DIR/a.tar'; the nearest folder that exists is 'DIR', with 1 entries"),
    case("idxpack: without operands", {}, "idxpack:",
         "InvalidArgument: 'idxpack:' is not complete: the form is idxpack:PATH:NUMBER, or idxpack:PATH"),
    case("idxpack: of nothing", {}, "idxpack:no.idxpack",
         "DataNotFound: there is no file 'no.idxpack', or it links to one that is gone"),
    case("a pack that is not there", {}, "no.idxpack",
         "DataNotFound: there is no file 'no.idxpack', or it links to one that is gone"),
    case("idxpack: of a number that is too large", of_pack, "idxpack:c.idxpack:7",
         "InvalidArgument: 'idxpack:c.idxpack:7': the pack has no collection 7. It has 0: paths 2, 2 "
         "records, kind 'jsonl', the first is 'DIR/b.jsonl'"),
    case("a pack of two collections", of_two_collections, "c.idxpack",
         "InvalidArgument: the pack 'c.idxpack' has 2 collections of files: open one as "
         "idxpack:PATH:NUMBER, 'idxpack:c.idxpack:0'. It has 0: paths 1, 1 records, kind 'jsonl', the "
         "first is 'DIR/a.jsonl'; 1: paths 1, 1 records, kind 'jsonl', the first is 'DIR/b.jsonl'"),
    case("a pack that is none", {"c.idxpack": LINE}, "c.idxpack",
         "UnsupportedFormat: 'c.idxpack' is no whole pack of indexes, at byte 9: it ends within its header "
         "of 256 bytes. Write it again (lhotse.index_pack.write_index_pack), or open the data files "
         "themselves: no pack is needed"),
    case("a pack in a list", of_pack, ["c.idxpack"],
         "InvalidArgument: 'c.idxpack' is opened alone; join several with sk.concat([sk.open(...), ...]), "
         "or sk.mix([...], weights=..., seed=...)"),
    case("hf: without operands", {}, "hf:",
         "InvalidArgument: 'hf:' names no repository: '' is not NAMESPACE/NAME or NAMESPACE/NAME@REVISION. "
         "The form is hf:REPO:SPLIT:COLUMN, hf:REPO@REVISION:SPLIT:COLUMN, or without :COLUMN for all "
         "columns; a folder of this machine begins with '/', './' or '~'"),
    case("hf: without a split", {}, "hf:me/web",
         "InvalidArgument: 'hf:me/web' is not complete: the form is hf:REPO:SPLIT:COLUMN, "
         "hf:REPO@REVISION:SPLIT:COLUMN, or without :COLUMN for all columns"),
    case("hf: with an empty column", {}, "hf:me/web:train:",
         "InvalidArgument: 'hf:me/web:train:' is not complete: the form is hf:REPO:SPLIT:COLUMN, "
         "hf:REPO@REVISION:SPLIT:COLUMN, or without :COLUMN for all columns"),
    case("hf: of no name", {}, "hf:a/b/c:train",
         "InvalidArgument: 'hf:a/b/c:train' names no repository: 'a/b/c' is not NAMESPACE/NAME or "
         "NAMESPACE/NAME@REVISION. The form is hf:REPO:SPLIT:COLUMN, hf:REPO@REVISION:SPLIT:COLUMN, or "
         "without :COLUMN for all columns; a folder of this machine begins with '/', './' or '~'"),
    case("hf: of a folder that is not there", {}, "hf:/no such folder:train",
         "InvalidArgument: 'hf:/no such folder:train' names no folder that is there: '/no such folder'. "
         "The form is hf:REPO:SPLIT:COLUMN, hf:REPO@REVISION:SPLIT:COLUMN, or without :COLUMN for all "
         "columns"),
    case("wds:", {}, "wds:a.tar",
         "UnsupportedFormat: 'wds:a.tar' names WebDataset, which cannot be opened; write the paths of its "
         "tar files alone, 'shards/*.tar'"),
    case("mds:", {}, "mds:DIR",
         "UnsupportedFormat: 'mds:DIR' names a dataset of another tool, which cannot be opened; if it has "
         "tokens, write the path of its folder alone, sk.open('DIR'); else read it with streaming, litdata "
         "or data_forager, and give that to sk.from_sequence"),
    case("lance:", {}, "lance:t",
         "UnsupportedFormat: 'lance:t' names a dataset of Lance, which cannot be opened yet; read it with "
         "lance, and give that to sk.from_sequence"),
    case("pipe:", {}, "pipe:cat a.tar",
         "UnsupportedFormat: 'pipe:cat a.tar' names a command, which cannot be opened; "
         "sk.open_stream('COMMAND |', allow_pipes=True) reads lines of it; open copies of tar files"),
    case("an unknown spec", {"a.jsonl": LINE}, "jsonl:a.jsonl",
         "DataNotFound: there is no 'DIR/jsonl:a.jsonl'; in 'DIR' there is 'a.jsonl': was that meant?"),
    case("a spec in a list", shar("0"), ["shar:DIR"],
         "InvalidArgument: 'shar:DIR' is opened alone; join several with sk.concat([sk.open(...), ...]), "
         "or sk.mix([...], weights=..., seed=...)"),
    case("a path object of scp:", {"a.scp": SCP}, Path("scp:a.scp"),
         "InvalidArgument: the holder cannot be found, because none of the first entries of 'DIR/a.scp' can "
         "be read. Say which it is, sk.formats.Kaldi(holder=...). The first of them: there is no file "
         "'DIR/a.ark': the folder 'DIR' has no file of this name"),
    case("a path object of wds:", {}, Path("wds:a.tar"),
         "UnsupportedFormat: 'wds:a.tar' names WebDataset, which cannot be opened; write the paths of its "
         "tar files alone, 'shards/*.tar'"),
    case("a list of tokens and lines", {**MEGATRON, "a.jsonl": LINE}, ["a.bin", "a.jsonl"],
         "UnsupportedFormat: a dataset has one format, and here there are 2: tokens (a.bin), jsonl "
         "(a.jsonl). Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
         "format="),
    case("a list of a table and its folder", {"a.parquet": PARQUET, "x/a.txt": TEXT}, ["a.parquet", "x"],
         "UnsupportedFormat: a dataset has one format, and here there are 2: parquet (a.parquet), text "
         "(a.txt). Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
         "format="),
    case("a script in a list", {"a.scp": SCP}, ["scp:a.scp", "scp:a.scp"],
         "InvalidArgument: 'scp:a.scp' is opened alone; join several with sk.concat([sk.open(...), ...]), "
         "or sk.mix([...], weights=..., seed=...)"),
]  # fmt: skip

ADDRESSES = [
    case("file://", {"a.jsonl": LINE}, "file://DIR/a.jsonl",
         "UnsupportedFormat: 'file://DIR/a.jsonl' is an address; write the path alone: 'DIR/a.jsonl'"),
    case("an address without slashes", {}, "s3:bucket/a.jsonl",
         "UnsupportedFormat: 's3:bucket/a.jsonl' is no address, which begins with s3://, and no file that "
         "is there; write 's3://bucket/a.jsonl'"),
    case("an address without a bucket", {}, "s3:///a.jsonl",
         "InvalidArgument: 's3:///a.jsonl' names no bucket: expected an address such as "
         "s3://bucket/folder/file.jsonl"),
    case("an address with a user", {}, "s3://me:secret@bucket/a.jsonl",
         "InvalidArgument: an address of s3:// has no user and no password before its bucket (got "
         "...@bucket): give credentials by the environment or storage=sk.Storage(options=...)"),
    case("a glob of a web server", {}, "https://host/*.jsonl",
         "UnsupportedFormat: 'https://host/*.jsonl' is a glob on a web server, which lists no files: name "
         "them, in a list or with braces such as part-{000..099}.jsonl"),
    case("a folder of a web server", {}, "https://host/data/",
         "UnsupportedFormat: 'https://host/data/' is a folder on a web server, which lists no files: name "
         "them, in a list or with braces such as part-{000..099}.jsonl"),
    case("a web server alone", {}, "https://host",
         "UnsupportedFormat: 'https://host' is a folder on a web server, which lists no files: name them, "
         "in a list or with braces such as part-{000..099}.jsonl"),
    case("an old address of Azure", {}, "wasb://box@account/a.jsonl",
         "UnsupportedFormat: 'wasb://box@account/a.jsonl' names an address of Azure in an old form, which "
         "cannot be opened; write az://CONTAINER/KEY"),
    case("an address of R2", {}, "r2://bucket/a.jsonl",
         "UnsupportedFormat: 'r2://bucket/a.jsonl' names a bucket of Cloudflare R2, which cannot be "
         "opened; write s3://BUCKET/KEY with sk.Storage(options={'endpoint': "
         "'https://ACCOUNT.r2.cloudflarestorage.com'})"),
    case("an address of the Hub in a spec", {}, "hf://datasets/me/web",
         "InvalidArgument: 'hf://datasets/me/web' is an address; name the split of its repository: "
         "'hf:me/web:SPLIT'"),
    case("an address in a spec of a byte", {}, "ark:s3://bucket/a.ark:3",
         "InvalidArgument: 'ark:s3://bucket/a.ark:3' cannot be opened, because a dataset needs files with "
         "records in any order; it names one byte of a file. Open all of it: ark:s3://bucket/a.ark"),
    case("an unknown option of a store", {}, "s3://bucket/a.jsonl",
         "InvalidArgument: a store of s3:// addresses has no option 'nope': known are ...",
         storage=sk.Storage(options={"nope": 1})),
    case("options of a store for a path", {"a.jsonl": LINE}, "a.jsonl",
         "InvalidArgument: Storage(options=) is for data in a store, and 'a.jsonl' has no address such as "
         "s3://bucket/a.jsonl: leave it out", storage=sk.Storage(options={})),
    case("a cache for a path", {"a.jsonl": LINE}, "a.jsonl",
         "InvalidArgument: Storage(cache=) is for data in a store, and 'a.jsonl' has no address such as "
         "s3://bucket/a.jsonl: leave it out", storage=sk.Storage(cache=False)),
    case("a path object of no address", {}, Path("s4:/bucket/a.jsonl"),
         "DataNotFound: there is no 'DIR/s4:/bucket/a.jsonl'; the nearest folder that exists is 'DIR', "
         "with 0 entries"),
]  # fmt: skip

REFUSED_NAMES: dict[str, list[Case]] = {
    "refused values and paths": PATHS,
    "refused specs": SPECS,
    "refused addresses": ADDRESSES,
}
