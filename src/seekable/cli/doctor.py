"""``seekable doctor``: checks whether this machine is set up for large data, and how a store answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seekable.cli.exits import ExitCode
from seekable.cli.shared_options import IndexOption, Shown, argument, examples

if TYPE_CHECKING:
    from seekable.cli.machine_checks import Finding

EPILOG = examples(
    "doctor",
    "doctor /data/corpus                and where its index is, or would go",
    "doctor s3://bucket/corpus          and how the store answers",
    "doctor --json | jq '.findings[] | select(.level != \"ok\")'",
)


def doctor(
    path: Annotated[str | None, argument("PATH", "Data to look at, too: a path or an address.")] = None,
    *,
    index: IndexOption = None,
    shown: Shown,
) -> None:
    """Check this machine, and say what to do.

    It checks versions, formats of other packages, limits, processes and the cache. Each finding is ok, warn
    (slower, or too little for large data) or bad (does not work). Nothing is written. The exit code is 1 if a
    finding is bad. With -q only findings that are not ok are printed.

    Of an address it also looks at the store: the kind of the credentials, the listing, a range, a range under
    a wrong etag, the latency, and the rate with 1, 8 and 32 requests at once. At most 20 MB are read.
    """
    from seekable.cli.machine_checks import (
        cache_findings,
        format_findings,
        limit_findings,
        process_findings,
        version_findings,
    )
    from seekable.cli.output import write_document
    from seekable.viewer.facts.json_documents import json_safe

    findings = [
        *version_findings(),
        *format_findings(),
        *limit_findings(),
        *process_findings(),
        *cache_findings(),
    ]
    if path is not None:
        from seekable.cli.data_argument import index_folder
        from seekable.cli.data_checks import data_findings

        findings += data_findings(path, index_dir=index_folder(index))
    worst = max(findings, key=lambda finding: ("ok", "warn", "bad").index(finding.level)).level
    if shown.as_json:
        listed = [
            {
                "group": finding.group,
                "name": finding.name,
                "level": finding.level,
                "value": json_safe(finding.value),
                "advice": json_safe(finding.advice),
            }
            for finding in findings
        ]
        write_document({"worst": worst, "findings": listed})
    else:
        _print([finding for finding in findings if not shown.quiet or finding.level != "ok"])
    if worst == "bad":
        raise typer.Exit(ExitCode.FAILURE)


def _print(findings: list[Finding]) -> None:
    from seekable.cli.output import write_line

    width = max((len(finding.name) for finding in findings), default=0)
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            write_line(group)
        write_line(f"  {finding.level:4}  {finding.name:{width}}  {finding.value}")
        if finding.advice:
            write_line(f"  {'':4}  {'':{width}}  -> {finding.advice}")
