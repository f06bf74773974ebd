"""Cases of files and folders that are refused because of what they are, whatever the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dataset.recognition.files import (
    ARK,
    ARROW,
    KALDI,
    LINE,
    LITDATA,
    MDS,
    MEGATRON,
    NPY,
    PARQUET,
    POINTER,
    SAVED,
    SCP,
    TAR,
    TEXT,
    case,
    described,
    energon,
    of_forager,
    of_lines_of_forager,
    of_litdata,
    shar,
    wids,
)

import seekable as sk

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

__all__ = ["REFUSED_FILES"]

DICT = {"dataset_dict.json": described({"splits": ["train"]})}
TWO_LEVELS = {**DICT, **{f"train/{name}": content for name, content in SAVED.items()}}
LACKING = described({"_data_files": [{"filename": "b.arrow"}]})
BUILT = {
    "x-train.arrow": ARROW,
    "x-test.arrow": ARROW,
    "dataset_info.json": described({"splits": {"train": {}, "test": {}}}),
}

DELTA = {"_delta_log/0.json": b"", "day=1/a.parquet": PARQUET}
ICEBERG = {"metadata/v1.metadata.json": b"{}", "data/a.parquet": PARQUET}
HUDI = {".hoodie/x": b"", "day=1/a.parquet": PARQUET}

OF_DELTA = (
    "UnsupportedFormat: 'DIR' is a table of Delta Lake, which cannot be opened: its folder may also hold "
    "deleted rows. Open the files of its last version, sk.open(deltalake.DeltaTable('DIR').file_uris()); to "
    "read its files as they are, old rows too, name them in a list, or say format='parquet'"
)
OF_ICEBERG = (
    "UnsupportedFormat: 'DIR' is a table of Iceberg, which cannot be opened: its folder may also hold "
    "deleted rows. Open the files of its last version, which pyiceberg's table.scan().plan_files() names; to "
    "read its files as they are, old rows too, name them in a list, or say format='parquet'"
)
OF_HUDI = (
    "UnsupportedFormat: 'DIR' is a table of Hudi, which cannot be opened: its folder may also hold replaced "
    "rows. Open a list of the files of its last version; to read its files as they are, old rows too, name "
    "them in a list, or say format='parquet'"
)

SUFFIXES: list[Case] = [
    case("no suffix", {"a": LINE}, "a",
         "UnsupportedFormat: 'a' has the suffix of no known format; known suffixes are SUFFIXES. Say what "
         "it is with format=, one of FORMATS"),
    case("no suffix in a folder", {"a": LINE}, ".",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in SUFFIXES (names that "
         "start with '.' or '_' are skipped); name the files themselves, or use a glob"),
    case("an unknown suffix", {"a.xyz": LINE}, "a.xyz",
         "UnsupportedFormat: 'a.xyz' has the suffix of no known format; known suffixes are SUFFIXES. Say "
         "what it is with format=, one of FORMATS"),
    case("an unknown suffix in a folder", {"a.xyz": LINE}, ".",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in SUFFIXES (names that "
         "start with '.' or '_' are skipped); name the files themselves, or use a glob"),
    case("an unknown suffix, compressed", {"a.xyz.gz": LINE}, "a.xyz.gz",
         "UnsupportedFormat: 'a.xyz.gz' has the suffix of no known format; known suffixes are SUFFIXES. "
         "Say what it is with format=, one of FORMATS"),
    case("gz alone", {"a.gz": LINE}, "a.gz",
         "UnsupportedFormat: 'a.gz' has the suffix of no known format; known suffixes are SUFFIXES. Say "
         "what it is with format=, one of FORMATS"),
    case("jsonl.bz2", {"a.jsonl.bz2": b""}, "a.jsonl.bz2",
         "UnsupportedFormat: 'a.jsonl.bz2' is compressed by its name (.bz2), and such a file has no cheap "
         "way to its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("jsonl.bz2 in a folder", {"a.jsonl.bz2": b""}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.jsonl.bz2' in it is "
         "a compressed file without a cheap way to its middle, which cannot be opened; decompress it once, "
         "or compress it with gzip or zstd"),
    case("jsonl.xz", {"a.jsonl.xz": b""}, "a.jsonl.xz",
         "UnsupportedFormat: 'a.jsonl.xz' is compressed by its name (.xz), and such a file has no cheap "
         "way to its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("tar.bz2", {"a.tar.bz2": b""}, "a.tar.bz2",
         "UnsupportedFormat: 'a.tar.bz2' is compressed by its name (.bz2), and such a file has no cheap "
         "way to its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("tbz2", {"a.tbz2": b""}, "a.tbz2",
         "UnsupportedFormat: 'a.tbz2' is compressed by its name (.tbz2), and such a file has no cheap way "
         "to its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("txz in a folder", {"a.txz": b""}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.txz' in it is a "
         "compressed file without a cheap way to its middle, which cannot be opened; decompress it once, "
         "or compress it with gzip or zstd"),
    case("zip", {"a.zip": b""}, "a.zip",
         "UnsupportedFormat: 'a.zip' is compressed by its name (.zip), and such a file has no cheap way to "
         "its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("lz4", {"a.jsonl.lz4": b""}, "a.jsonl.lz4",
         "UnsupportedFormat: 'a.jsonl.lz4' is compressed by its name (.lz4), and such a file has no cheap "
         "way to its middle; decompress it once, or compress it with gzip or zstd. Known suffixes: SUFFIXES"),
    case("parquet.gz", {"a.parquet.gz": PARQUET}, "a.parquet.gz",
         "UnsupportedFormat: 'a.parquet.gz' has the suffix of no known format; known suffixes are "
         "SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("parquet.gz in a folder", {"a.parquet.gz": PARQUET}, ".",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in SUFFIXES (names that "
         "start with '.' or '_' are skipped); name the files themselves, or use a glob"),
    case("arrow.zst", {"a.arrow.zst": ARROW}, "a.arrow.zst",
         "UnsupportedFormat: 'a.arrow.zst' has the suffix of no known format; known suffixes are SUFFIXES. "
         "Say what it is with format=, one of FORMATS"),
    case("tgz.gz", {"a.tgz.gz": b""}, "a.tgz.gz",
         "UnsupportedFormat: 'DIR/a.tgz.gz' cannot be decompressed as gzip at about byte 0, after 0 bytes "
         "of content: it has no byte, and even empty content is some bytes when compressed. Test it with "
         "`gzip -t DIR/a.tgz.gz` and get it again; what is before the damage can be kept with `gzip -dc "
         "DIR/a.tgz.gz > NEW`"),
    case("npy.gz", {"a.npy.gz": NPY}, "a.npy.gz",
         "UnsupportedFormat: 'a.npy.gz' has the suffix of no known format; known suffixes are SUFFIXES. "
         "Say what it is with format=, one of FORMATS"),
    case("tokens without a type", {"a.bin": b"\1\0"}, "a.bin",
         "InvalidArgument: 'DIR/a.bin' does not say of which type its tokens are: say it, and where "
         "documents end: sk.formats.Tokens(dtype='uint16', eos=50256) or the like"),
    case("tokens without a type in a folder", {"a.bin": b"\1\0"}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.bin' in it is a file "
         "of tokens or of other numbers, which cannot be opened; if it has tokens, open it as "
         "sk.open('tokens:PATH'), with format=sk.formats.Tokens(dtype=) where files do not say it"),
    case("an array in a folder", {"a.npy": NPY}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.npy' in it is a file "
         "of tokens or of other numbers, which cannot be opened; if it has tokens, open it as "
         "sk.open('tokens:PATH'), with format=sk.formats.Tokens(dtype=) where files do not say it"),
    case("samples of Forager without a type", of_forager, ".",
         "InvalidArgument: 'DIR/tokenized-samples/a-tokenized-samples.bin' has samples of Forager, which "
         "writes their type nowhere: say it, as sk.formats.Tokens(dtype='uint16'), which is what "
         "TokensDataset takes as token_dtype"),
    case("an index of Megatron", MEGATRON, "a.idx",
         "UnsupportedFormat: 'a.idx' is an index of other files, as of Megatron, which cannot be opened; "
         "open the .bin beside it. It has the suffix of no known format; known suffixes are SUFFIXES. Say "
         "what it is with format=, one of FORMATS"),
    case("a file beside datatrove", {"a.ds.index": b""}, "a.ds.index",
         "UnsupportedFormat: 'a.ds.index' is a file beside tokens of datatrove, which cannot be opened; "
         "open the .ds that it belongs to. It has the suffix of no known format; known suffixes are "
         "SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("npz", {"a.npz": b""}, "a.npz",
         "UnsupportedFormat: 'a.npz' is an archive of numpy, which cannot be opened; give one array of "
         "numpy.load(path) to sk.from_sequence. It has the suffix of no known format; known suffixes are "
         "SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("tfrecord", {"a.tfrecord": b""}, "a.tfrecord",
         "UnsupportedFormat: 'a.tfrecord' is a file of TFRecord or ArrayRecord, which cannot be opened "
         "yet; read it with tensorflow or array_record, and give the items to sk.from_iterable. It has the "
         "suffix of no known format; known suffixes are SUFFIXES. Say what it is with format=, one of "
         "FORMATS"),
    case("avro in a folder", {"a.avro": b""}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.avro' in it is a "
         "file of Avro, which cannot be opened yet; write it once as .jsonl or .parquet, which are opened"),
    case("orc", {"a.orc": b""}, "a.orc",
         "UnsupportedFormat: 'a.orc' is a file of ORC, which cannot be opened yet; write it once as "
         "Parquet, with pyarrow.orc and pyarrow.parquet. It has the suffix of no known format; known "
         "suffixes are SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("h5", {"a.h5": b""}, "a.h5",
         "UnsupportedFormat: 'a.h5' is arrays of HDF5 or Zarr, which cannot be opened yet; read it with "
         "h5py or zarr, and give that to sk.from_sequence. It has the suffix of no known format; known "
         "suffixes are SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("safetensors in a folder", {"a.safetensors": b""}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'a.safetensors' in it "
         "is a file of safetensors, which cannot be opened; if it has rows of tokens, name it: "
         "sk.open('PATH.safetensors'); else read it with safetensors.safe_open, and give that to "
         "sk.from_sequence"),
    case("wav", {"a.WAV": b""}, "a.WAV",
         "UnsupportedFormat: 'a.WAV' is a piece of audio, which cannot be opened yet; list the files with "
         "their facts in a .jsonl or .parquet file, open that, and read the files in ds.map. It has the "
         "suffix of no known format; known suffixes are SUFFIXES. Say what it is with format=, one of "
         "FORMATS"),
    case("png in a folder", {"x/a.png": b""}, ".",
         "UnsupportedFormat: the folder 'DIR' has no data file that can be opened; 'x/a.png' in it is an "
         "image or a video, which cannot be opened yet; list the files with their facts in a .jsonl or "
         ".parquet file, open that, and read the files in ds.map"),
    case("md", {"a.md": b""}, "a.md",
         "UnsupportedFormat: 'a.md' is one document, and no records, which cannot be opened; list the "
         "files with their facts in a .jsonl or .parquet file, open that, and read the files in ds.map; "
         "format='text' opens the lines of such a file. It has the suffix of no known format; known "
         "suffixes are SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("xlsx", {"a.xlsx": b""}, "a.xlsx",
         "UnsupportedFormat: 'a.xlsx' is a spreadsheet, which cannot be opened; save it as .csv, which is "
         "opened. It has the suffix of no known format; known suffixes are SUFFIXES. Say what it is with "
         "format=, one of FORMATS"),
    case("sqlite", {"a.sqlite": b""}, "a.sqlite",
         "UnsupportedFormat: 'a.sqlite' is a database, which cannot be opened; write it once as Parquet, "
         "which is opened. It has the suffix of no known format; known suffixes are SUFFIXES. Say what it "
         "is with format=, one of FORMATS"),
    case("pickle", {"a.pkl": b""}, "a.pkl",
         "UnsupportedFormat: 'a.pkl' is a pickle, which could run any code, which cannot be opened; load "
         "it where you trust it, and write its records as .jsonl or .parquet. It has the suffix of no "
         "known format; known suffixes are SUFFIXES. Say what it is with format=, one of FORMATS"),
    case("lance", {"a.lance": b""}, "a.lance",
         "UnsupportedFormat: 'a.lance' is a file of Lance, which cannot be opened yet; write it once as "
         "Parquet, which is opened. It has the suffix of no known format; known suffixes are SUFFIXES. Say "
         "what it is with format=, one of FORMATS"),
    case("a shard of MDS alone, compressed", {"a.mds.zstd": b""}, "a.mds.zstd",
         "UnsupportedFormat: 'a.mds.zstd' is a shard of MosaicML Streaming (MDS), which cannot be opened; "
         "if it has tokens and is not compressed, open the folder of its index.json; else read it with "
         "streaming.StreamingDataset, and give that to sk.from_sequence. It has the suffix of no known "
         "format; known suffixes are SUFFIXES. Say what it is with format=, one of FORMATS"),
]  # fmt: skip

HEADS = [
    case("a pointer as lines", {"a.jsonl": POINTER}, "a.jsonl",
         "UnsupportedFormat: 'DIR/a.jsonl' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as text", {"a.txt": POINTER}, ".",
         "UnsupportedFormat: 'DIR/a.txt' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as csv", {"a.csv": POINTER}, "a.csv",
         "UnsupportedFormat: 'DIR/a.csv' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as Parquet", {"a.parquet": POINTER}, "a.parquet",
         "UnsupportedFormat: 'DIR/a.parquet' is a pointer of Git LFS, and not the data: fetch the data "
         "with `git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as Arrow", {"a.arrow": POINTER}, "a.arrow",
         "UnsupportedFormat: 'DIR/a.arrow' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as tar", {"a.tar": POINTER}, "a.tar",
         "UnsupportedFormat: 'DIR/a.tar' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as an archive of Kaldi", {"a.ark": POINTER}, "a.ark",
         "UnsupportedFormat: 'DIR/a.ark' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from"),
    case("a pointer as tokens", {"a.bin": POINTER}, "a.bin",
         "UnsupportedFormat: 'DIR/a.bin' is a pointer of Git LFS, and not the data: fetch the data with "
         "`git lfs pull` in the repository, or download the file from where the repository came from",
         format=sk.formats.Tokens(dtype="uint16")),
    case("Parquet as lines", {"a.jsonl": PARQUET}, "a.jsonl",
         "UnsupportedFormat: 'DIR/a.jsonl' is a file of Parquet, not lines of text; its name misleads"),
    case("lines as Parquet", {"a.parquet": LINE}, "a.parquet",
         "UnsupportedFormat: DIR/a.parquet: 9 bytes are too few for a Parquet file: copy it again"),
    case("lines as Arrow", {"a.arrow": LINE}, "a.arrow",
         "UnsupportedFormat: 'DIR/a.arrow' cannot be read as a file or a stream of Arrow: a head of "
         "576791163 bytes is said to begin at byte 4, and the file has 9. It has 9 bytes; if it should be "
         "Arrow, it was damaged or cut off: write it or copy it again"),
    case("an empty file as Parquet", {"a.parquet": b""}, "a.parquet",
         "UnsupportedFormat: DIR/a.parquet: 0 bytes are too few for a Parquet file: copy it again"),
    case("an empty file as tar", {"a.tar": b""}, "a.tar",
         "UnsupportedFormat: 'DIR/a.tar' has no byte, and a tar file without members has 1,024 zeros: "
         "write it again"),
    case("lines as tar", {"a.tar": LINE * 99}, "a.tar",
         'UnsupportedFormat: DIR/a.tar: byte 0: no header stands there: its checksum is b\': 1}\\n{"a\'; '
         "no good member is before it. The archive is damaged, or was cut: put a whole copy of it there"),
    case("lines as gzip", {"a.jsonl.gz": LINE}, "a.jsonl.gz",
         "UnsupportedFormat: 'DIR/a.jsonl.gz' is not compressed by gzip, as its name says: it begins with "
         "b'{\"a\": 1}\\n'. If it is damaged, get it again; if it is not compressed, rename it to "
         "'DIR/a.jsonl'"),
]  # fmt: skip

FOLDERS = [
    case("two formats", {"a.jsonl": LINE, "b.txt": TEXT}, ".",
         "UnsupportedFormat: a dataset has one format, and here there are 2: jsonl (a.jsonl), text "
         "(b.txt). Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
         "format="),
    case("a table and a text in a list", {"a.txt": TEXT, "b.parquet": PARQUET}, ["a.txt", "b.parquet"],
         "UnsupportedFormat: a dataset has one format, and here there are 2: text (a.txt), parquet "
         "(b.parquet). Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
         "format="),
    case("a script and an archive", {"a.ark": ARK, "b.scp": SCP}, ".",
         "UnsupportedFormat: a dataset has one format, and here there are 2: ark (a.ark), scp (b.scp). "
         "Scripts name entries of archives, so open one kind: 'scp:PATH' or 'ark:PATH'"),
    case("a file beside its copy", {"a.jsonl": LINE, "a.jsonl.gz": b""}, ".",
         "UnsupportedFormat: 'a.jsonl' and 'a.jsonl.gz' in 'DIR' look like the same data twice, compressed "
         "and not: keep one of them there, or say which with a glob or a list"),
    case("two compressed copies", {"a.txt.gz": b"", "a.txt.zst": b""}, "*",
         "UnsupportedFormat: 'a.txt.zst' and 'a.txt.gz' in 'DIR' look like the same data twice, compressed "
         "and not: keep one of them there, or say which with a glob or a list"),
    case("an empty folder", {"x/": b""}, "x",
         "DataNotFound: the folder 'DIR/x' has no data file: none below it ends in SUFFIXES (names that "
         "start with '.' or '_' are skipped); name the files themselves, or use a glob"),
    case("hidden files alone", {"x/.a.jsonl": LINE, "x/_b.jsonl": LINE}, "x",
         "DataNotFound: the folder 'DIR/x' has no data file: none below it ends in SUFFIXES (names that "
         "start with '.' or '_' are skipped); name the files themselves, or use a glob"),
    case("a number of files that lacks one", {"a-0-of-2.jsonl": LINE}, ".",
         "DataNotFound: the folder 'DIR' has no 'a-1-of-2.jsonl', and 'a-0-of-2.jsonl' says that 2 files "
         "belong together; 1 are there. Copy the rest, or name those to read in a list"),
    case("a glob of a number that lacks one", {"a-1-of-2.jsonl": LINE}, "*.jsonl",
         "DataNotFound: the folder 'DIR' has no 'a-0-of-2.jsonl', and 'a-1-of-2.jsonl' says that 2 files "
         "belong together; 1 are there. Copy the rest, or name those to read in a list"),
    case("a Shar that lacks a shard", {**shar("0"), "cuts.1.jsonl": LINE}, ".",
         "UnsupportedFormat: the field 'text' in 'DIR' lacks the shards '1' of the cuts; each shard needs "
         "a file of every field. Put the files there, or open the fields that are whole: sk.open({'cuts': "
         "'DIR/cuts.*', ...})"),
    case("a Shar of two kinds", {**shar("0"), "text.0.tar": TAR}, ".",
         "UnsupportedFormat: 'text.0.jsonl' and 'text.0.tar' in 'DIR' are both the field 'text' of one "
         "shard: keep one of them there, or name the files as sk.open({'cuts': ..., 'text': ...})"),
    case("a list of a folder of a Shar", shar("0"), ["."],
         "UnsupportedFormat: 'DIR' is a folder of Lhotse Shar, which cannot be opened: open its cuts, with "
         "all fields, as sk.open('shar:DIR'); to open some of its files for themselves, name them by a "
         "glob or a list"),
    case("a glob of all of a Shar", shar("0"), "*",
         "UnsupportedFormat: 'DIR' is a folder of Lhotse Shar, which cannot be opened: open its cuts, with "
         "all fields, as sk.open('shar:DIR'); to open some of its files for themselves, name them by a "
         "glob or a list"),
    case("a Shar below", {f"x/{name}": content for name, content in shar("0").items()}, ".",
         "UnsupportedFormat: 'DIR/x' is a folder of Lhotse Shar, which cannot be opened: open its cuts, "
         "with all fields, as sk.open('shar:DIR/x'); to open some of its files for themselves, name them "
         "by a glob or a list"),
    case("a Shar as tar", shar("0"), ".",
         "UnsupportedFormat: DIR/text.0.jsonl: byte 0: 31 bytes, where a header has 512: the file ends "
         "there; no good member is before it. The archive is damaged, or was cut: put a whole copy of it "
         "there", format="tar"),
    case("a Shar as Parquet", shar("0"), ".",
         "UnsupportedFormat: DIR/text.0.jsonl: expected b'PAR1' at byte 27, the end of a Parquet file; "
         'found b\'i"}\\n\'. It is of another format, cut off, or has more behind it: copy it again',
         format="parquet"),
    case("a Shar as tokens", shar("0"), ".",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in .bin, .ds, .npy, "
         ".safetensors (names that start with '.' or '_' are skipped); name the files themselves, or use a "
         "glob", format="tokens"),
    case("a Shar with one shard more", {**shar("0"), "text.1.jsonl": LINE}, ".",
         "UnsupportedFormat: the field 'text' in 'DIR' has the shards '1', which the cuts lack; each shard "
         "needs a file of every field. Put the files there, or open the fields that are whole: "
         "sk.open({'cuts': 'DIR/cuts.*', ...})"),
    case("a token store as lines", {"tokens.json": b"{}", "part-0.facts": b""}, ".",
         "DataNotFound: the folder 'DIR' has no data file: none below it ends in SUFFIXES (names that start "
         "with '.' or '_' are skipped); name the files themselves, or use a glob", format="jsonl"),
    case("a folder as a Shar", {"a.jsonl": LINE}, ".",
         "InvalidArgument: format must be one of FORMATS; got 'shar': the source itself says it, "
         "as 'shar:...', or its folder does", format="shar"),
    case("a file as a Shar", {"a.jsonl": LINE}, "a.jsonl",
         "InvalidArgument: format must be one of FORMATS; got 'shar': the source itself says it, "
         "as 'shar:...', or its folder does", format="shar"),
    case("Energon", energon("train", "val"), ".",
         "UnsupportedFormat: 'DIR' is a dataset of Energon, which cannot be opened: open a split of it as "
         "megatron.energon does, sk.open('energon:DIR:SPLIT'); there is 'train', 'val'; to open some of "
         "its files for themselves, name them by a glob or a list"),
    case("wids without tar", {"index.json": wids(("a.tar", 1))}, ".",
         "UnsupportedFormat: 'DIR/index.json' is a list of shards of wids: open them as "
         "'wids:DIR/index.json'"),
    case("a list of wids as a file", {"index.json": wids(("a.tar", 1)), "a.tar": TAR}, "index.json",
         "UnsupportedFormat: 'DIR/index.json' is a list of shards of wids: open them as "
         "'wids:DIR/index.json'"),
    case("Delta", {"_delta_log/0.json": b"{}", "a.parquet": PARQUET}, ".", OF_DELTA),
    case("a glob of all of Delta", {"_delta_log/0.json": b"{}", "a.parquet": PARQUET}, "*", OF_DELTA),
    case("Iceberg", {"metadata/v1.metadata.json": b"{}", "data/a.parquet": PARQUET}, ".", OF_ICEBERG),
    case("Hudi", {".hoodie/x": b"", "a.parquet": PARQUET}, ".", OF_HUDI),
    case("a glob in a Hudi table", HUDI, "day=1/*.parquet", OF_HUDI),
    case("a glob in a Delta table", DELTA, "day=1/*.parquet", OF_DELTA),
    case("a glob in an Iceberg table", ICEBERG, "data/*.parquet", OF_ICEBERG),
    case("a glob of stars in a Delta table", DELTA, "**/*.parquet", OF_DELTA),
    case("a folder of a Delta table", DELTA, "day=1", OF_DELTA),
    case("a glob of all of a folder of a Delta table", DELTA, "day=1/*", OF_DELTA),
    case("the data of an Iceberg table", ICEBERG, "data", OF_ICEBERG),
    case("a glob of all data of an Iceberg table", ICEBERG, "data/*", OF_ICEBERG),
    case("a glob of stars in a Hudi table", HUDI, "**/*.parquet", OF_HUDI),
    case("Lance", {"t.lance/_versions/1.manifest": b"", "t.lance/data/0.lance": b""}, "t.lance",
         "UnsupportedFormat: 'DIR/t.lance' is a table of Lance, which cannot be opened yet: write it once "
         "as Parquet; lance.dataset('DIR/t.lance').to_batches() gives the rows"),
    case("Zarr", {"zarr.json": b"{}", "c/0": b""}, ".",
         "UnsupportedFormat: 'DIR' is arrays of Zarr, which cannot be opened: read it with "
         "zarr.open('DIR'), and give that to sk.from_sequence(..., version=1); to open some of its files "
         "for themselves, name them by a glob or a list"),
    case("TFDS", {"features.json": b"{}", "dataset_info.json": b"{}"}, ".",
         "UnsupportedFormat: 'DIR' is a dataset of TensorFlow Datasets, which cannot be opened: read it "
         "with tensorflow_datasets.data_source, and give that to sk.from_sequence(..., version=1); to open "
         "some of its files for themselves, name them by a glob or a list"),
    case("MDS", {"index.json": MDS, "shard.00000.mds": b""}, ".",
         "UnsupportedFormat: 'DIR' is a dataset of MosaicML Streaming (MDS), which cannot be opened yet: "
         "read it with streaming.StreamingDataset(local='DIR', batch_size=1), and give that to "
         "sk.from_sequence(..., version=1); to open some of its files for themselves, name them by a glob "
         "or a list"),
    case("LitData", {"index.json": LITDATA, "chunk-0-0.bin": b""}, ".",
         "UnsupportedFormat: 'DIR' is a dataset of LitData, which cannot be opened yet: read it with "
         "litdata.StreamingDataset('DIR'), and give that to sk.from_sequence(..., version=1); to open some "
         "of its files for themselves, name them by a glob or a list"),
    case("a list of tokens of LitData", of_litdata, ["DIR"],
         "UnsupportedFormat: 'DIR' is a dataset of tokens, of LitData, MDS or Forager, which cannot be "
         "opened: open it alone, as sk.open('DIR'); to open some of its files for themselves, name them by "
         "a glob or a list"),
    case("a list of tokens of Forager", of_forager, ["DIR"],
         "UnsupportedFormat: 'DIR' is a dataset of tokens, of LitData, MDS or Forager, which cannot be "
         "opened: open it alone, as sk.open('DIR')"),
    case("the index of Forager", of_lines_of_forager, "index",
         "UnsupportedFormat: 'DIR/index' is the index of Forager, and no data, which cannot be opened: "
         "open the folder with the files that it names in file_location.txt"),
    case("a list of a folder of Megatron", MEGATRON, ["DIR"],
         "UnsupportedFormat: 'DIR' is an indexed dataset of Megatron or fairseq, which cannot be opened: "
         "open its tokens as sk.open('megatron:DIR')"),
    case("Megatron beside lines", {**MEGATRON, "a.jsonl": LINE}, ".",
         "UnsupportedFormat: 'DIR' is an indexed dataset of Megatron or fairseq, which cannot be opened: "
         "open its tokens as sk.open('megatron:DIR'); to open some of its files for themselves, name them "
         "by a glob or a list"),
    case("a data directory of Kaldi", {**KALDI, "a.txt": TEXT}, ".",
         "UnsupportedFormat: 'DIR' is a data directory of Kaldi, which cannot be opened: open its "
         "utterances, with all tables, as sk.open('kaldi:DIR'); to open some of its files for themselves, "
         "name them by a glob or a list"),
    case("a DatasetDict that was saved", DICT, ".",
         "UnsupportedFormat: 'DIR' has the splits of a DatasetDict, 'train': open one of them, as "
         "'DIR/train'"),
    case("a DatasetDict with its splits", TWO_LEVELS, ".",
         "UnsupportedFormat: 'DIR' has the splits of a DatasetDict, 'train': open one of them, as "
         "'DIR/train'"),
    case("a saved dataset that lacks a file", {**SAVED, "state.json": LACKING}, ".",
         "DataNotFound: 'DIR/state.json' names 'b.arrow', which is not in that folder: copy it again"),
    case("two splits that a builder wrote", BUILT, ".",
         "UnsupportedFormat: 'DIR' has several splits, 'train', 'test': open one of them, with "
         "'DIR/*-train*.arrow', 'DIR/*-test*.arrow'"),
    case("a token store that is not finished", {"part-0.bin": b"", "part-0.facts": b""}, ".",
         "DataNotFound: 'DIR' is a token store whose writing was not finished: it has no 'tokens.json', "
         "which is written last. The same call of sk.tokenize or write_tokens goes on with it"),
    case("a damaged token store", {"tokens.json": b"{}"}, ".",
         "CorruptState: 'DIR/tokens.json', the document of a token store, cannot be read (..."),
]  # fmt: skip

REFUSED_FILES: dict[str, list[Case]] = {
    "refused suffixes": SUFFIXES,
    "refused contents": HEADS,
    "refused folders": FOLDERS,
}
