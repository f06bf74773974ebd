"""Single keys in a real browser: what they do, and that they can be switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.viewer.identity import identity_of

if TYPE_CHECKING:
    from seekable.viewer.server import Server


def test_a_copied_link_has_the_fingerprint(page: Any, viewer: Server) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for address in ("d/corpus/row/3?view=file&is=00000000-3", "p/train/step/4"):
        page.goto(viewer.url + address)
        page.keyboard.press("c")
        page.wait_for_selector("text=Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        kind, name = address.split("/")[:2]
        identity = identity_of(viewer.opened, kind, name)
        mark = "&" if "?" in address else "?"
        assert copied == viewer.url + address.partition("&is")[0] + f"{mark}is={identity}"
        page.goto(copied)
        assert page.locator(".changed").count() == 0
