"""A plain splitter of lines: what scanners and indexes are compared with, too simple to be wrong."""

from __future__ import annotations

BOM = b"\xef\xbb\xbf"


def split(data: bytes, *, keep_blank: bool) -> list[int]:
    """Return where the lines of some bytes start."""
    at = len(BOM) if data.startswith(BOM) else 0
    starts = []
    for line in data[at:].split(b"\n"):
        if at < len(data) and (keep_blank or line.strip(b" \t\r")):
            starts.append(at)
        at += len(line) + 1
    return starts


def lines(data: bytes, *, keep_blank: bool) -> list[bytes]:
    """Return the lines of some bytes without their ends."""
    found = []
    for start in split(data, keep_blank=keep_blank):
        line, newline, _ = data[start:].partition(b"\n")
        found.append(line.removesuffix(b"\r") if newline else line)
    return found
