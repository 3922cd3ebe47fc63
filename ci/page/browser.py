"""A headless Chromium, driven over the WebDriver protocol with the standard library only."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--lang=en",
]


class Browser:
    """One browser with one page, as a context manager."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="page-browser-")
        # A separate process group, so that the browser ends with its driver.
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0", "--log-level=SEVERE"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
            env={**os.environ, "TMPDIR": self._folder, "HOME": self._folder, "TZ": "Asia/Kathmandu"},
        )
        self._session = ""
        try:
            self._base = f"http://127.0.0.1:{self._port()}"
            flags = FLAGS + [f"--user-data-dir={self._folder}/profile"]
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": {"args": flags},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self._session = "/session/" + made["sessionId"]
        except BaseException:
            self._end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self._session)
        finally:
            self._end()

    def _end(self):
        try:
            os.killpg(self._driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._driver.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _port(self):
        for line in self._driver.stdout:
            if "started successfully on port" in line:
                return int(line.rstrip().rstrip(".").split()[-1])
        raise RuntimeError("chromedriver ended before it displayed its port")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode(errors='replace')[:2000]}") from None

    def open(self, address):
        self._call("POST", self._session + "/url", {"url": address})

    def run(self, script, *arguments):
        """Runs the body of a function in the page, and returns its value."""
        return self._call("POST", self._session + "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        body = {"cmd": command, "params": parameters}
        return self._call("POST", self._session + "/goog/cdp/execute", body)

    def console(self):
        """The messages of the console since the last call."""
        return self._call("POST", self._session + "/se/log", {"type": "browser"})

    def find(self, selector):
        found = self._call("POST", self._session + "/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def click(self, selector):
        """Clicks on an element. Fails if another element covers it."""
        self._call("POST", f"{self._session}/element/{self.find(selector)}/click", {})

    def type(self, selector, keys):
        self._call("POST", f"{self._session}/element/{self.find(selector)}/value", {"text": keys})

    def screen(self, width, height, phone=False):
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def prefer(self, media="", **features):
        """Sets the emulated medium and media features; in their names, _ stands for -."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", media=media, features=listed)

    def scripts(self, on):
        self.devtools("Emulation.setScriptExecutionDisabled", value=not on)

    def shoot(self, path):
        """A screenshot of the whole page."""
        picture = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def print(self):
        """The printed page, as PDF."""
        return base64.b64decode(self.devtools("Page.printToPDF", printBackground=False)["data"])
