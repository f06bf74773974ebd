"""Bytes of local files: which files there are, mapped reads of them, atomic writes.

The lowest layer: it knows no format and no index, and imports nothing of ours but ``errors``.
"""
