// The charts of one report.

const report = JSON.parse(document.getElementById('data').textContent);
const place = (id) => document.getElementById(id);

// A field of an object whose names come from outside.
const field = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
const rule = (name) => report.rules.find((candidate) => candidate.name === name);
const sum = (list) => list.reduce((total, figure) => total + figure, 0);
// The position of the greatest, the first of several.
const greatest = (list) => list.reduce((best, figure, index) => (figure > list[best] ? index : best), 0);
const rowsFor = (most) => roundTicks(most, true).map((at) => ({ at, text: number(at) }));

function drawTraffic() {
  const { series, step, from } = report;
  const choice = place('traffic-rule');
  const name = choice && choice.value !== '' ? report.rules[choice.value].name : undefined;
  const deniedOf = name === undefined ? series.denied : field(series.by_rule, name) || [];
  // Buckets of at least two pixels.
  const width = Math.max(240, place('traffic').clientWidth) - 60;
  const merged = Math.max(1, Math.ceil((2 * series.requests.length) / width));
  const requests = [], denied = [];
  for (let index = 0; index < series.requests.length; index += merged) {
    requests.push(sum(series.requests.slice(index, index + merged)));
    denied.push(sum(deniedOf.slice(index, index + merged)));
  }
  const length = step * merged, end = from + length * requests.length;
  const moment = (index) => from + index * length;
  const rows = rowsFor(Math.max(1, ...requests));
  const chart = frame(place('traffic'), {
    x: [from, end], y: [0, rows[rows.length - 1].at], rows, columns: timeTicks(from, end, width, 74),
  });
  const points = (list) => list.map((figure, index) => [moment(index), figure]);
  chart.add('path', { class: 'area requests', d: area(points(requests), chart, end, 0) });
  chart.add('path', { class: 'area denied', d: area(points(denied), chart, end, 0) });
  walk(place('traffic'), place('traffic-readout'), chart, {
    count: requests.length,
    start: greatest(sum(denied) > 0 ? denied : requests),
    title: sum(denied) > 0 ? 'Most denied: ' : 'Most requests: ',
    at: (index) => chart.toX(moment(index) + length / 2),
    nearest: (pixels) => Math.floor((chart.fromX(pixels) - from) / length),
    say: (index) =>
      `${interval(moment(index), moment(index) + length, step < SECOND)}: ${counted(requests[index], 'request')}, ` +
      `${number(denied[index])} of them denied`,
  });
}

// What a list of [moment, count] says for a moment.
function countAt(points, at) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= at) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : points[low - 1][1];
}

// The points of [moment, count] from `from` to `to`, with what held at `from`.
function within(points, from, to) {
  return [[from, countAt(points, from)], ...points.filter(([at]) => at > from && at <= to)];
}

// Whether a key's count is shown over the whole log.
const isWhole = () => document.querySelector('input[name="sliding-time"]:checked').value === 'all';
const peakOf = ({ asked }) => (asked.length === 0 ? [report.from, 0] : asked[greatest(asked.map(([, count]) => count))]);

function drawSliding() {
  if (!place('sliding')) return;
  const chosen = report.chosen[place('sliding-key').value];
  const { limit, window } = chosen;
  const peak = peakOf(chosen);
  const { asked, admitted } = isWhole() ? chosen : chosen.near || chosen;
  let from = report.from, to = Math.max(report.to, from + 1);
  if (!isWhole()) {
    from = Math.max(from, peak[0] - 6 * window);
    to = Math.min(to, peak[0] + 6 * window);
  }
  const seen = { asked: within(asked, from, to), admitted: within(admitted, from, to) };
  const rows = rowsFor(Math.max(limit, ...seen.asked.map(([, count]) => count)) * 1.04);
  const width = Math.max(240, place('sliding').clientWidth) - 60;
  const chart = frame(place('sliding'), {
    x: [from, to], y: [0, rows[rows.length - 1].at], rows, columns: timeTicks(from, to, width, 74),
  });
  const above = seen.asked.map(([at, count]) => [at, Math.max(count, limit)]);
  chart.add('path', { class: 'area over', d: area(above, chart, to, limit) });
  chart.add('path', { class: 'line asked', d: steps(seen.asked, chart, to) });
  chart.add('path', { class: 'line admitted', d: steps(seen.admitted, chart, to) });
  const at = chart.toY(limit);
  chart.add('line', { class: 'rule', x1: chart.inner.left, x2: chart.inner.right, y1: at, y2: at });
  chart.add('text', { class: 'strong', x: chart.inner.right, y: at - 5, 'text-anchor': 'end' }, 'limit ' + number(limit));
  const moments = [...new Set([...seen.asked, ...seen.admitted].map(([moment]) => moment))].sort((a, b) => a - b);
  const nearest = (pixels) => {
    const moment = chart.fromX(pixels);
    return Math.max(0, moments.findLastIndex((candidate) => candidate <= moment));
  };
  walk(place('sliding'), place('sliding-readout'), chart, {
    count: moments.length,
    start: Math.max(0, moments.indexOf(peak[0])),
    title: 'Its peak: ',
    at: (index) => chart.toX(moments[index]),
    nearest,
    say: (index) =>
      `${duration(window)} up to ${instant(moments[index], window < 10 * SECOND)} ${zone()}: ${number(countAt(asked, moments[index]))} asked for, ` +
      `${number(countAt(admitted, moments[index]))} admitted`,
  });
}

// Says which key is drawn, here and in the table of keys.
function sayChosen() {
  if (!place('sliding')) return;
  const { value } = place('sliding-key');
  const chosen = report.chosen[value];
  const caption = place('sliding-caption');
  const row = document.querySelector(`#keys tr[data-chosen="${value}"]`);
  const name = row ? row.querySelector('bdi').cloneNode(true) : place('sliding-key').selectedOptions[0].textContent;
  caption.replaceChildren(name, `, limited to ${quota(chosen.limit, chosen.window, rule(chosen.rule).period)}; ` +
    `its peak is ${number(peakOf(chosen)[1])} in one window.` +
    (isWhole() && chosen.near ? ' Of each short time, the chart has the largest count and the last.' : ''));
  for (const table of document.querySelectorAll('#sliding-details table')) table.hidden = table.dataset.of !== value;
  for (const other of document.querySelectorAll('#keys tr[data-chosen]')) {
    other.toggleAttribute('aria-current', other === row);
    if (other === row) other.setAttribute('aria-current', 'true');
    other.querySelector('button').setAttribute('aria-pressed', String(other === row));
  }
}

function choose(value) {
  place('sliding-key').value = value;
  sayChosen();
  drawSliding();
}

// The rules whose other limits were tried, as the page lists them.
const tried = report.what_if.filter(({ limits }) => limits.length > 0);
const triedNow = () => tried[place('what-if-rule') ? place('what-if-rule').value : 0];
const smallest = ({ denied, requests }) => denied.findIndex((count) => count * 100 <= requests);

function drawWhatIf() {
  if (!place('what-if')) return;
  const { limits, denied, keys_denied: keysDenied, requests, keys, rule: name } = triedNow();
  const { limit } = rule(name);
  const share = (part, whole) => (whole === 0 ? 0 : (100 * part) / whole);
  const most = Math.max(1, ...denied.map((part) => share(part, requests)), ...keysDenied.map((part) => share(part, keys)));
  // Small shares are what is looked for: the scale is that of the square root.
  const height = (part, whole) => Math.sqrt(share(part, whole));
  const ticks = [0, 1, 5, 10, 25, 50, 75, 100];
  const rows = ticks.slice(0, 1 + ticks.findIndex((tick) => tick >= most))
    .map((tick) => ({ at: Math.sqrt(tick), text: tick + '\u00a0%' }));
  // The limits stand side by side, as far apart as the steps of the slider.
  const last = Math.max(1, limits.length - 1);
  const width = Math.max(240, place('what-if').clientWidth) - 60;
  const every = Math.max(1, Math.ceil((limits.length * 44) / width));
  const columns = limits.map((figure, at) => ({ at, lines: [number(figure)] })).filter(({ at }) => at % every === 0);
  const first = smallest(triedNow());
  const chart = frame(place('what-if'), {
    x: [0, last], y: [0, rows[rows.length - 1].at], rows, columns,
    label: `Share denied at each limit from ${number(limits[0])} to ${number(limits[limits.length - 1])}: requests from ` +
      `${percent(denied[0], requests)} down to ${percent(denied[denied.length - 1], requests)}. The slider below reads it.`,
  });
  const { left, right, top, bottom } = chart.inner;
  chart.add('text', { x: right, y: bottom + 33, 'text-anchor': 'end' }, 'limits that were tried, evenly spaced');
  const line = (counts, whole) =>
    counts.map((part, at) => `${at === 0 ? 'M' : 'L'}${chart.toX(at)} ${chart.toY(height(part, whole))}`).join('');
  const one = chart.toY(1);
  chart.add('line', { class: 'rule', x1: left, x2: right, y1: one, y2: one });
  chart.add('path', { class: 'line keys', d: line(keysDenied, keys) });
  chart.add('path', { class: 'line denied', d: line(denied, requests) });
  chart.cursor = chart.add('line', { class: 'cursor', y1: top, y2: bottom });
  const mark = (at, text, y) => {
    // Seven pixels a letter.
    chart.add('line', { class: 'rule', x1: chart.toX(at), x2: chart.toX(at), y1: y + 4, y2: bottom });
    const anchor = chart.toX(at) + 7 * text.length > right ? 'end' : 'start';
    chart.add('text', { class: 'strong', x: chart.toX(at) + (anchor === 'end' ? -5 : 5), y: y + 12, 'text-anchor': anchor }, text);
  };
  if (limits.includes(limit)) mark(limits.indexOf(limit), 'replayed: ' + number(limit), top);
  if (first >= 0) mark(first, '≤ 1\u00a0%: ' + number(limits[first]), top + 18);
  chart.dots = [chart.add('circle', { class: 'dot keys', r: 5 }), chart.add('circle', { class: 'dot denied', r: 6 })];
  // The thumb stands below its limit; browsers make it about 16 pixels wide.
  const slider = place('limit');
  slider.style.width = right - left + 16 + 'px';
  slider.style.marginLeft = left - 8 + 'px';
  place('what-if').onclick = (event) => {
    const box = chart.svg.getBoundingClientRect();
    slider.value = Math.round(chart.fromX(((event.clientX - box.left) * chart.width) / box.width));
    readLimit();
  };
  place('one-per-cent').hidden = first < 0;
  readLimit = () => {
    const at = Number(slider.value);
    const pixels = chart.toX(at);
    chart.cursor.setAttribute('x1', pixels);
    chart.cursor.setAttribute('x2', pixels);
    [[keysDenied[at], keys], [denied[at], requests]].forEach(([part, whole], index) => {
      chart.dots[index].setAttribute('cx', pixels);
      chart.dots[index].setAttribute('cy', chart.toY(height(part, whole)));
    });
    const { window, period } = rule(name);
    place('limit-value').textContent = quota(limits[at], window, period);
    place('requests-share').textContent = percent(denied[at], requests);
    place('requests-count').textContent = `${number(denied[at])} of ${number(requests)}`;
    place('keys-share').textContent = percent(keysDenied[at], keys);
    place('keys-count').textContent = `${number(keysDenied[at])} of ${number(keys)}`;
    slider.setAttribute('aria-valuetext',
      `${number(limits[at])}: ${percent(denied[at], requests)} of requests, ${percent(keysDenied[at], keys)} of keys denied`);
  };
  readLimit();
}

let readLimit = () => {};

// Puts the slider on the limit that was replayed, or the next greater one that was tried.
function startWhatIf() {
  if (!place('what-if')) return;
  const { limits, rule: name } = triedNow();
  const { limit } = rule(name);
  const at = limits.findIndex((candidate) => candidate >= limit);
  place('limit').max = limits.length - 1;
  place('limit').value = at < 0 ? limits.length - 1 : at;
}

// Keys with a chart become buttons; of many keys the first are listed.
function prepareKeys() {
  for (const name of document.querySelectorAll('#keys .has-chart')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'key';
    button.title = 'Show its sliding count';
    button.append(...name.childNodes);
    button.onclick = () => {
      choose(name.closest('tr').dataset.chosen);
      place('sliding').closest('section').scrollIntoView({ block: 'nearest' });
    };
    name.replaceChildren(button);
  }
  const rows = document.querySelectorAll('#keys tr.more');
  if (rows.length === 0) return;
  const table = place('keys');
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'unfold';
  const fold = (folded) => {
    table.classList.toggle('folded', folded);
    button.textContent = folded ? `Show all ${table.tBodies[0].rows.length}` : 'Show fewer';
    button.setAttribute('aria-expanded', String(!folded));
  };
  button.onclick = () => fold(!table.classList.contains('folded'));
  button.setAttribute('aria-controls', 'keys');
  fold(true);
  table.after(button);
}

// Says all times in UTC or in the reader's time zone.
function sayTimes() {
  isLocal = document.querySelector('input[name="zone"]:checked').value === 'local';
  for (const time of document.querySelectorAll('time')) time.textContent = instant(Date.parse(time.dateTime));
  for (const name of document.querySelectorAll('.zone')) name.textContent = zone();
}

function start() {
  document.documentElement.classList.add('js');
  prepareKeys();
  sayChosen();
  startWhatIf();
  const draw = () => {
    drawTraffic();
    drawSliding();
    drawWhatIf();
  };
  draw();
  const on = (id, action) => place(id) && place(id).addEventListener('input', action);
  for (const radio of document.querySelectorAll('input[name="zone"]')) {
    radio.addEventListener('input', () => {
      sayTimes();
      draw();
    });
  }
  on('traffic-rule', drawTraffic);
  on('sliding-key', () => choose(place('sliding-key').value));
  for (const radio of document.querySelectorAll('input[name="sliding-time"]')) radio.addEventListener('input', () => choose(place('sliding-key').value));
  on('what-if-rule', () => {
    startWhatIf();
    drawWhatIf();
  });
  on('limit', () => readLimit());
  if (place('one-per-cent')) {
    place('one-per-cent').onclick = () => {
      place('limit').value = smallest(triedNow());
      readLimit();
    };
  }
  let width = document.documentElement.clientWidth;
  window.addEventListener('resize', () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    draw();
  });
}

start();
