"""The input and output of Kaldi: tables, the extended filenames and specifiers that name them, and holders.

An *rxfilename* names bytes to read, and a *wxfilename* names where bytes go: a file, an offset into a file, a
command with a pipe, a standard stream. A *rspecifier* and a *wspecifier* name a whole table: ``ark:`` or
``scp:``, options, and extended filenames. A *holder* reads and writes the objects of one type. No command is
run unless the caller says ``pipes="allow"``.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import public_names

if TYPE_CHECKING:
    from seekable.formats.kaldi.directory.text_tables import Problem
    from seekable.formats.kaldi.directory.validation import validate_directory
    from seekable.formats.kaldi.files.filenames import (
        classify_rxfilename,
        classify_wxfilename,
        split_offset,
        split_range,
    )
    from seekable.formats.kaldi.files.opening import open_rx, open_wx
    from seekable.formats.kaldi.files.specifiers import (
        Rspecifier,
        Wspecifier,
        parse_rspecifier,
        parse_wspecifier,
    )
    from seekable.formats.kaldi.files.streams import RxFile, WxFile
    from seekable.formats.kaldi.holders.compressed import CompressedMatrix, compress
    from seekable.formats.kaldi.holders.other_formats import HtkMatrix
    from seekable.formats.kaldi.holders.ranges import Range, parse_range
    from seekable.formats.kaldi.holders.registry import (
        Holder,
        SupportsRange,
        find_holder,
        holder_names,
        register_holder,
    )
    from seekable.formats.kaldi.holders.sparse import SparseMatrix, SparseVector
    from seekable.formats.kaldi.holders.wave import Wave, WaveInfo
    from seekable.formats.kaldi.objects.basic_types import (
        read_basic_type,
        read_integer_pairs,
        read_integer_vector,
        write_basic_type,
        write_integer_pairs,
        write_integer_vector,
    )
    from seekable.formats.kaldi.objects.cursor import Cursor, MemoryCursor, Output
    from seekable.formats.kaldi.objects.file_cursor import FileCursor
    from seekable.formats.kaldi.objects.tokens import (
        expect_pretty,
        expect_token,
        is_token,
        peek_token,
        read_header,
        read_token,
        write_header,
        write_pretty,
        write_token,
    )
    from seekable.formats.kaldi.script_lines import ScriptEntry, iter_script, read_script
    from seekable.formats.kaldi.tables.random_access import MappedReader, RandomAccessReader
    from seekable.formats.kaldi.tables.repair import Repair, repair
    from seekable.formats.kaldi.tables.sequential import SequentialReader
    from seekable.formats.kaldi.tables.single import read, write
    from seekable.formats.kaldi.tables.writer import Writer

__all__ = [
    "CompressedMatrix",
    "Cursor",
    "FileCursor",
    "Holder",
    "HtkMatrix",
    "MappedReader",
    "MemoryCursor",
    "Output",
    "Problem",
    "RandomAccessReader",
    "Range",
    "Repair",
    "Rspecifier",
    "RxFile",
    "ScriptEntry",
    "SequentialReader",
    "SparseMatrix",
    "SparseVector",
    "SupportsRange",
    "Wave",
    "WaveInfo",
    "Writer",
    "Wspecifier",
    "WxFile",
    "classify_rxfilename",
    "classify_wxfilename",
    "compress",
    "expect_pretty",
    "expect_token",
    "find_holder",
    "holder_names",
    "is_token",
    "iter_script",
    "open_rx",
    "open_wx",
    "parse_range",
    "parse_rspecifier",
    "parse_wspecifier",
    "peek_token",
    "read",
    "read_basic_type",
    "read_header",
    "read_integer_pairs",
    "read_integer_vector",
    "read_script",
    "read_token",
    "register_holder",
    "repair",
    "split_offset",
    "split_range",
    "validate_directory",
    "write",
    "write_basic_type",
    "write_header",
    "write_integer_pairs",
    "write_integer_vector",
    "write_pretty",
    "write_token",
]

_HOMES = {
    "CompressedMatrix": "holders.compressed",
    "Cursor": "objects.cursor",
    "FileCursor": "objects.file_cursor",
    "Holder": "holders.registry",
    "HtkMatrix": "holders.other_formats",
    "MappedReader": "tables.random_access",
    "MemoryCursor": "objects.cursor",
    "Output": "objects.cursor",
    "Problem": "directory.text_tables",
    "RandomAccessReader": "tables.random_access",
    "Range": "holders.ranges",
    "Repair": "tables.repair",
    "Rspecifier": "files.specifiers",
    "RxFile": "files.streams",
    "ScriptEntry": "script_lines",
    "SequentialReader": "tables.sequential",
    "SparseMatrix": "holders.sparse",
    "SparseVector": "holders.sparse",
    "SupportsRange": "holders.registry",
    "Wave": "holders.wave",
    "WaveInfo": "holders.wave",
    "Writer": "tables.writer",
    "Wspecifier": "files.specifiers",
    "WxFile": "files.streams",
    "classify_rxfilename": "files.filenames",
    "classify_wxfilename": "files.filenames",
    "compress": "holders.compressed",
    "expect_pretty": "objects.tokens",
    "expect_token": "objects.tokens",
    "find_holder": "holders.registry",
    "holder_names": "holders.registry",
    "is_token": "objects.tokens",
    "iter_script": "script_lines",
    "open_rx": "files.opening",
    "open_wx": "files.opening",
    "parse_range": "holders.ranges",
    "parse_rspecifier": "files.specifiers",
    "parse_wspecifier": "files.specifiers",
    "peek_token": "objects.tokens",
    "read": "tables.single",
    "read_basic_type": "objects.basic_types",
    "read_header": "objects.tokens",
    "read_integer_pairs": "objects.basic_types",
    "read_integer_vector": "objects.basic_types",
    "read_script": "script_lines",
    "read_token": "objects.tokens",
    "register_holder": "holders.registry",
    "repair": "tables.repair",
    "split_offset": "files.filenames",
    "split_range": "files.filenames",
    "validate_directory": "directory.validation",
    "write": "tables.single",
    "write_basic_type": "objects.basic_types",
    "write_header": "objects.tokens",
    "write_integer_pairs": "objects.basic_types",
    "write_integer_vector": "objects.basic_types",
    "write_pretty": "objects.tokens",
    "write_token": "objects.tokens",
}
"""The module of each public name, below ``seekable.formats.kaldi``."""

__getattr__ = public_names(__name__, _HOMES, below="seekable.formats.kaldi")


def __dir__() -> list[str]:
    """Return the list of the public names."""
    return __all__
