"""``seekable view``: web pages that show data in the order in which it is trained on."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from typing import Annotated, Any

import typer

from seekable.cli.shared_options import DataOptions, RunOptions, Shown, argument, examples, option
from seekable.errors import InvalidArgument

EPILOG = examples(
    "view corpus/                                  data: filter, sort, search, statistics",
    "view checkpoints/ --log train.jsonl           a run: its steps, mixture, states and losses",
    "view web=web/*.jsonl train=train:make_loader  several, with names",
    "view a=run-1/ b=run-2/ --log a=a.jsonl --log b=b.jsonl   losses of two runs on one chart",
    "view corpus/ --open 'row 1,234,567'",
)

_SAMPLE = 1000


def view(  # noqa: PLR0913 - an argument for each of its own options
    targets: Annotated[
        list[str] | None,
        argument(
            "TARGET",
            "PATH, NAME=PATH, module:function that returns a Dataset, a Stream or a Loader, or a "
            "folder of states.",
        ),
    ] = None,
    *,
    go_to: Annotated[
        str | None, option("--open", "PLACE", "Begin here: 'row 5', 'step 10 rank 3', 'part-0.jsonl:5'.")
    ] = None,
    log: Annotated[
        list[str] | None,
        option(
            "--log",
            "[NAME=]FILE[:STEP,LOSS]",
            "Losses of a run, JSONL or CSV; of several runs with its name, several times.",
        ),
    ] = None,
    key: Annotated[str | None, option("--key", "NAME", "The field that is the key of a record.")] = None,
    text_key: Annotated[str | None, option("--text-key", "NAME", "The field that counts as text.")] = None,
    tokenizer: Annotated[
        str | None, option("--tokenizer", "FILE", "Decode token ids with this file.")
    ] = None,
    media_root: Annotated[
        list[str] | None,
        option(
            "--media-root", "FOLDER", "Files that records name are read below it; may be given several times."
        ),
    ] = None,
    run: RunOptions,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="The port, or the next free one.", min=0, max=65535)
    ] = 7335,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; there is no TLS.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        option(
            "--allow-host", "NAME", "A name of this machine, besides localhost; may be given several times."
        ),
    ] = None,
    frame_from: Annotated[
        list[str] | None,
        option(
            "--frame-from", "ORIGIN", "Its pages may show the viewer in a frame; may be given several times."
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=0, help="Rows of a sample; 0 for none unless asked.")
    ] = _SAMPLE,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Show data, pipelines and saved states in a browser.

    The pages are served on this machine alone. The link is printed; it holds a secret that is new each run,
    unless SEEKABLE_VIEW_TOKEN says it. Ctrl-C ends the viewer. Nothing is written but the index that any
    command would write. From another machine: ssh -L 7335:127.0.0.1:7335 HOST.
    """
    from seekable.cli.data_argument import index_of
    from seekable.cli.view_targets import opened_targets, place_of
    from seekable.viewer.media import media_roots
    from seekable.viewer.viewer import check_installed

    check_installed("seekable view")
    from seekable.viewer.server import Server

    _check_host(host, allow_host)
    pages: dict[str, Any] = {
        "text_key": text_key,
        "sample": sample or _SAMPLE,
        "scans": sample > 0,
        "media": media_roots(media_root or []),
        "index_dir": index_of(data.index).folder,
        "tokenizer": tokenizer,
    }
    opened = opened_targets(targets or [], run, data, shown, key=key, logs=log or [], pages=pages)
    token = os.environ.get("SEEKABLE_VIEW_TOKEN")
    server = Server(
        opened, port=port, host=host, hosts=allow_host or (), frames=frame_from or (), token=token
    )
    # The server ends by itself on Ctrl-C, and then raises the interrupt again.
    with suppress(KeyboardInterrupt), ExitStack() as files:
        _announce(
            server, place_of(go_to), files, as_json=shown.as_json, quiet=shown.quiet, browser=not no_browser
        )
        server.run()


def _check_host(host: str, allowed: list[str] | None) -> None:
    """Refuse to listen for other machines unless their name for this one is given.

    Raises:
        InvalidArgument: it is not.
    """
    if host in {"127.0.0.1", "localhost", "::1"}:
        return
    if not allowed:
        raise InvalidArgument(
            f"--host {host} lets other machines ask, and there is no TLS: say with --allow-host by which "
            f"name they do, or leave it out and use ssh -L 7335:127.0.0.1:7335"
        )
    typer.echo(f"seekable: listening on {host} without TLS: whoever sees the link sees the data", err=True)


def _announce(
    server: Any, place: str, files: ExitStack, *, as_json: bool, quiet: bool, browser: bool
) -> None:
    """Print the link, and open it in a browser of this machine, by a file that is removed with ``files``."""
    import webbrowser

    from seekable.cli.output import write_document, write_line
    from seekable.viewer.server import redirect_page

    url = server.url + place
    if as_json:
        write_document({"url": url, "port": server.port})
    else:
        write_line(url)
    sys.stdout.flush()
    if os.environ.get("SSH_CONNECTION"):
        if not quiet:
            forward = f"ssh -L {server.port}:127.0.0.1:{server.port} {os.uname().nodename}"
            typer.echo(f"seekable: on your machine: {forward}", err=True)
    elif browser and not as_json and sys.stdout.isatty():
        webbrowser.open(files.enter_context(redirect_page(url)))
