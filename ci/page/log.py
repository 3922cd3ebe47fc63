"""Prints an access log in the common format, the same in each run."""

import random
from datetime import datetime, timedelta, timezone

START = datetime(2015, 5, 17, 10, 5, tzinfo=timezone.utc)

random.seed(1)
lines = [(random.randrange(3 * 86_400), f"192.0.2.{random.randrange(250)}") for _ in range(5_000)]
# Some clients send many requests at the same time.
for client in range(1, 31):
    begin = random.randrange(3 * 86_400)
    lines += [(begin + random.randrange(80), f"198.51.100.{client}") for _ in range(20 + 3 * client)]
for second, client in sorted(lines):
    time = (START + timedelta(seconds=second)).strftime("%d/%b/%Y:%H:%M:%S +0000")
    print(f'{client} - - [{time}] "GET / HTTP/1.1" 200 17')
