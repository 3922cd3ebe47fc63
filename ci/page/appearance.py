"""Checks of a page that do not depend on its report: width, colours, labels, printing and security."""

import base64
import hashlib
import json
import re

from contents import Contents

# The contrast ratio, as WCAG defines it, of every text and of the lines of charts.
CONTRASTS = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
const found = [];
const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== 'hidden';
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (walker.currentNode.data.trim() === '' || !seen(element) || element.closest('script')) continue;
  const style = getComputedStyle(element);
  const colour = element.closest('svg') ? style.fill : style.color;
  found.push(['text', walker.currentNode.data.slice(0, 40), ratio(parse(colour).slice(0, 3), ground(element)), parseFloat(style.fontSize)]);
}
for (const element of document.querySelectorAll('.line, .area.denied, .rule, .dot, .cursor')) {
  const style = getComputedStyle(element);
  const colour = style.fill === 'none' || element.tagName === 'line' ? style.stroke : style.fill;
  found.push(['drawing', element.getAttribute('class'), ratio(parse(colour).slice(0, 3), ground(element)), 99]);
}
const [pale, red] = ['.area.requests', '.area.denied'].map((name) => parse(getComputedStyle(document.querySelector(name)).fill));
// Adjacent areas need half of that ratio.
found.push(['drawing', 'denied on requests', ratio(pale, red) * 2, 99]);
found.push(['ground', 'body', luminance(ground(document.body)), 99]);
return found;
"""


class Appearance(Contents):
    def is_trusted(self):
        """The page states the hash of its script, without which no browser runs the script."""
        with open(self.address.removeprefix("file://"), encoding="utf-8") as file:
            html = file.read()
        script = html[html.rindex("<script>") + len("<script>") : html.rindex("</script>")]
        digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.expect(f"script-src '{digest}';" in html, f"SCRIPT_HASH in cli/src/report/page/mod.rs must be {digest}")

    def is_inert(self):
        """Contents of the log are text only: they add no element, handler or title, and do not change the text direction."""
        counts = self.browser.run(
            "return ['script', 'img', 'iframe', 'style', 'svg', 'b b', 'form', '[onerror], [onclick], [onload]']"
            ".map((name) => document.querySelectorAll(name).length)"
        )
        plots = sum(
            1
            for wanted in (True, self.data["chosen"], any(tried["limits"] for tried in self.data["what_if"]))
            if wanted
        )
        self.equal(
            counts, [2, 0, 0, 1, plots, 0, 0, 0], "elements: script, img, iframe, style, svg, b in b, form, handlers"
        )
        carried = self.browser.run("return document.getElementById('data').textContent")
        self.equal(json.loads(carried), self.data, "the report that the page carries")
        shown = self.browser.run(
            "return [document.title, ...[...document.querySelectorAll('body *:not(script)')].flatMap((element) =>"
            "[...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data))].join(' ')"
        )
        bad = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", shown)
        self.equal(bad, [], "characters that turn or hide text")
        self.expect(self.browser.run("return document.documentElement.className") == "js", "the script has run")

    def labelled(self):
        """Every control has a name, every section a heading, and every chart a description. Headings skip no level."""
        nameless = self.browser.run(
            "return [...document.querySelectorAll('input, select, button, [role=slider], [role=img]')].filter((element) =>"
            "!(element.labels && element.labels.length) && !element.getAttribute('aria-label') &&"
            "!(element.tagName === 'BUTTON' && element.textContent.trim())).map((element) => element.outerHTML.slice(0, 80))"
        )
        self.equal(nameless, [], "controls without a name")
        levels = self.browser.run(
            "return [...document.querySelectorAll('h1, h2, h3')].map((heading) => heading.tagName)"
        )
        self.expect(levels[0] == "H1" and set(levels[1:]) == {"H2"}, f"headings: {levels}")
        sections = self.browser.run(
            "return [...document.querySelectorAll('section')].every((each) => document.getElementById(each.getAttribute('aria-labelledby')))"
        )
        self.expect(sections, "a section without its heading")
        ids = self.browser.run("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
        self.equal(len(ids), len(set(ids)), "ids, each once")
        self.equal(self.browser.run("return document.documentElement.lang"), "en", "the language")

    def fits(self, width):
        """The page is not wider than the screen, and controls are large enough to touch."""
        self.browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
        wide = self.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        self.equal(wide, [width] * 2, f"width of the page on a screen of {width} px")
        beyond = self.browser.run(
            "return [...document.querySelectorAll('body *')].filter((element) => { const box = element.getBoundingClientRect();"
            "const hidden = element.closest('thead') || getComputedStyle(element).visibility === 'hidden';"
            "return box.width > 0 && !hidden && (box.right > innerWidth + 0.5 || box.left < -0.5); })"
            ".map((element) => element.tagName + '.' + element.getAttribute('class') + ' ' + element.textContent.slice(0, 30))"
        )
        self.equal(beyond, [], f"elements beyond a screen of {width} px")
        small = self.browser.run(
            "return [...document.querySelectorAll('button, select, input[type=range], summary')].filter((element) => {"
            "const box = element.getBoundingClientRect(); return box.height > 0 && box.height < 24; }).map((element) => element.outerHTML.slice(0, 80))"
        )
        self.equal(small, [], "what is too small for a finger")
        self.browser.run("for (const each of document.querySelectorAll('details')) each.open = false")

    def spread(self, width):
        """A wide screen is used: the first chart has nearly all of it."""
        chart = self.browser.run("return document.getElementById('traffic').clientWidth")
        least = 0.88 * width if width >= 1600 else 1100
        self.expect(least < chart < width, f"the chart is {chart} px wide on a screen of {width} px")

    def zones(self):
        """All times are displayed in UTC, or in the zone of the browser, and back."""
        self.load()
        times = "return [...document.querySelectorAll('time')].map((time) => [time.dateTime, time.textContent])"
        zones = "return [...document.querySelectorAll('.zone')].map((zone) => zone.textContent)"
        traffic = "return document.getElementById('traffic-readout').textContent"
        utc = self.browser.run(times), self.browser.run(zones), self.browser.run(traffic)
        self.expect(set(utc[1]) == {"UTC"} and " UTC: " in utc[2], f"zones: {utc[1:]}")
        choose = (
            "const radio = document.querySelector(`input[name=zone][value=${arguments[0]}]`); radio.checked = true;"
            "radio.dispatchEvent(new Event('input', { bubbles: true }))"
        )
        self.browser.run(choose, "local")
        zone = self.browser.run("return Intl.DateTimeFormat().resolvedOptions().timeZone")
        wanted = self.browser.run(
            "return [...document.querySelectorAll('time')].map((time) =>"
            "new Date(time.dateTime).toLocaleString('sv-SE'))"
        )
        local = self.browser.run(times), self.browser.run(zones), self.browser.run(traffic)
        self.equal([text for _, text in local[0]], wanted, "times of the time zone")
        self.equal(set(local[1]), {zone}, "the name of the time zone")
        self.expect(f" {zone}: " in local[2], f"the readout: {local[2]!r}")
        self.browser.run(choose, "utc")
        again = self.browser.run(times), self.browser.run(zones), self.browser.run(traffic)
        self.equal(again, utc, "times after the switch and back")

    def stacks(self):
        """On a narrow screen, each figure of a table has its column header, and several figures share a line."""
        for name in ("#keys", "#rules", "#compare"):
            headers = self.browser.run(
                "return [...document.querySelectorAll(arguments[0] + ' thead th')].map((each) => each.textContent)",
                name,
            )
            rows = self.browser.run(
                "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].filter((row) => row.offsetHeight > 0).map((row) =>"
                "[...row.cells].map((cell) => [getComputedStyle(cell, '::before').content, Math.round(cell.getBoundingClientRect().top)]))",
                name,
            )
            for row in rows:
                self.equal(
                    [label for label, _ in row[1:]], [f'"{header}"' for header in headers[1:]], f"labels in {name}"
                )
                lines = len({top for _, top in row})
                self.expect(lines <= 2 + len(row) / 3, f"a row of {name} has {len(row)} cells in {lines} lines")

    def contrasts(self, scheme):
        for kind, what, ratio, size in self.browser.run(CONTRASTS):
            if kind == "ground":
                self.expect(
                    ratio < 0.05 if scheme == "dark" else ratio > 0.8, f"{scheme}: the ground has luminance {ratio}"
                )
            else:
                self.expect(
                    ratio >= (4.5 if kind == "text" else 3), f"{scheme}: {kind} {what!r} has contrast {ratio:.2f}"
                )
                self.expect(size >= 12, f"{scheme}: {what!r} is {size} px high")

    def without_script(self):
        self.browser.scripts(False)
        self.load()
        self.browser.scripts(True)
        shown = self.browser.run(
            "return [...document.querySelectorAll('#most-limited, .facts, #keys, #rules, details')].every((element) => element.offsetHeight > 10)"
            " && [...document.querySelectorAll('#keys tbody tr')].every((row) => row.offsetHeight > 10)"
            " && [...document.querySelectorAll('.drawn')].every((element) => element.offsetHeight === 0)"
        )
        self.expect(shown, "without JavaScript, answers and tables are not all shown, or empty charts are")
        self.equal(self.browser.run("return document.documentElement.className"), "", "whether the script was off")
        self.answers()
        self.tables()

    def printed(self):
        self.load(media="print", prefers_color_scheme="dark")
        self.contrasts("print")
        shown = self.browser.run(
            "return [...document.querySelectorAll('#keys tbody tr')].every((row) => row.offsetHeight > 5)"
            " && [...document.querySelectorAll('.controls, .slider, .unfold, details')].every((element) => element.offsetHeight === 0)"
            " && [...document.querySelectorAll('svg')].every((element) => element.getBoundingClientRect().height > 100)"
        )
        self.expect(shown, "on paper, keys or charts are missing, or controls are not")
        self.browser.prefer()
        self.expect(self.browser.print().startswith(b"%PDF-"), "printing failed")

    def guarded(self):
        """A script that is inserted into the page does not run."""
        ran = self.browser.run(
            "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
            "document.body.append(script); script.remove(); return window.ran === true"
        )
        self.expect(not ran, "a foreign script runs")
        self.browser.console()
