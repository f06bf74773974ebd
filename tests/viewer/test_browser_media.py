"""Images and audio of records in a real browser: shown, played, wound on, or saved; never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seekable.viewer.server import Server

NEWS_OF_AUDIO = """async () => {
    const audio = document.querySelector("audio");
    const once = (name) => new Promise((done) => audio.addEventListener(name, done, {once: true}));
    const loaded = once("loadedmetadata");
    audio.preload = "metadata";
    audio.load();
    await loaded;
    const moved = once("seeked");
    audio.currentTime = 15;
    await moved;
    return [audio.duration, audio.currentTime];
}"""
WIDTHS = "[...document.querySelectorAll('main img')].map((image) => image.naturalWidth)"
LOADED = """Promise.all([...document.querySelectorAll('main img')].map((image) => {
    image.loading = "eager";
    return image.decode();
}))"""


def test_audio_seeks_and_images_are_shown(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "d/sounds/row/1")
    duration, at = page.evaluate(NEWS_OF_AUDIO)
    assert abs(duration - 20) < 0.1
    assert at == 15
    page.evaluate(LOADED)
    assert sorted(page.evaluate(WIDTHS)) == [32, 640, 640]  # the image, the waveform, and why there is none


def test_what_could_be_a_page_is_saved_and_not_run(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "d/sounds/row/1")
    with page.expect_download() as download:
        page.evaluate("document.querySelector('a[href*=\"at=page\"]').removeAttribute('download')")
        page.click("a[href*='at=page']")
    assert download.value.suggested_filename == "sounds-1-page.bin"
    assert page.evaluate("window.pwned") is None


def test_the_waveform_leads_to_its_numbers_and_is_saved_as_png(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "d/sounds/row/1")
    page.click("a.chart >> nth=0")
    assert page.locator("h1").inner_text().endswith("audio.bytes")
    with page.expect_download() as download:
        page.click("text=save PNG")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
