"""Opens HTML reports in a real browser, and compares them with their JSON reports.

    python3 ci/page/check.py [--pictures FOLDER] REPORT.json REPORT.html ...

Everything that a page should say is computed here anew from the JSON. Ends with 1 when something is wrong.
"""

import json
import os
import signal
import sys

from browser import Browser
from appearance import Appearance
from page import BOXES


class Report(Appearance):
    def all(self, pictures):
        self.is_trusted()
        self.browser.console()
        for scheme in ("light", "dark"):
            self.load(prefers_color_scheme=scheme)
            self.quiet(f"{scheme}, on a wide screen")
            self.fits(1100)
            self.contrasts(scheme)
            self.shoot(pictures, f"{scheme}")
        for width in (1400, 2560):
            for scheme in ("light", "dark"):
                self.load(width, 1300, prefers_color_scheme=scheme)
                self.fits(width)
                self.contrasts(scheme)
                self.shoot(pictures, f"{scheme}-{width}")
            self.spread(width)
        self.attempt(self.zones)
        self.load(390, 844, phone=True, prefers_color_scheme="dark")
        self.fits(390)
        self.load(360, 740, phone=True, prefers_color_scheme="light")
        self.fits(360)
        self.stacks()
        self.traffic()
        self.shoot(pictures, "phone")
        self.load(320, 568, phone=True, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
        self.fits(320)
        self.contrasts("dark")
        self.equal(
            self.browser.run("return getComputedStyle(document.documentElement).scrollBehavior"),
            "auto",
            "scrolling where no motion is wanted",
        )
        # Without animations, so that a click does not miss an element that is still moving.
        self.load(prefers_reduced_motion="reduce")
        for check in (
            self.is_inert,
            self.labelled,
            self.answers,
            self.tables,
            self.traffic,
            self.sliding,
            self.what_if,
        ):
            self.attempt(check)
        # The chart is drawn again when the screen becomes narrow and wide again.
        before = self.browser.run(BOXES, "#traffic .area")["area requests"]["width"]
        self.browser.screen(600, 900)
        self.browser.run(
            "return new Promise((done) => { const wait = () =>"
            "innerWidth === 600 ? requestAnimationFrame(() => done()) : requestAnimationFrame(wait); wait(); })"
        )
        after = self.browser.run(BOXES, "#traffic .area")["area requests"]["width"]
        self.expect(300 < after < before - 200, f"the chart is {after} wide after {before}, on a screen made narrow")
        self.quiet("after all was tried")
        self.printed()
        self.without_script()
        self.load()
        self.guarded()


def main(arguments):
    # If the check is stopped, the browser ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pictures = None
    if arguments[:1] == ["--pictures"]:
        pictures, arguments = arguments[1], arguments[2:]
        os.makedirs(pictures, exist_ok=True)
    failed = not arguments
    with Browser() as browser:
        for report, html in zip(arguments[::2], arguments[1::2], strict=True):
            with open(report, encoding="utf-8") as file:
                data = json.load(file)
            page = Report(browser, data, "file://" + os.path.abspath(html), os.path.splitext(os.path.basename(html))[0])
            page.attempt(page.all, pictures)
            size = os.path.getsize(html)
            print(f"{os.path.basename(html)}: {size:,} bytes, {page.made:,} expectations, {len(page.wrong)} not met")
            for wrong in page.wrong[:20]:
                print("  " + wrong)
            failed |= bool(page.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
