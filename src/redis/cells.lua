-- Cells: a hash with a field for each cell that something was spent in, its name the number of the cell since the
-- epoch. The field 'era' is when the hash was made, and one more for each repair, so that what was spent before one of
-- these is not given back after it.
local cells = {}

local function read(part)
    local tick = math.floor(now / part.window)
    local fields = redis.call('HGETALL', part.key)
    part.tick, part.era, part.spent, part.ahead = tick, nil, 0, 0
    part.counted, part.stale, part.newer = {}, {}, {}
    for at = 1, #fields, 2 do
        local field, count = fields[at], tonumber(fields[at + 1])
        if field == 'era' then
            part.era = count
        else
            local number = tonumber(field)
            if number > tick then
                part.ahead = part.ahead + count
                part.newer[#part.newer + 1] = field
            elseif number < tick - part.cells then
                part.stale[#part.stale + 1] = field
            else
                part.spent = part.spent + count
                part.counted[#part.counted + 1] = { number, count }
            end
        end
    end
end

local function keep(part)
    expire(part.key, (part.tick + part.cells + 1) * part.window)
end

-- Cells that are newer than TIME, which has gone back, are added to the present one: no earlier than they were spent.
function cells.repair(part)
    read(part)
    if #part.newer > 0 then
        redis.call('HINCRBY', part.key, text(part.tick), text(part.ahead))
        redis.call('HINCRBY', part.key, 'era', '1')
        redis.call('HDEL', part.key, unpack(part.newer))
        keep(part)
        read(part)
    end
end

-- What counts is of this cell or of the N before it: all that an interval of one window can touch.
function cells.look(part)
    if not part.tick then
        read(part)
    end
    local spent = part.spent + part.ahead + part.held + part.reserve
    part.remaining = math.max(part.limit - spent, 0)
    if part.permits > part.limit then
        part.wait = -1
    elseif part.permits > part.remaining then
        -- When so many have left, there is room.
        local leaving = spent + part.permits - part.limit
        local counted = part.counted
        counted[#counted + 1] = { part.tick, part.ahead }
        table.sort(counted, function(one, other) return one[1] < other[1] end)
        for _, cell in ipairs(counted) do
            leaving = leaving - cell[2]
            if leaving <= 0 then
                part.wait = (cell[1] + part.cells + 1) * part.window - now
                break
            end
        end
        if leaving > 0 then
            -- Only holds are in the way, which may be given back at any time, and end by themselves.
            part.wait = math.max(part.until_last - now, part.window)
        end
    end
end

function cells.take(part)
    part.spent = part.spent + part.permits
    part.counted[#part.counted + 1] = { part.tick, part.permits }
    redis.call('HINCRBY', part.key, text(part.tick), text(part.permits))
    if not part.era then
        part.era = now
        redis.call('HSET', part.key, 'era', text(now))
    end
    if #part.stale > 0 then
        redis.call('HDEL', part.key, unpack(part.stale))
    end
    keep(part)
    part.first, part.second = part.tick, part.era
end

-- As long as the cell is there, and was not added to another. What was given back was never used, so no window held
-- it.
function cells.give_back(part)
    local cell = text(part.first)
    local spent = tonumber(redis.call('HGET', part.key, cell) or 0)
    local era = tonumber(redis.call('HGET', part.key, 'era') or 0)
    if era ~= part.second or spent < part.permits then
        return 0
    end
    redis.call('HINCRBY', part.key, cell, text(-part.permits))
    return part.permits
end
