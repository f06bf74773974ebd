"""The input and output of Kaldi: tables, and the extended filenames and specifiers that name them.

An *rxfilename* names bytes to read, and a *wxfilename* names where bytes go: a file, an offset into a file, a
command with a pipe, a standard stream. A *rspecifier* and a *wspecifier* name a whole table: ``ark:`` or
``scp:``, options, and extended filenames. No command is run unless the caller says ``pipes="allow"``.
"""

from __future__ import annotations

from seekable.kaldi.files.filenames import classify_rxfilename, classify_wxfilename, split_offset, split_range
from seekable.kaldi.files.opening import open_rx, open_wx
from seekable.kaldi.files.rx_file import RxFile
from seekable.kaldi.files.specifiers import Rspecifier, Wspecifier, parse_rspecifier, parse_wspecifier
from seekable.kaldi.files.wx_file import WxFile
from seekable.kaldi.tables.script import ScriptEntry, iter_script, read_script

__all__ = [
    "Rspecifier",
    "RxFile",
    "ScriptEntry",
    "Wspecifier",
    "WxFile",
    "classify_rxfilename",
    "classify_wxfilename",
    "iter_script",
    "open_rx",
    "open_wx",
    "parse_rspecifier",
    "parse_wspecifier",
    "read_script",
    "split_offset",
    "split_range",
]
