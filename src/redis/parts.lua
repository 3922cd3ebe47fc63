-- KEYS: one for each part. ARGV: a verb, and then for each part: how it is counted ('log' or 'cells'), the limit, the
-- window of a log or the width of a cell in microseconds, the number of cells, the permits, 0 if the part is enforced
-- or else a number that it shares with the other parts of its rule, and the two numbers of a receipt.
local verb = ARGV[1]
local parts = {}
for at, key in ipairs(KEYS) do
    local from = 8 * (at - 1) + 2
    parts[at] = {
        key = key,
        by = ARGV[from] == 'log' and log or cells,
        limit = tonumber(ARGV[from + 1]),
        window = tonumber(ARGV[from + 2]),
        cells = tonumber(ARGV[from + 3]),
        permits = tonumber(ARGV[from + 4]),
        shadow = tonumber(ARGV[from + 5]),
        first = tonumber(ARGV[from + 6]),
        second = tonumber(ARGV[from + 7]),
        wait = 0,
    }
end
