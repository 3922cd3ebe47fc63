// Figures and times as the tables write them.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

// Digits in groups of three: 12,345.
function number(figure) {
  return String(figure).replace(/\B(?=(\d{3})+$)/g, ',');
}

// A share in per cent, rounded half up; never 0 % of something, nor 100 % of what is not all.
function percent(part, whole) {
  if (part === 0 || whole === 0) return '0\u00a0%';
  if (part === whole) return '100\u00a0%';
  const hundredths = Math.floor((part * 20000 + whole) / (2 * whole));
  const tenths = Math.floor((part * 2000 + whole) / (2 * whole));
  if (hundredths === 0) return '<\u00a00.01\u00a0%';
  if (hundredths < 1000) return (hundredths / 100).toFixed(2) + '\u00a0%';
  return tenths >= 1000 ? '>\u00a099.9\u00a0%' : (tenths / 10).toFixed(1) + '\u00a0%';
}

// Whether times are those of the reader's time zone instead of UTC.
let isLocal = false;

// The milliseconds by which the time zone is behind UTC at an instant.
function behind(ms) {
  return isLocal ? new Date(ms).getTimezoneOffset() * MINUTE : 0;
}

// An instant: its day, and its time to the second, or to the millisecond when that is `fine` enough to matter.
function day(ms) {
  return new Date(ms - behind(ms)).toISOString().slice(0, -14);
}

function clock(ms, fine) {
  return new Date(ms - behind(ms)).toISOString().slice(-13, fine ? -1 : -5);
}

// The name of the time zone, as in UTC or Europe/Vienna.
function zone() {
  return isLocal ? Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time' : 'UTC';
}

function instant(ms, fine) {
  return day(ms) + ' ' + clock(ms, fine);
}

// The time from one instant to another, the day said once.
function interval(from, to, fine) {
  return `${instant(from, fine)} to ${day(from) === day(to) ? clock(to, fine) : instant(to, fine)} ${zone()}`;
}

// A window as words: 60 s, 5 min, 36 h, 2 d.
function duration(ms) {
  for (const [unit, length, least] of [['d', DAY, 2], ['h', HOUR, 1], ['min', MINUTE, 2], ['s', SECOND, 1]]) {
    const count = ms / length;
    if (count >= least && Number.isInteger(count)) return count + '\u00a0' + unit;
  }
  return ms + '\u00a0ms';
}

// A limit as words: 20 per 60 s, 100 per h. The period is that of a calendar.
function quota(limit, window, period) {
  if (period) {
    return `${number(limit)}\u00a0per\u00a0${period}`;
  }
  return `${number(limit)}\u00a0per\u00a0${duration(window).replace(/^1\u00a0/, '')}`;
}

// How many of something.
function counted(figure, what) {
  return `${number(figure)} ${what}${figure === 1 ? '' : 's'}`;
}
