"""Looks at reports in a real browser, and holds them against the JSON that they were made from.

    python3 ci/page/check.py [--pictures FOLDER] REPORT.json REPORT.html ...

Everything that a page should say is computed here anew from the JSON. Ends with 1 when something is wrong.
"""

import base64
import hashlib
import json
import os
import re
import signal
import sys
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal

from browser import Browser

KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "enter": "\ue007"}
NBSP = "\u00a0"

# The ratio of contrast of two colours, as WCAG defines it, of every text and of what charts are drawn with.
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
found.push(['drawing', 'denied on requests', ratio(pale, red) * 3 / 1.5, 99]);
found.push(['ground', 'body', luminance(ground(document.body)), 99]);
return found;
"""

# What the readout of a chart says at each of its moments, and where its cursor stands.
WALK = """
const [id] = arguments;
const place = document.getElementById(id), said = [];
const press = (key) => place.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
press('Home');
for (let index = 0; index <= Number(place.getAttribute('aria-valuemax')); index += 1) {
  const cursor = place.querySelector('.cursor');
  said.push([document.getElementById(id + '-readout').textContent, Number(cursor.getAttribute('x1')), cursor.getAttribute('visibility')]);
  press('ArrowRight');
}
return said;
"""

BOXES = """
return Object.fromEntries([...document.querySelectorAll(arguments[0])].map((element) => {
  const { x, y, width, height } = element.getBBox();
  return [element.getAttribute('class'), { x, y, width, height, d: element.getAttribute('d') }];
}));
"""

TEXT = "return document.querySelector(arguments[0]).textContent"


def number(figure):
    return f"{figure:,}"


def percent(part, whole):
    if part == 0 or whole == 0:
        return f"0{NBSP}%"
    if part == whole:
        return f"100{NBSP}%"
    share = Decimal(part) * 100 / Decimal(whole)
    fine = share.quantize(Decimal("0.01"), ROUND_HALF_UP)
    if fine == 0:
        return f"<{NBSP}0.01{NBSP}%"
    if fine < 10:
        return f"{fine}{NBSP}%"
    coarse = share.quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f">{NBSP}99.9{NBSP}%" if coarse >= 100 else f"{coarse}{NBSP}%"


def moment(ms):
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S")


def figures(text):
    return [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*", text)]


def count_at(points, ms):
    """The count that holds at a moment: the last that began by then."""
    return next((count for at, count in reversed(points) if at <= ms), 0)


def one_per_cent(tried):
    """The smallest limit that denies at most 1 %, and how many; None when there is none."""
    fits = [(limit, denied) for limit, denied in zip(tried["limits"], tried["denied"]) if Decimal(denied) / tried["requests"] <= Decimal("0.01")]
    return min(fits, default=None)


class Page:
    def __init__(self, browser, data, address, name):
        self.browser, self.data, self.address, self.name = browser, data, address, name
        self.wrong, self.made = [], 0

    def expect(self, true, what):
        self.made += 1
        if not true:
            self.wrong.append(what)

    def equal(self, seen, wanted, what):
        self.expect(seen == wanted, f"{what}: {str(seen)[:300]!r} where {str(wanted)[:300]!r} was expected")

    def text(self, selector):
        return self.browser.run(TEXT, selector)

    def load(self, width=1100, height=900, phone=False, **preferences):
        self.browser.screen(width, height, phone)
        self.browser.prefer(**preferences)
        self.browser.open(self.address)

    def quiet(self, where):
        said = self.browser.console()
        self.expect(said == [], f"{where}: the console says {[entry['message'] for entry in said][:5]}")
        loaded = self.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.expect(loaded == [], f"{where}: fetched {loaded[:5]}")

    def rule(self, name):
        return next(rule for rule in self.data["rules"] if rule["name"] == name)

    # Each of the following is one thing that must hold.

    def is_inert(self):
        """What came from the log is text: it has made no element, no handler, no title, and turns no writing round."""
        counts = self.browser.run(
            "return ['script', 'img', 'iframe', 'style', 'svg', 'b b', 'form', '[onerror], [onclick], [onload]']"
            ".map((name) => document.querySelectorAll(name).length)"
        )
        plots = sum(1 for wanted in (True, self.data["chosen"], any(tried["limits"] for tried in self.data["what_if"])) if wanted)
        self.equal(counts, [2, 0, 0, 1, plots, 0, 0, 0], "elements: script, img, iframe, style, svg, b in b, form, handlers")
        carried = self.browser.run("return document.getElementById('data').textContent")
        self.equal(json.loads(carried), self.data, "the report that the page carries")
        shown = self.browser.run(
            "return [document.title, ...[...document.querySelectorAll('body *:not(script)')].flatMap((element) =>"
            "[...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data))].join(' ')"
        )
        bad = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", shown)
        self.equal(bad, [], "characters that turn or hide text")
        self.expect(self.browser.run("return document.documentElement.className") == "js", "the script has run")

    def answers(self):
        """Who was limited most, when, and what limit would have denied at most 1 %."""
        data, said = self.data, self.text("#most-limited")
        denied = [row for row in data["keys"] if row["denied"] > 0]
        if denied:
            most = max(denied, key=lambda row: row["denied"])
            # Of several, the report's first.
            most = next(row for row in denied if row["denied"] == most["denied"])
            rule = self.rule(most["rule"])
            if rule["key"] == "all":
                self.expect(said.startswith("All requests together were limited most"), f"all together are not in: {said}")
            elif most["key"].isprintable() and 0 < len(most["key"]) < 100:
                self.expect(f" {most['key']} was limited most" in said, f"the most-limited key {most['key']} is not in: {said}")
            self.expect(f": {number(most['denied'])} of {number(most['requests'])} requests" in said, f"its figures are not in: {said}")
            self.expect(percent(most["denied"], most["requests"]) in said, f"its share is not in: {said}")
            first, last = moment(most["first_denied"]), moment(most["last_denied"])
            when = f"at {first} UTC" if first == last else f"between {first} and {last} UTC"
            self.expect(when in said, f"'{when}' is not in: {said}")
            for chosen in data["chosen"]:
                if (chosen["rule"], chosen["key"]) == (most["rule"], most["key"]):
                    at = next(at for at, count in chosen["asked"] if count == max(count for _, count in chosen["asked"]))
                    peak = f"{number(most['worst'])} were asked for in "
                    self.expect(peak in said and f"up to {moment(at)}" in said, f"its peak is not in: {said}")
        else:
            self.expect(said.startswith("Nobody was limited"), f"nobody was limited, but: {said}")
        limits = self.browser.run("return [...document.querySelectorAll('.limit-answer')].map((each) => each.textContent)")
        tried = [each for each in data["what_if"] if each["limits"]]
        self.equal(len(limits), min(3, len(tried)), "answers about limits")
        wanted = []
        for each in tried:
            fit = one_per_cent(each)
            figure, count = fit or (each["limits"][-1], each["denied"][-1])
            share = f"{number(count)} of {number(each['requests'])} ({percent(count, each['requests'])})"
            wanted.append((bool(fit), f"A limit of {number(figure)} " if fit else f"the largest, {number(figure)} per ", share))
        for said in limits:
            self.expect(
                any(start in said and share in said and said.startswith("A limit") == fits for fits, start, share in wanted),
                f"{said!r} is none of {wanted}",
            )
        facts = self.browser.run("return [...document.querySelectorAll('.facts dd')].map((each) => each.textContent)")
        self.equal(facts[0], number(data["requests"]), "requests")
        self.equal(facts[1], f"{number(data['denied'])} {percent(data['denied'], data['requests'])}", "denied")
        self.equal(facts[3], number(data["unreadable"]), "lines not understood")

    def tables(self):
        rows = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        several = len(self.data["rules"]) > 1
        keys = self.browser.run(rows, "#keys") if self.data["keys"] else []
        self.equal(len(keys), len(self.data["keys"]), "rows of keys")
        for cells, row in zip(keys, self.data["keys"]):
            del cells[1 : 1 + several]
            times = [moment(row[name]) if row[name] is not None else "–" for name in ("first_denied", "last_denied")]
            wanted = [number(row["requests"]), number(row["denied"]), percent(row["denied"], row["requests"]), number(row["worst"]), *times]
            self.equal(cells[1:], wanted, f"the row of {row['key'][:40]!r}")
        rules = self.browser.run(rows, "#rules")
        for cells, rule in zip(rules, self.data["rules"], strict=True):
            counts = [number(rule[name]) for name in ("keys", "requests", "admitted", "denied")]
            wanted = [*counts, percent(rule["denied"], rule["requests"]), number(rule["worst"]), number(rule["bound"])]
            self.equal(cells[4:11], wanted, f"the row of rule {rule['name'][:40]!r}")
        compared = self.browser.run(rows, "#compare") if self.data["compare"] else []
        for cells, row in zip(compared, self.data["compare"], strict=True):
            del cells[1 : 1 + several]
            wanted = [row["algorithm"], number(row["admitted"]), number(row["denied"]), percent(row["denied"], self.rule(row["rule"])["requests"]), number(row["worst"]), number(row["bound"])]
            self.equal(cells[:6], wanted, "a row of the comparison")

    def traffic(self):
        """The chart over time: as many steps as moments, heights in proportion, and every request read off."""
        series = self.data["series"]
        choices = [("", series["denied"])]
        if len(self.data["rules"]) > 1:
            choices += [(str(index), series["by_rule"][rule["name"]]) for index, rule in enumerate(self.data["rules"])]
        for choice, denied in choices:
            if len(choices) > 1:
                self.choose("#traffic-rule", choice)
            said = self.browser.run(WALK, "traffic")
            read = [figures(text.split(" UTC: ")[1]) for text, _, _ in said]
            self.equal(sum(row[0] for row in read), sum(series["requests"]), "requests read off the chart over time")
            self.equal(sum(row[1] for row in read), sum(denied), "denials read off the chart over time")
            self.expect(said[0][0].startswith(moment(self.data["from"])), f"the chart begins at {said[0][0]}")
            places = [x for _, x, _ in said]
            self.expect(places == sorted(set(places)), "the cursor moves to the right")
            apart = (places[-1] - places[0]) / max(1, len(places) - 1)
            self.expect(apart >= 1.9 or len(places) == 1, f"moments are {apart} pixels apart")
            self.expect(all(shown == "visible" for _, _, shown in said), "the cursor is seen")
            merged = -(-len(series["requests"]) // len(read))
            boxes = self.browser.run(BOXES, "#traffic .area")
            for name, list_ in (("area requests", series["requests"]), ("area denied", denied)):
                box = boxes[name]
                self.equal(box["d"].count("H"), len(read) + 1, f"steps of {name}")
                buckets = [sum(list_[at : at + merged]) for at in range(0, len(list_), merged)]
                wanted = boxes["area requests"]["height"] * max(buckets) / max(row[0] for row in read)
                self.expect(abs(box["height"] - wanted) < 1, f"{name} is {box['height']} high, not {wanted}")
            self.expect(boxes["area requests"]["height"] > 100 and boxes["area requests"]["width"] > 200, f"the chart is empty: {boxes}")
        if len(choices) > 1:
            self.choose("#traffic-rule", "")

    def choose(self, selector, value):
        self.browser.run(
            "const choice = document.querySelector(arguments[0]); choice.value = arguments[1];"
            "choice.dispatchEvent(new Event('input', { bubbles: true }))",
            selector,
            value,
        )

    def sliding(self):
        """Each key's chart: chosen in the table and in the list, with every point, around the peak and as a whole."""
        if not self.data["chosen"]:
            self.equal(self.browser.run("return document.querySelectorAll('#sliding').length"), 0, "charts of no key")
            return
        buttons = self.browser.run("return [...document.querySelectorAll('#keys tr[data-chosen]')].map((row) => row.dataset.chosen)")
        self.equal(sorted(map(int, buttons)), list(range(len(self.data["chosen"]))), "keys with a chart")
        drawn = {}
        if len(self.data["keys"]) > 10:
            hidden = "return [...document.querySelectorAll('#keys tbody tr')].filter((row) => row.offsetHeight === 0).length"
            self.equal(self.browser.run(hidden), len(self.data["keys"]) - 10, "keys that are folded away")
            self.browser.click(".unfold")
            self.equal(self.browser.run(hidden), 0, "keys that stay folded away")
        for index, chosen in enumerate(self.data["chosen"]):
            row = f'#keys tr[data-chosen="{index}"]'
            self.browser.click(f"{row} button")
            self.equal(self.browser.run("return document.getElementById('sliding-key').value"), str(index), "the key in the list")
            self.equal(self.browser.run("return [...document.querySelectorAll('#keys [aria-current], #keys [aria-pressed=true]')].map((each) => each.closest('tr').dataset.chosen)"), [str(index)] * 2, "the key marked in the table")
            self.expect(self.text("#sliding-caption").startswith(self.text(f"{row} bdi")), "the chart is not named after its key")
            count = max(count for _, count in chosen["asked"])
            peak = next(at for at, other in chosen["asked"] if other == count)
            said = self.text("#sliding-readout").split("UTC: ")[1]
            self.equal(figures(said), [count, count_at(chosen["admitted"], peak)], "asked and admitted at the peak")
            far = 6 * chosen["window"]
            drawn[index] = self.curve(chosen, max(self.data["from"], peak - far), min(self.data["to"], peak + far))
            self.browser.click('input[name="sliding-time"][value="all"]')
            self.curve(chosen, self.data["from"], self.data["to"])
            self.browser.click('input[name="sliding-time"][value="peak"]')
        different = {json.dumps([chosen["asked"], chosen["admitted"], chosen["limit"]]) for chosen in self.data["chosen"]}
        self.expect(len(different) < 2 or len(set(drawn.values())) > 1, "another key has the same chart")
        self.choose("#sliding-key", "0")
        self.equal(self.browser.run(BOXES, "#sliding .line")["line asked"]["d"], drawn[0], "the chart chosen from the list")

    def curve(self, chosen, begin, end):
        """Holds the chart that is shown against a key's counts between two moments."""
        boxes = self.browser.run(BOXES, "#sliding .line, #sliding .rule, #sliding .area")
        for name in ("asked", "admitted"):
            points = [[begin, count_at(chosen[name], begin)]] + [point for point in chosen[name] if begin < point[0] <= end]
            box = boxes["line " + name]
            self.equal(box["d"].count("H"), len(points), f"steps of what was {name}")
            if name == "asked":
                highest = max(count for _, count in points)
                bottom = self.browser.run("return document.querySelector('#sliding .axis').getBBox().y")
                # As far above the axis as the limit, in proportion.
                wanted = (bottom - boxes["rule"]["y"]) * highest / chosen["limit"]
                self.expect(abs(bottom - box["y"] - wanted) < 1.5, f"{highest} stand {bottom - box['y']} above the axis, not {wanted}")
                self.expect(box["width"] > 200 and bottom - box["y"] > 40, f"the chart is empty: {box}")
                over = boxes["area over"]
                self.equal(over["d"].count("H"), len(points) + 1, "steps of what is above the limit")
                wanted = max(0, boxes["rule"]["y"] - box["y"]) if highest > chosen["limit"] else 0
                self.expect(abs(over["height"] - wanted) < 0.5, f"what is above the limit is {over['height']} high, not {wanted}")
        moments = {begin} | {at for name in ("asked", "admitted") for at, _ in chosen[name] if begin < at <= end}
        said = [figures(text.split("UTC: ")[1]) for text, _, _ in self.browser.run(WALK, "sliding")]
        wanted = [[count_at(chosen["asked"], at), count_at(chosen["admitted"], at)] for at in sorted(moments)]
        self.equal(said, wanted, "what is read off the sliding count")
        return boxes["line asked"]["d"]

    def what_if(self):
        """The slider: by keyboard, by value, by the button, by a click into the chart; its figures are the report's."""
        tried = [each for each in self.data["what_if"] if each["limits"]]
        if not tried:
            self.equal(self.browser.run("return document.querySelectorAll('#limit').length"), 0, "sliders without limits")
            return
        for index, each in enumerate(tried):
            if len(tried) > 1:
                self.choose("#what-if-rule", str(index))
            limits, rule = each["limits"], self.rule(each["rule"])
            start = next((at for at, limit in enumerate(limits) if limit >= rule["limit"]), len(limits) - 1)
            self.reads(each, start, "at first")
            keys, at = "", start
            for key in ("right", "right", "left", "home", "right", "end", "left", "left"):
                at = {"right": at + 1, "left": at - 1, "home": 0, "end": len(limits) - 1}[key]
                at = min(max(at, 0), len(limits) - 1)
                keys += " " + key
                self.browser.type("#limit", KEYS[key])
                self.reads(each, at, f"after the keys{keys}")
            for at in range(len(limits)):
                self.choose("#limit", str(at))
                self.reads(each, at, "moved")
            fit = one_per_cent(each)
            shown = self.browser.run("return document.getElementById('one-per-cent').offsetHeight > 0")
            self.equal(shown, fit is not None, "whether there is a button for 1 %")
            if fit:
                self.browser.click("#one-per-cent")
                self.reads(each, limits.index(fit[0]), "after the button for 1 %")
            # A click into the chart, near its left edge, is the first limit.
            self.browser.run(
                "const box = document.querySelector('#what-if .line.denied').getBoundingClientRect();"
                "document.getElementById('what-if').dispatchEvent(new MouseEvent('click', { clientX: box.left + 1, clientY: box.top + 9 }))"
            )
            self.reads(each, 0, "after a click at the left of the chart")
            boxes = self.browser.run(BOXES, "#what-if .line")
            for name in ("line denied", "line keys"):
                self.equal(boxes[name]["d"].count("L"), len(limits) - 1, f"points of {name}")
            self.expect(len(limits) < 2 or boxes["line denied"]["width"] > 200, f"the chart is empty: {boxes}")
            if max(each["denied"]) > 0:
                self.expect(boxes["line denied"]["height"] > 40, f"the chart is flat: {boxes}")
            table = self.browser.run("return [...document.querySelectorAll(arguments[0])].map((row) => [...row.cells].map((cell) => cell.textContent))", f"#limits-{index} tbody tr")
            wanted = [
                [number(limit), number(denied), percent(denied, each["requests"]), number(keys_denied), percent(keys_denied, each["keys"])]
                for limit, denied, keys_denied in zip(limits, each["denied"], each["keys_denied"])
            ]
            self.equal(table, wanted, "the table of limits")

    def reads(self, tried, at, when):
        denied, keys_denied = tried["denied"][at], tried["keys_denied"][at]
        share, share_of_keys = percent(denied, tried["requests"]), percent(keys_denied, tried["keys"])
        limit, *shares, spoken = self.browser.run(
            "const text = (id) => document.getElementById(id).textContent;"
            "return [text('limit-value'), text('requests-share'), text('requests-count'), text('keys-share'), text('keys-count'),"
            "document.getElementById('limit').getAttribute('aria-valuetext')]"
        )
        self.expect(limit.startswith(f"{number(tried['limits'][at])}{NBSP}per{NBSP}"), f"{when}: the limit is {limit!r}, not {tried['limits'][at]}")
        wanted = [share, f"{number(denied)} of {number(tried['requests'])}", share_of_keys, f"{number(keys_denied)} of {number(tried['keys'])}"]
        self.equal(shares, wanted, f"{when}: the shares")
        self.expect(spoken.startswith(f"{number(tried['limits'][at])}: {share} of requests, {share_of_keys} of keys"), f"{when}: spoken is {spoken!r}")

    def labelled(self):
        """Every control has a name, every section a heading, every chart words; headings do not skip a level."""
        nameless = self.browser.run(
            "return [...document.querySelectorAll('input, select, button, [role=slider], [role=img]')].filter((element) =>"
            "!(element.labels && element.labels.length) && !element.getAttribute('aria-label') &&"
            "!(element.tagName === 'BUTTON' && element.textContent.trim())).map((element) => element.outerHTML.slice(0, 80))"
        )
        self.equal(nameless, [], "controls without a name")
        levels = self.browser.run("return [...document.querySelectorAll('h1, h2, h3')].map((heading) => heading.tagName)")
        self.expect(levels[0] == "H1" and set(levels[1:]) == {"H2"}, f"headings: {levels}")
        sections = self.browser.run("return [...document.querySelectorAll('section')].every((each) => document.getElementById(each.getAttribute('aria-labelledby')))")
        self.expect(sections, "a section without its heading")
        ids = self.browser.run("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
        self.equal(len(ids), len(set(ids)), "ids, each once")
        self.equal(self.browser.run("return document.documentElement.lang"), "en", "the language")

    def fits(self, width):
        """No part of the page reaches beyond the screen, and fingers find what is to be touched."""
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

    def contrasts(self, scheme):
        for kind, what, ratio, size in self.browser.run(CONTRASTS):
            if kind == "ground":
                self.expect(ratio < 0.05 if scheme == "dark" else ratio > 0.8, f"{scheme}: the ground has luminance {ratio}")
            else:
                self.expect(ratio >= (4.5 if kind == "text" else 3), f"{scheme}: {kind} {what!r} has contrast {ratio:.2f}")
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
        self.expect(self.browser.print().startswith(b"%PDF-"), "it cannot be printed")

    def guarded(self):
        """Script that gets into the page in spite of all does not run."""
        ran = self.browser.run(
            "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
            "document.body.append(script); script.remove(); return window.ran === true"
        )
        self.expect(not ran, "a foreign script runs")
        self.browser.console()

    def attempt(self, check, *arguments):
        """What keeps a check from its end is wrong too."""
        try:
            check(*arguments)
        except Exception as error:
            at = error.__traceback__
            while at.tb_next and at.tb_next.tb_frame.f_code.co_filename == __file__:
                at = at.tb_next
            self.expect(False, f"line {at.tb_lineno}, {type(error).__name__}: {str(error)[:300]}")

    def is_trusted(self):
        """The page names its script by the script's hash, or no browser runs it."""
        with open(self.address.removeprefix("file://"), encoding="utf-8") as file:
            html = file.read()
        script = html[html.rindex("<script>") + len("<script>") : html.rindex("</script>")]
        digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.expect(f"script-src '{digest}';" in html, f"SCRIPT_HASH in src/bin/ringgate/page.rs must be {digest}")

    def all(self, pictures):
        self.is_trusted()
        self.browser.console()
        for scheme in ("light", "dark"):
            self.load(prefers_color_scheme=scheme)
            self.quiet(f"{scheme}, on a wide screen")
            self.fits(1100)
            self.contrasts(scheme)
            self.shoot(pictures, f"{scheme}")
        self.load(360, 740, phone=True, prefers_color_scheme="light")
        self.fits(360)
        self.traffic()
        self.shoot(pictures, "phone")
        self.load(320, 568, phone=True, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
        self.fits(320)
        self.contrasts("dark")
        self.equal(self.browser.run("return getComputedStyle(document.documentElement).scrollBehavior"), "auto", "scrolling for who wants no motion")
        # Without motion, so that a click does not miss what is still scrolling.
        self.load(prefers_reduced_motion="reduce")
        for check in (self.is_inert, self.labelled, self.answers, self.tables, self.traffic, self.sliding, self.what_if):
            self.attempt(check)
        # As wide as before it was narrow: drawn anew.
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

    def shoot(self, pictures, kind):
        if pictures:
            self.browser.shoot(os.path.join(pictures, f"{self.name}-{kind}.png"))


def main(arguments):
    # Who is stopped ends the browser too.
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
            page = Page(browser, data, "file://" + os.path.abspath(html), os.path.splitext(os.path.basename(html))[0])
            page.attempt(page.all, pictures)
            size = os.path.getsize(html)
            print(f"{os.path.basename(html)}: {size:,} bytes, {page.made:,} expectations, {len(page.wrong)} not met")
            for wrong in page.wrong[:20]:
                print("  " + wrong)
            failed |= bool(page.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
