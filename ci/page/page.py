"""One report in the browser, and the expectations that it does not meet."""

import os
import traceback

# The readout of a chart at each of its times, and the position of its cursor.
WALK = """
const [id] = arguments;
const place = document.getElementById(id), displayed = [];
const press = (key) => place.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
press('Home');
for (let index = 0; index <= Number(place.getAttribute('aria-valuemax')); index += 1) {
  const cursor = place.querySelector('.cursor');
  displayed.push([document.getElementById(id + '-readout').textContent, Number(cursor.getAttribute('x1')), cursor.getAttribute('visibility')]);
  press('ArrowRight');
}
return displayed;
"""

BOXES = """
return Object.fromEntries([...document.querySelectorAll(arguments[0])].map((element) => {
  const { x, y, width, height } = element.getBBox();
  return [element.getAttribute('class'), { x, y, width, height, d: element.getAttribute('d') }];
}));
"""

TEXT = "return document.querySelector(arguments[0]).textContent"


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
        displayed = self.browser.console()
        self.expect(displayed == [], f"{where}: the console says {[entry['message'] for entry in displayed][:5]}")
        loaded = self.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.expect(loaded == [], f"{where}: fetched {loaded[:5]}")

    def rule(self, name):
        return next(rule for rule in self.data["rules"] if rule["name"] == name)

    def choose(self, selector, value):
        self.browser.run(
            "const choice = document.querySelector(arguments[0]); choice.value = arguments[1];"
            "choice.dispatchEvent(new Event('input', { bubbles: true }))",
            selector,
            value,
        )

    def attempt(self, check, *arguments):
        """An error that ends a check early counts as an unmet expectation."""
        try:
            check(*arguments)
        except Exception as error:
            ours = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.endswith("browser.py")]
            at = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
            self.expect(False, f"{at}: {type(error).__name__}: {str(error)[:300]}")

    def shoot(self, pictures, kind):
        if pictures:
            self.browser.shoot(os.path.join(pictures, f"{self.name}-{kind}.png"))
