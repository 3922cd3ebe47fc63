-- Reads the counters. KEYS: two for each counter, its name and the name of its leases (equal if it has none). ARGV: a verb,
-- and then eleven values for each counter:
--  1. its counting: 'log', 'cells', 'gcra', 'slots' or 'blocks'
--  2. the limit (of gcra, the burst)
--  3. in microseconds, the width of a cell, the window of a log, of gcra or of violations, or the term of a slot
--  4. the number of cells (0 for others)
--  5. the permits
--  6. a number that the counters of its rule share, negative if the rule is not enforced
--  7 to 11. the two numbers of a receipt, or of a slot's name; the permits that must stay free; and the two parts of the time per
--     permit of gcra. For a block: in microseconds, the first and the longest block and the time after which a key is forgiven; 1 if
--     a retry extends the block; and the factor of repeated blocks
local fields_each = 11
local countings = { log = log, cells = cells, gcra = gcra, slots = slots, blocks = blocks }
local verb = ARGV[1]
local counters = {}
-- A renewal has one more key for each counter, and then the key of the era.
for at = 1, math.floor(#KEYS / (verb == 'renew' and 3 or 2)) do
    local from = fields_each * (at - 1) + 2
    counters[at] = {
        key = KEYS[2 * at - 1],
        leases = KEYS[2 * at],
        held = 0,
        until_last = 0,
        by = countings[ARGV[from]],
        limit = tonumber(ARGV[from + 1]),
        -- The window of cells is this many cells, which may be a little longer than that of the quota.
        window = tonumber(ARGV[from + 2]) * math.max(tonumber(ARGV[from + 3]), 1),
        cell_width = tonumber(ARGV[from + 2]),
        cells = tonumber(ARGV[from + 3]),
        permits = tonumber(ARGV[from + 4]),
        rule = tonumber(ARGV[from + 5]),
        first = tonumber(ARGV[from + 6]),
        second = tonumber(ARGV[from + 7]),
        reserve = tonumber(ARGV[from + 8]),
        permit_micros = tonumber(ARGV[from + 9]),
        permit_units = tonumber(ARGV[from + 10]),
        wait = 0,
    }
end
