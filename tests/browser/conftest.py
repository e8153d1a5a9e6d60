# SPDX-License-Identifier: MIT
"""A headless Chromium for the tests of the HTML report; without one they are skipped."""

import shutil
import time

import pytest


class Page:
    """A report in a browser, by what a person sees of it."""

    LEFT, RIGHT, BOTTOM = 72, 10, 26  # margins of the charts in a wide window

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, width=1440, height=1200, dark=False):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.driver.get(path.as_uri())
        self.wait(lambda: self.driver.execute_script("return document.documentElement.dataset.ready"))
        self.settle()
        return self

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.02)

    def settle(self):
        """Wait until what was asked of the page is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        )

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def text(self, selector):
        found = self.all(selector)
        return found[0].text if found else ""

    def click(self, text):
        """Click the button with this text."""
        for button in self.all("button"):
            if button.text == text:
                button.click()
                self.settle()
                return
        raise AssertionError(f"no button {text!r}")

    def key(self, keys, selector=".charts .over"):
        self.all(selector)[0].send_keys(keys)
        self.settle()

    def search(self, text):
        field = self.all(".search input")[0]
        field.clear()
        if text:
            field.send_keys(text)
        else:
            self.driver.execute_script("arguments[0].dispatchEvent(new Event('input'))", field)
        self.settle()

    def point_at(self, share, height_share, chart=0, click=False):
        """Move the pointer over a chart: shares of the plot's width, and of its height from below."""
        from selenium.webdriver.common.action_chains import ActionChains

        area = [c for c in self.all(".charts .surface .over")][chart]
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
        width, height = area.size["width"], area.size["height"]
        x = self.LEFT + (width - self.LEFT - self.RIGHT) * share
        top = 40 if chart == 0 else 6
        y = height - self.BOTTOM - (height - self.BOTTOM - top) * height_share
        action = ActionChains(self.driver).move_to_element_with_offset(
            area, round(x - width / 2), round(y - height / 2)
        )
        if click:
            action.click()
        action.perform()
        self.settle()
        return self.text(".tip")

    def wheel(self, share, steps):
        """Turn the wheel over the timeline; negative steps zoom in."""
        area = self.all(".charts .surface .over")[0]
        self.driver.execute_script(
            """const box = arguments[0].getBoundingClientRect();
               const x = box.left + arguments[3] + (box.width - arguments[3] - arguments[4]) * arguments[1];
               for (let i = 0; i < Math.abs(arguments[2]); i++) {
                   arguments[0].dispatchEvent(new WheelEvent("wheel", {deltaY: 120 * Math.sign(arguments[2]),
                       clientX: x, clientY: box.top + 100, bubbles: true, cancelable: true}));
               }""",
            area, share, steps, self.LEFT, self.RIGHT,
        )
        self.settle()

    def check_console(self):
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        assert messages == []


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("chromium or chromedriver is not installed (Debian: chromium, chromium-driver)")
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = selenium.Chrome(options=options, service=selenium.ChromeService(chromedriver))
    yield browser
    browser.quit()


@pytest.fixture
def page(driver):
    yield Page(driver)
    driver.get("about:blank")
    driver.get_log("browser")


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Folder for reports that several tests look at."""
    return tmp_path_factory.mktemp("reports")
