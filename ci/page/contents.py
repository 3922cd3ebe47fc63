"""Checks of the contents of a page: answers, tables, and each point of the charts."""

import json

from page import BOXES, WALK, Page
from expected import NBSP, count_at, figures, moment, number, one_per_cent, percent

KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010"}


class Contents(Page):
    def answers(self):
        """The key that was denied most, the time, and the limit that would have denied at most 1 %."""
        data, displayed = self.data, self.text("#most-limited")
        denied = [row for row in data["keys"] if row["denied"] > 0]
        if denied:
            most = max(denied, key=lambda row: row["denied"])
            # The first of several equal keys in the report.
            most = next(row for row in denied if row["denied"] == most["denied"])
            rule = self.rule(most["rule"])
            if rule["key"] == "all":
                self.expect(
                    displayed.startswith("All requests together were denied most often"), f"all together are not in: {displayed}"
                )
            elif most["key"].isprintable() and 0 < len(most["key"]) < 100:
                self.expect(
                    f" {most['key']} was denied most often" in displayed, f"the most-limited key {most['key']} is not in: {displayed}"
                )
            self.expect(
                f": {number(most['denied'])} of {number(most['requests'])} requests" in displayed,
                f"its figures are not in: {displayed}",
            )
            self.expect(percent(most["denied"], most["requests"]) in displayed, f"its share is not in: {displayed}")
            first, last = moment(most["first_denied"]), moment(most["last_denied"])
            when = f"at {first} UTC" if first == last else f"between {first} and {last} UTC"
            self.expect(when in displayed, f"'{when}' is not in: {displayed}")
            for chosen in data["chosen"]:
                if (chosen["rule"], chosen["key"]) == (most["rule"], most["key"]):
                    at = next(
                        at for at, count in chosen["asked"] if count == max(count for _, count in chosen["asked"])
                    )
                    peak = f"{number(most['worst'])} permits were requested in "
                    self.expect(peak in displayed and f"up to {moment(at)}" in displayed, f"its peak is not in: {displayed}")
        else:
            self.expect(displayed.startswith("No request was denied"), f"no request was denied, but the page says: {displayed}")
        limits = self.browser.run(
            "return [...document.querySelectorAll('.limit-answer')].map((each) => each.textContent)"
        )
        tried = [each for each in data["what_if"] if each["limits"]]
        self.equal(len(limits), min(3, len(tried)), "answers about limits")
        wanted = []
        for each in tried:
            fit = one_per_cent(each)
            figure, count = fit or (each["limits"][-1], each["denied"][-1])
            share = f"{number(count)} of {number(each['requests'])} ({percent(count, each['requests'])})"
            wanted.append(
                (bool(fit), f"A limit of {number(figure)} " if fit else f"the largest, {number(figure)} per ", share)
            )
        for displayed in limits:
            self.expect(
                any(
                    start in displayed and share in displayed and displayed.startswith("A limit") == fits
                    for fits, start, share in wanted
                ),
                f"{displayed!r} is none of {wanted}",
            )
        facts = self.browser.run("return [...document.querySelectorAll('.facts dd')].map((each) => each.textContent)")
        self.equal(facts[0], number(data["requests"]), "requests")
        self.equal(facts[1], f"{number(data['denied'])} {percent(data['denied'], data['requests'])}", "denied")
        self.equal(facts[3], number(data["unreadable"]), "unreadable lines")

    def tables(self):
        rows = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        several = len(self.data["rules"]) > 1
        keys = self.browser.run(rows, "#keys") if self.data["keys"] else []
        self.equal(len(keys), len(self.data["keys"]), "rows of keys")
        for cells, row in zip(keys, self.data["keys"]):
            del cells[1 : 1 + several]
            times = [moment(row[name]) if row[name] is not None else "–" for name in ("first_denied", "last_denied")]
            wanted = [
                number(row["requests"]),
                number(row["denied"]),
                percent(row["denied"], row["requests"]),
                number(row["worst"]),
                *times,
            ]
            self.equal(cells[1:], wanted, f"the row of {row['key'][:40]!r}")
        rules = self.browser.run(rows, "#rules")
        for cells, rule in zip(rules, self.data["rules"], strict=True):
            counts = [number(rule[name]) for name in ("keys", "requests", "admitted", "denied")]
            wanted = [*counts, percent(rule["denied"], rule["requests"]), number(rule["worst"]), number(rule["bound"])]
            self.equal(cells[4:11], wanted, f"the row of rule {rule['name'][:40]!r}")
        compared = self.browser.run(rows, "#compare") if self.data["compare"] else []
        for cells, row in zip(compared, self.data["compare"], strict=True):
            del cells[1 : 1 + several]
            wanted = [
                row["algorithm"],
                number(row["admitted"]),
                number(row["denied"]),
                percent(row["denied"], self.rule(row["rule"])["requests"]),
                number(row["worst"]),
                number(row["bound"]),
            ]
            self.equal(cells[:6], wanted, "a row of the comparison")

    def traffic(self):
        """The chart over time: one step per time, proportional heights, and the number of requests in the readout."""
        series = self.data["series"]
        choices = [("", series["denied"])]
        if len(self.data["rules"]) > 1:
            choices += [(str(index), series["by_rule"][rule["name"]]) for index, rule in enumerate(self.data["rules"])]
        for choice, denied in choices:
            if len(choices) > 1:
                self.choose("#traffic-rule", choice)
            displayed = self.browser.run(WALK, "traffic")
            read = [figures(text.split(" UTC: ")[1]) for text, _, _ in displayed]
            self.equal(sum(row[0] for row in read), sum(series["requests"]), "requests read off the chart over time")
            self.equal(sum(row[1] for row in read), sum(denied), "denials read off the chart over time")
            self.expect(displayed[0][0].startswith(moment(self.data["from"])), f"the chart begins at {displayed[0][0]}")
            places = [x for _, x, _ in displayed]
            self.expect(places == sorted(set(places)), "the cursor moves to the right")
            apart = (places[-1] - places[0]) / max(1, len(places) - 1)
            self.expect(apart >= 1.9 or len(places) == 1, f"moments are {apart} pixels apart")
            self.expect(all(shown == "visible" for _, _, shown in displayed), "the cursor is seen")
            merged = -(-len(series["requests"]) // len(read))
            boxes = self.browser.run(BOXES, "#traffic .area")
            for name, list_ in (("area requests", series["requests"]), ("area denied", denied)):
                box = boxes[name]
                self.equal(box["d"].count("H"), len(read) + 1, f"steps of {name}")
                buckets = [sum(list_[at : at + merged]) for at in range(0, len(list_), merged)]
                wanted = boxes["area requests"]["height"] * max(buckets) / max(row[0] for row in read)
                self.expect(abs(box["height"] - wanted) < 1, f"{name} is {box['height']} high, not {wanted}")
            self.expect(
                boxes["area requests"]["height"] > 100 and boxes["area requests"]["width"] > 200,
                f"the chart is empty: {boxes}",
            )
        if len(choices) > 1:
            self.choose("#traffic-rule", "")

    def sliding(self):
        """The chart of each key, chosen in the table and in the list: every point, around the peak and in full."""
        if not self.data["chosen"]:
            self.equal(self.browser.run("return document.querySelectorAll('#sliding').length"), 0, "charts of no key")
            return
        buttons = self.browser.run(
            "return [...document.querySelectorAll('#keys tr[data-chosen]')].map((row) => row.dataset.chosen)"
        )
        self.equal(sorted(map(int, buttons)), list(range(len(self.data["chosen"]))), "keys with a chart")
        drawn = {}
        if len(self.data["keys"]) > 10:
            hidden = (
                "return [...document.querySelectorAll('#keys tbody tr')].filter((row) => row.offsetHeight === 0).length"
            )
            self.equal(self.browser.run(hidden), len(self.data["keys"]) - 10, "keys that are folded away")
            self.browser.click(".unfold")
            self.equal(self.browser.run(hidden), 0, "keys that stay folded away")
        for index, chosen in enumerate(self.data["chosen"]):
            row = f'#keys tr[data-chosen="{index}"]'
            self.browser.click(f"{row} button")
            self.equal(
                self.browser.run("return document.getElementById('sliding-key').value"),
                str(index),
                "the key in the list",
            )
            self.equal(
                self.browser.run(
                    "return [...document.querySelectorAll('#keys [aria-current], #keys [aria-pressed=true]')].map((each) => each.closest('tr').dataset.chosen)"
                ),
                [str(index)] * 2,
                "the key marked in the table",
            )
            self.expect(
                self.text("#sliding-caption").startswith(self.text(f"{row} bdi")),
                "the chart is not named after its key",
            )
            details = self.browser.run(
                "return [...document.querySelectorAll('#sliding-details table')].filter((table) => table.offsetHeight > 0)"
                ".map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"
            )
            self.equal(
                [[figure for _, figure in rows] for rows in details],
                [[number(count) for _, count in report["denied"]] for report in chosen["details"]],
                "denied requests by path, status and agent",
            )
            for rows, report in zip(details, chosen["details"]):
                for (text, _), (value, _) in zip(rows, report["denied"]):
                    self.expect(text[:100] == value[:100] or not value.isascii(), f"{text!r} where {value!r} was expected")
            count = max(count for _, count in chosen["asked"])
            peak = next(at for at, other in chosen["asked"] if other == count)
            displayed = self.text("#sliding-readout").split("UTC: ")[1]
            near = chosen["near"] or chosen
            self.equal(figures(displayed), [count, count_at(near["admitted"], peak)], "asked and admitted at the peak")
            far = 6 * chosen["window"]
            begin, end = max(self.data["from"], peak - far), min(self.data["to"], peak + far)
            drawn[index] = self.curve({**chosen, **near}, begin, end)
            self.browser.click('input[name="sliding-time"][value="all"]')
            self.curve(chosen, self.data["from"], self.data["to"])
            self.browser.click('input[name="sliding-time"][value="peak"]')
        different = {
            json.dumps([chosen["asked"], chosen["admitted"], chosen["limit"]]) for chosen in self.data["chosen"]
        }
        self.expect(len(different) < 2 or len(set(drawn.values())) > 1, "another key has the same chart")
        self.choose("#sliding-key", "0")
        self.equal(
            self.browser.run(BOXES, "#sliding .line")["line asked"]["d"], drawn[0], "the chart chosen from the list"
        )

    def curve(self, chosen, begin, end):
        """Compares the displayed chart with the counts of a key between two times."""
        boxes = self.browser.run(BOXES, "#sliding .line, #sliding .rule, #sliding .area")
        for name in ("asked", "admitted"):
            points = [[begin, count_at(chosen[name], begin)]] + [
                point for point in chosen[name] if begin < point[0] <= end
            ]
            box = boxes["line " + name]
            self.equal(box["d"].count("H"), len(points), f"steps of what was {name}")
            if name == "asked":
                highest = max(count for _, count in points)
                bottom = self.browser.run("return document.querySelector('#sliding .axis').getBBox().y")
                # The height above the axis is proportional to the limit.
                wanted = (bottom - boxes["rule"]["y"]) * highest / chosen["limit"]
                self.expect(
                    abs(bottom - box["y"] - wanted) < 1.5,
                    f"{highest} stand {bottom - box['y']} above the axis, not {wanted}",
                )
                self.expect(box["width"] > 200 and bottom - box["y"] > 40, f"the chart is empty: {box}")
                over = boxes["area over"]
                self.equal(over["d"].count("H"), len(points) + 1, "steps of what is above the limit")
                wanted = max(0, boxes["rule"]["y"] - box["y"]) if highest > chosen["limit"] else 0
                self.expect(
                    abs(over["height"] - wanted) < 0.5,
                    f"what is above the limit is {over['height']} high, not {wanted}",
                )
        moments = {begin} | {at for name in ("asked", "admitted") for at, _ in chosen[name] if begin < at <= end}
        displayed = [figures(text.split("UTC: ")[1]) for text, _, _ in self.browser.run(WALK, "sliding")]
        wanted = [[count_at(chosen["asked"], at), count_at(chosen["admitted"], at)] for at in sorted(moments)]
        self.equal(displayed, wanted, "what is read off the sliding count")
        return boxes["line asked"]["d"]

    def what_if(self):
        """The slider, moved by keyboard, value, button and click into the chart: its figures equal those of the report."""
        tried = [each for each in self.data["what_if"] if each["limits"]]
        if not tried:
            self.equal(
                self.browser.run("return document.querySelectorAll('#limit').length"), 0, "sliders without limits"
            )
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
            # A click near the left edge of the chart selects the first limit.
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
            table = self.browser.run(
                "return [...document.querySelectorAll(arguments[0])].map((row) => [...row.cells].map((cell) => cell.textContent))",
                f"#limits-{index} tbody tr",
            )
            wanted = [
                [
                    number(limit),
                    number(denied),
                    percent(denied, each["requests"]),
                    number(keys_denied),
                    percent(keys_denied, each["keys"]),
                ]
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
        self.expect(
            limit.startswith(f"{number(tried['limits'][at])}{NBSP}per{NBSP}"),
            f"{when}: the limit is {limit!r}, not {tried['limits'][at]}",
        )
        wanted = [
            share,
            f"{number(denied)} of {number(tried['requests'])}",
            share_of_keys,
            f"{number(keys_denied)} of {number(tried['keys'])}",
        ]
        self.equal(shares, wanted, f"{when}: the shares")
        self.expect(
            spoken.startswith(f"{number(tried['limits'][at])}: {share} of requests, {share_of_keys} of keys"),
            f"{when}: spoken is {spoken!r}",
        )
