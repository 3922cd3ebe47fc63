"""Prints a log of JSON lines whose names contain markup, scripts and control characters."""

import json

NAMES = [
    "</script><script>alert(1)</script>",
    "\"'><b onmouseover=alert(1)>&amp;</b>",
    "<!--<script>",
    "</title></textarea></style><img src=x onerror=alert(1)>",
    "${alert(1)}{{data}}",
    "nul\u0000 escape\u001b[31m delete\u007f line\r\nbreak",
    "\u202egnp.exe\u202c \u2066isolated\u2069 \u200bnothing\ufeff",
    "\u2028line\u2029paragraph",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "e\u0301\u0300\u0302 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U000e0041",
    "__proto__",
    "constructor",
    "",
    "x" * 3_000,
    "x" * 3_000 + "y",
    "W \u00a0\u3000" * 60,
]
START = 1_431_857_100_000

lines = []
for number, name in enumerate(NAMES):
    for request in range(40 + 10 * number):
        lines.append((START + 7_000 * number + 300 * request, name))
for time, name in sorted(lines):
    print(json.dumps({"time": time, "user": name}))
