"""Bytes of local files: listing, memory maps, ranges, compressed files, caches and atomic writes.

The lowest layer: it depends on no format and no index, and imports nothing of ours but ``errors``.
"""
