"""The texts of a command line that name tables or single objects."""

from __future__ import annotations

import re

from seekable.kaldi import classify_wxfilename, parse_wspecifier

__all__ = ["as_rspecifier", "is_on_stdout", "looks_like_a_table", "script_of_targets", "wxfilenames"]

_SPECIFIER = re.compile(r"([a-z]+[, ])*(ark|scp)([, ][a-z]*)*:")


def looks_like_a_table(text: str) -> bool:
    """Return True for a text that is meant as a specifier, also if one of its options is wrong.

    Example:
        >>> [looks_like_a_table(text) for text in ("ark,x:a", "data/a.ark", "s3://a", "sox a.scp -t wav - |")]
        [True, False, False, False]
    """
    return _SPECIFIER.match(text) is not None


def as_rspecifier(path: str) -> str:
    """Return the rspecifier of a table, also of a file that is named without one, by its suffix.

    Example:
        >>> as_rspecifier("ark,s:-"), as_rspecifier("feats.scp"), as_rspecifier("feats.1.ark")
        ('ark,s:-', 'scp:feats.scp', 'ark:feats.1.ark')
    """
    if looks_like_a_table(path):
        return path
    return f"scp:{path}" if path.lower().endswith(".scp") else f"ark:{path}"


def wxfilenames(wspecifier: str) -> list[str]:
    """Return the extended filenames of the archive and the script that are written; none with ``scp:``.

    Example:
        >>> wxfilenames("ark,scp:a.ark,a.scp"), wxfilenames("scp:targets.scp")
        (['a.ark', 'a.scp'], [])
    """
    specifier = parse_wspecifier(wspecifier)
    if specifier.archive_wxfilename is None:
        return []
    return [specifier.archive_wxfilename, *filter(None, [specifier.script_wxfilename])]


def script_of_targets(wspecifier: str) -> str:
    """Return the extended filename of the script that names the files to write, of ``scp:``.

    Example:
        >>> script_of_targets("scp:targets.scp")
        'targets.scp'
    """
    script = parse_wspecifier(wspecifier).script_wxfilename
    assert script is not None
    return script


def is_on_stdout(wspecifier: str) -> bool:
    """Return True if a table, or its script, is written to standard output.

    Example:
        >>> is_on_stdout("ark,t:-"), is_on_stdout("ark:a.ark")
        (True, False)
    """
    return any(classify_wxfilename(name) == "stdout" for name in wxfilenames(wspecifier))
