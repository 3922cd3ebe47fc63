#!/usr/bin/env bash
# Writes an access log in the combined format to standard output, of at least the given number of bytes (default 1 GB). The
# output is equal each time.
# A thousand clients are busy, one of them more than all others, and a million clients send few requests. Every 997th line is
# late by up to two seconds. With the second argument "ordered", no line is late.
set -euo pipefail
exec awk -v bytes="${1:-1000000000}" -v ordered="${2:-}" '
function below(end) {
    # Park and Miller: the same numbers by every awk.
    seed = (seed * 16807) % 2147483647
    return seed % end
}
BEGIN {
    seed = 20150517
    split("/ /index.html /api/v1/items /api/v1/items/17 /login /static/app.js /static/app.css /images/logo.png", paths, " ")
    agents[1] = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko/20100101 Firefox/24.0"
    agents[2] = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77"
    agents[3] = "curl/7.35.0"
    while (written < bytes) {
        if (below(100) == 0) second += 1
        at = second
        lines += 1
        if (ordered == "" && lines % 997 == 0 && at > 2) at -= below(3)
        day = 1 + int(at / 86400) % 28
        kind = below(100)
        if (kind < 5) client = "192.0.2.1"
        else if (kind < 90) { number = below(1000); client = "10.0." int(number / 250) "." number % 250 }
        else { number = below(1000000); client = "172." 16 + int(number / 65536) "." int(number / 256) % 256 "." number % 256 }
        line = sprintf("%s - - [%02d/May/2015:%02d:%02d:%02d +0000] \"GET %s HTTP/1.1\" %d %d \"http://example.com%s\" \"%s\"", \
            client, day, int(at / 3600) % 24, int(at / 60) % 60, at % 60, paths[1 + below(8)], \
            below(20) ? 200 : 404, below(50000), paths[1 + below(8)], agents[1 + below(3)])
        print line
        written += length(line) + 1
    }
}'
