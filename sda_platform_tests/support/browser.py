"""A headless Chromium on the platform's UI, and what a person finds on its pages; skips where there is none."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The lineage page shortens the names of what it has to draw small.
_WIDE = (14_400, 7_200)
_TIMEOUT_MS = 180_000
# A picture is taken when the page has drawn what it loaded; a live page never stops loading.
_DRAWING_MS = 4_000


class Page:
    """One tab."""

    def __init__(self, tab: Any, url: str) -> None:
        self._tab, self._url = tab, url
        self._told: list[str] = []
        self.elsewhere: list[str] = []
        """What the page asked of another origin."""
        tab.on("dialog", self._dismiss)
        tab.on("request", self._requested)
        tab.set_default_timeout(_TIMEOUT_MS)

    def _dismiss(self, dialog: Any) -> None:
        self._told.append(dialog.message)
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def goto(self, path: str) -> None:
        """Open a page of the UI."""
        self._tab.goto(self._url + path, wait_until="domcontentloaded")

    def prefer(self, width: int, scheme: Literal["light", "dark"]) -> None:
        """Show pages from now on this wide, to a person who prefers light or dark ones."""
        self._tab.set_viewport_size({"width": width, "height": 900})
        self._tab.emulate_media(color_scheme=scheme)

    def sees(self, *texts: str) -> None:
        """Wait until all these texts are on the page; fails the test, with what is there, where one never comes."""
        for text in texts:
            try:
                self._tab.get_by_text(text).first.wait_for(state="attached")
            except Exception as error:
                told = f"{text!r} is not on {self._tab.url} ({type(error).__name__}):\n{self.text}"
                pytest.fail(told, pytrace=False)

    @property
    def text(self) -> str:
        """Everything on the page."""
        return str(self._tab.inner_text("body"))

    def type(self, label: str, text: str) -> None:
        """Fill in the field of this label."""
        self._tab.get_by_label(label).fill(text)

    def press(self, text: str) -> None:
        """Click on the first button with this text, and wait for the page that follows."""
        with self._tab.expect_navigation():
            self._tab.get_by_role("button", name=text).first.click()

    def run(self, script: str, argument: object = None) -> object:
        """Run a function of JavaScript on the page with an argument, and return its result."""
        return self._tab.evaluate(script, argument)

    def barriers(self) -> list[str]:
        """List the serious barriers to people with a disability that axe-core finds on the page."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self._tab).response["violations"]
        return [
            f"{each['id']}: {node['html'][:150]} ({node['failureSummary'][:200]})"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def loses(self, text: str) -> None:
        """Wait until this text is not on the page."""
        self._tab.get_by_text(text).first.wait_for(state="detached")

    def settle(self, drawing_ms: float = _DRAWING_MS) -> None:
        """Wait until it is drawn."""
        self._tab.wait_for_timeout(drawing_ms)

    def save(self, path: Path) -> None:
        """Write the visible part of the page as a PNG, once it is drawn."""
        self.settle()
        self._tab.screenshot(path=path)

    @property
    def dialogs(self) -> int:
        """How many dialogs lie over the page, or were opened by a script."""
        return len(self._told) + int(self._tab.locator("[role=dialog], .bp5-dialog, .bp4-dialog").count())


@contextmanager
def opened(
    url: str, viewport: tuple[int, int] = _WIDE, *arguments: str, login: tuple[str, str] | None = None
) -> Iterator[Page]:
    """A tab of this width and height in a browser of its own, with more ``arguments``, as on a first visit.

    ``login``: the name and the password that a person types in.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        pytest.skip("Playwright is not installed")
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        pytest.skip(f"none of {', '.join(_NAMES)} is installed")
    with sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(executable_path=executable, args=[*_ARGUMENTS, *arguments])
        except Error as error:
            pytest.skip(f"{executable} does not start: {error.message.splitlines()[0]}")
        try:
            typed: Any = {"username": login[0], "password": login[1]} if login else None
            size: Any = {"width": viewport[0], "height": viewport[1]}
            yield Page(chromium.new_page(viewport=size, http_credentials=typed), url)
        finally:
            chromium.close()
