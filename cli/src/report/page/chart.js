// Charts: an SVG as wide as its place, with axes, drawn anew when that changes.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 250, TOP = 14, BOTTOM = 40, RIGHT = 14;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Round figures from 0 to at least `most`, about four of them.
function roundTicks(most, whole) {
  const rough = Math.max(most, whole ? 1 : 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [0];
  while (ticks[ticks.length - 1] < most) ticks.push(ticks.length * step);
  return ticks;
}

const TIME_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000,
].map((seconds) => seconds * SECOND);

// Round instants between two, no closer than `room` pixels, each with one or two lines of text: the day is said when
// it has changed.
function timeTicks(from, to, width, room) {
  const least = ((to - from) * room) / width;
  const step = TIME_STEPS.find((candidate) => candidate >= least) || Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const ticks = [];
  let said = '';
  // A day begins at midnight of the time zone.
  const shift = behind(from);
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) {
    const today = day(at);
    const lines = step >= DAY ? [today] : [step < MINUTE ? clock(at, step < SECOND) : clock(at).slice(0, 5)];
    if (step < DAY && today !== said) lines.push(today);
    said = today;
    ticks.push({ at, lines });
  }
  return ticks;
}

// An empty chart in `place`. `x` and `y` are [least, most]; `columns` are [{at, lines}], `rows` [{at, text}].
// Answers with the functions that turn figures into pixels, and one that appends to the drawing.
function frame(place, { x, y, columns, rows, label }) {
  const width = Math.max(240, place.clientWidth);
  const left = 10 + 7 * Math.max(...rows.map((row) => row.text.length));
  const inner = { left, right: width - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM };
  const svg = element('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
  if (label) {
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', label);
  } else {
    svg.setAttribute('aria-hidden', 'true');
  }
  const round = (pixels) => Math.round(pixels * 10) / 10;
  const toX = (value) => round(inner.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (inner.right - inner.left));
  const toY = (value) => round(inner.bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (inner.bottom - inner.top));
  const fromX = (pixels) => x[0] + ((pixels - inner.left) / (inner.right - inner.left)) * (x[1] - x[0]);
  const add = (name, attributes, text) => svg.appendChild(element(name, attributes, text));
  for (const row of rows) {
    const at = toY(row.at);
    add('line', { class: row.at === y[0] ? 'axis' : 'grid', x1: inner.left, x2: inner.right, y1: at, y2: at });
    add('text', { x: inner.left - 6, y: at + 4, 'text-anchor': 'end' }, row.text);
  }
  for (const column of columns) {
    const at = toX(column.at);
    add('line', { class: 'axis', x1: at, x2: at, y1: inner.bottom, y2: inner.bottom + 5 });
    const half = 3.6 * Math.max(...column.lines.map((line) => line.length));
    const middle = Math.min(Math.max(at, half), width - half);
    column.lines.forEach((line, index) =>
      add('text', { x: round(middle), y: inner.bottom + 18 + 15 * index, 'text-anchor': 'middle' }, line));
  }
  place.replaceChildren(svg);
  return { svg, inner, toX, toY, fromX, add, width };
}

// The outline of steps: each [x, y] holds until the next, the last until `end`.
function steps(points, chart, end) {
  let path = '';
  for (const [at, value] of points) {
    const pixels = chart.toY(value);
    path += path === '' ? `M${chart.toX(at)} ${pixels}` : `H${chart.toX(at)}V${pixels}`;
  }
  return path + `H${chart.toX(end)}`;
}

// The same, filled down to `base`.
function area(points, chart, end, base) {
  if (points.length === 0) return '';
  const bottom = chart.toY(base);
  return steps(points, chart, end) + `V${bottom}H${chart.toX(points[0][0])}Z`;
}

// Lets pointer and arrow keys walk through the `count` moments of a chart over time. `at(index)` is the moment's x in
// pixels, `nearest(pixels)` the other way, `say(index)` what to read there. At first it is `start`, and `title` says why.
function walk(place, readout, chart, { count, start, title, at, nearest, say }) {
  const cursor = chart.add('line', { class: 'cursor', y1: chart.inner.top, y2: chart.inner.bottom, visibility: 'hidden' });
  let index = start;
  const go = (next, shown) => {
    index = Math.min(Math.max(next, 0), count - 1);
    const pixels = at(index);
    cursor.setAttribute('x1', pixels);
    cursor.setAttribute('x2', pixels);
    if (shown) cursor.setAttribute('visibility', 'visible');
    const text = shown ? say(index) : title + say(index);
    readout.textContent = text;
    place.setAttribute('aria-valuenow', index);
    place.setAttribute('aria-valuetext', text);
  };
  place.setAttribute('aria-valuemin', 0);
  place.setAttribute('aria-valuemax', count - 1);
  place.onpointermove = place.onpointerdown = (event) => {
    const box = chart.svg.getBoundingClientRect();
    go(nearest(((event.clientX - box.left) * chart.width) / box.width), true);
  };
  place.onkeydown = (event) => {
    const far = Math.max(1, Math.round(count / 10));
    const moves = {
      ArrowLeft: index - 1, ArrowDown: index - 1, ArrowRight: index + 1, ArrowUp: index + 1,
      PageDown: index - far, PageUp: index + far, Home: 0, End: count - 1,
    };
    if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(moves[event.key], true);
  };
  go(start, false);
}
