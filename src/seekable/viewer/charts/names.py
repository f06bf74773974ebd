"""Names that fit into the room beside a chart."""

from __future__ import annotations

from unicodedata import east_asian_width


def shortened(name: str, most: int, *, keeps_end: bool = False) -> str:
    """Return a name of at most so many letters, its beginning or its end; a wide letter counts as two.

    Example:
        >>> shortened("common-crawl", 8), shortened("common-crawl", 8, keeps_end=True), shortened("web", 8)
        ('common-…', '…n-crawl', 'web')
        >>> shortened("新聞記事", 6)
        '新聞…'
    """
    if len(name) <= most and _width(name) <= most:
        return name
    kept = name[-most:] if keeps_end else name[:most]
    while kept and _width(kept) >= most:
        kept = kept[1:] if keeps_end else kept[:-1]
    return f"…{kept}" if keeps_end else f"{kept}…"


def _width(name: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in name)
