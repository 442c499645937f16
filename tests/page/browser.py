"""A headless Chromium that shows pages, and what is asked of it: pixels, keys, requests, violations of the policy."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chromium import FLAGS

CHROMIUM, DRIVER = "chromium", "chromedriver"
SECONDS = 20.0
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`), true);
window.problems = [];
window.addEventListener("error", (event) => window.problems.push(event.message));
window.addEventListener("unhandledrejection", (event) => window.problems.push(String(event.reason)));
"""


class Browser:
    """Chromium with the page of some data in it.

    Args:
        folder: For its profile and the pages.
        size: Of its window.
    """

    def __init__(self, folder: Path, size: tuple[int, int] = (1280, 900)) -> None:
        self._webdriver: Any = pytest.importorskip("selenium.webdriver")
        programs = [shutil.which(each) for each in (CHROMIUM, DRIVER)]
        if None in programs:
            pytest.skip("no chromium and chromedriver")
        self._folder = folder
        options = self._webdriver.ChromeOptions()
        options.binary_location = str(programs[0])
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        service = self._webdriver.ChromeService(
            executable_path=str(programs[1]), log_output=subprocess.DEVNULL
        )
        self.driver: Any = self._webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(SECONDS)
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def end(self) -> None:
        """End it."""
        self.driver.quit()

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call the browser's own protocol."""
        found: dict[str, Any] = self.driver.execute_cdp_cmd(method, arguments)
        return found

    def reset(self) -> None:
        """Go back to the size, colours and medium of the beginning."""
        self.call("Emulation.clearDeviceMetricsOverride")
        self.call("Emulation.setEmulatedMedia", media="", features=[])
        self.driver.get("about:blank")

    def show(self, page: bytes, name: str = "page.html") -> None:
        """Open a page from a file, and wait until it has read its data."""
        path = self._folder / name
        path.write_bytes(page)
        self.driver.get_log("performance")
        self.open(path.as_uri())

    def open(self, url: str) -> None:
        """Open a page, and wait until it has read its data."""
        self.driver.get(url)
        self.until("return document.getElementById('state').textContent !== 'Reading the data…'")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> Any:
        """Run a script until what it returns is true."""
        end = time.monotonic() + SECONDS
        while not (found := self.run(script, *arguments)):
            assert time.monotonic() < end, f"not within {SECONDS} s: {script}"
            time.sleep(0.02)
        return found

    def frame(self) -> None:
        """Wait until two frames were drawn."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")  # fmt: skip

    def text(self, selector: str) -> str:
        """Return the text of an element as it is shown."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def keys(self, *names: str) -> None:
        """Press keys where the focus is, such as `ArrowRight` or `a`."""
        keys = self._webdriver.Keys
        known = {"ArrowRight": keys.ARROW_RIGHT, "ArrowLeft": keys.ARROW_LEFT, "ArrowUp": keys.ARROW_UP, "ArrowDown": keys.ARROW_DOWN,
                 "Enter": keys.ENTER, "Escape": keys.ESCAPE, "Tab": keys.TAB, "Home": keys.HOME, "End": keys.END}  # fmt: skip
        actions = self._webdriver.ActionChains(self.driver)
        for name in names:
            actions.send_keys(known.get(name, name))
        actions.perform()

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse to a place of the window, and perhaps click."""
        actions = self._webdriver.ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        if click:
            actions.w3c_actions.pointer_action.click()
        actions.perform()

    def search(self, text: str) -> None:
        """Type into the search of the page, and wait until the tables follow."""
        self.run("const box = document.getElementById('filter-text'); box.value = arguments[0]; box.dispatchEvent(new InputEvent('input', { bubbles: true }))", text)  # fmt: skip
        time.sleep(0.3)

    def pixels(self, colour: str) -> int:
        """Return how many pixels of the timeline have the colour of a custom property."""
        return int(self.run("""
            const canvas = document.querySelector(".lanes canvas");
            const [r, g, b] = gitmemPage.colour(arguments[0]).match(/[\\d.]+/g).map(Number);
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let found = 0;
            for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found += 1;
            return found;""", colour))  # fmt: skip

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened, without the page's own and without data in addresses."""
        events = [json.loads(each["message"])["message"] for each in self.driver.get_log("performance")]
        urls = [
            str(each["params"]["request"]["url"])
            for each in events
            if each["method"] == "Network.requestWillBeSent"
        ]
        return [each for each in urls if not each.startswith("data:") and each != self.driver.current_url.partition("#")[0]]  # fmt: skip

    def wrong(self) -> list[str]:
        """Return the violations of the policy and the errors of scripts so far."""
        found: list[str] = self.run("return [...window.violations, ...window.problems]")
        return found


Walk = Callable[[Any], Any]


def each_string(value: Any, change: Walk) -> Any:
    """Return JSON with every string in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [each_string(each, change) for each in value]
    if isinstance(value, dict):
        return {key: each_string(each, change) for key, each in value.items()}
    return value
