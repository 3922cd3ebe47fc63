-- The violations of a rule by a key, and the block of the key: a string of five numbers.
--  at: the end of the block, or the beginning of the window of violations, in ticks of 10 ms
--  is_block: 1 if `at` is the end of a block, otherwise 0
--  level: the blocks since the key was last forgiven
--  violations: those in the window
--  changed: the reading of the last change, in microseconds
--
-- The limit of the counter is the number of violations that begin a block.
local blocks = {}
local tick = 10000
local highest_level = 31

local function length(counter, level)
    return math.min(counter.shortest * counter.factor ^ (level - 1), counter.longest)
end

local function write_block(counter, at, is_block, level, violations)
    counter.at, counter.is_block, counter.level, counter.violations = at, is_block, level, violations
    local numbers = { text(at), is_block and '1' or '0', text(level), text(violations), text(now) }
    redis.call('SET', counter.key, table.concat(numbers, ' '))
    -- From then on the string has the same effect as a missing key.
    local lasts = math.max(level > 0 and counter.forgiveness or 0, violations > 0 and counter.window or 0)
    expire(counter.key, (at + math.max(math.ceil(lasts / tick), 1)) * tick)
end

local function read_block(counter)
    -- The last five values of a block: see counters.lua. Its receipt is (0, 0) until a block begins.
    counter.shortest, counter.longest, counter.forgiveness = counter.first, counter.second, counter.reserve
    counter.reserve = 0
    counter.extends, counter.factor = counter.permit_micros == 1, counter.permit_units
    counter.first, counter.second = 0, 0
    local at, is_block, level, violations, changed =
        string.match(redis.call('GET', counter.key) or '', '^(%d+) ([01]) (%d+) (%d+) (%d+)$')
    counter.at, counter.is_block = tonumber(at) or 0, is_block == '1'
    counter.level, counter.violations = tonumber(level) or 0, tonumber(violations) or 0
    counter.is_ahead = (tonumber(changed) or 0) > now
    if counter.is_ahead then
        -- TIME has gone back. A block ends at most the longest block from now, and a window begins at most now.
        local latest = math.ceil((now + (counter.is_block and counter.longest or 0)) / tick)
        counter.at = math.min(counter.at, latest)
    end
end

function blocks.repair(counter)
    read_block(counter)
    if counter.is_ahead then
        write_block(counter, counter.at, counter.is_block, counter.level, counter.violations)
    end
end

local function is_blocked(counter)
    return counter.is_block and now < counter.at * tick
end

function blocks.peek(counter)
    if not counter.at then
        read_block(counter)
    end
    local blocked = is_blocked(counter)
    counter.remaining = blocked and 0 or counter.limit
    counter.wait = blocked and counter.at * tick - now or 0
end

-- Counts a violation, which may begin a block.
local function violate(counter)
    local current = math.floor(now / tick)
    local in_window = not counter.is_block and counter.violations > 0 and current * tick < counter.at * tick + counter.window
    local begin, level, before = counter.at, counter.level, counter.violations
    if not in_window then
        begin, before = math.max(current, counter.at), 0
        if (begin - counter.at) * tick >= counter.forgiveness then
            level = 0
        end
    end
    if before + 1 < counter.limit then
        return write_block(counter, begin, false, level, before + 1)
    end
    level = math.min(level + 1, highest_level)
    local ends = math.ceil((math.max(now, begin * tick) + length(counter, level)) / tick)
    write_block(counter, ends, true, level, 0)
    -- The receipt (1, 0): a block began.
    counter.first = 1
end

-- A denied request is a violation, or a retry if the key is blocked.
function blocks.deny(counter)
    if not is_blocked(counter) then
        violate(counter)
    elseif counter.extends then
        local ends = math.ceil((now + length(counter, counter.level)) / tick)
        if ends > counter.at then
            write_block(counter, ends, true, counter.level, 0)
        end
    end
    blocks.peek(counter)
end

-- An admission is no violation.
function blocks.charge() end

function blocks.refund(counter)
    return counter.permits
end
