"""The JSON document of a comparison of files with their index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.viewer.facts.documents import json_safe

if TYPE_CHECKING:
    from seekable.index.integrity import VerificationProblem
    from seekable.index.verification import Verification

__all__ = ["verification_document"]


def verification_document(path: str, found: Verification, *, deep: bool, decode: bool) -> dict[str, Any]:
    """Return what a comparison of files with their index found, JSON-safe."""
    problems = [_problem_as_json(problem) for problem in found.problems]
    return {
        "path": json_safe(path),
        "good": not problems,
        "deep": deep,
        "decoded": decode,
        "files": found.files,
        "records": found.records,
        "bytes": found.bytes,
        "index_folders": [json_safe(folder) for folder in found.folders],
        **({"from_other_indexes": found.unread} if found.unread else {}),
        "problems": problems,
        "first_bad": problems[0] if problems else None,
    }


def _problem_as_json(problem: VerificationProblem) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "path": json_safe(problem.path),
        "message": json_safe(problem.message),
        "row": problem.row,
        "offset": problem.offset,
    }
