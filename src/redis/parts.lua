-- KEYS: two for each part, of its counts and of its holds (the same, if nobody may have any). ARGV: a verb, and then for each part: how it is counted
-- ('log' or 'cells'), the limit, the window of a log or the width of a cell in microseconds, the number of cells, the
-- permits, 0 if the part is enforced or else a number that it shares with the other parts of its rule, the two numbers
-- of a receipt, and what of the limit is to be left alone.
local told = 9
local verb = ARGV[1]
local parts = {}
for at = 1, math.floor(#KEYS / 2) do
    local from = told * (at - 1) + 2
    parts[at] = {
        key = KEYS[2 * at - 1],
        holds = KEYS[2 * at],
        held = 0,
        until_last = 0,
        by = ARGV[from] == 'log' and log or cells,
        limit = tonumber(ARGV[from + 1]),
        window = tonumber(ARGV[from + 2]),
        cells = tonumber(ARGV[from + 3]),
        permits = tonumber(ARGV[from + 4]),
        shadow = tonumber(ARGV[from + 5]),
        first = tonumber(ARGV[from + 6]),
        second = tonumber(ARGV[from + 7]),
        reserve = tonumber(ARGV[from + 8]),
        wait = 0,
    }
end
