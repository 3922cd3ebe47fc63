-- Cells: a hash with a field for each cell that has permits, named by the number of the cell since 1970. The field 'era' is
-- the time at which the hash was made, plus one for each repair, so that permits from before a repair are not refunded
-- after it.
local cells = {}

local function read(counter)
    local tick = math.floor(now / counter.cell_width)
    local fields = redis.call('HGETALL', counter.key)
    counter.tick, counter.era, counter.spent, counter.ahead = tick, nil, 0, 0
    counter.counted, counter.stale, counter.newer = {}, {}, {}
    for at = 1, #fields, 2 do
        local field, count = fields[at], tonumber(fields[at + 1])
        if field == 'era' then
            counter.era = count
        else
            local number = tonumber(field)
            if number > tick then
                counter.ahead = counter.ahead + count
                counter.newer[#counter.newer + 1] = field
            -- Claim: redis 3, the sum has one cell more than the window.
            elseif number < tick - counter.cells then
                counter.stale[#counter.stale + 1] = field
            else
                counter.spent = counter.spent + count
                counter.counted[#counter.counted + 1] = { number, count }
            end
        end
    end
end

local function keep(counter)
    -- Claim: redis 7, a hash of cells expires after the last sum that counts it.
    expire(counter.key, (counter.tick + counter.cells + 1) * counter.cell_width)
end

-- If TIME has gone back, cells that are ahead of it are added to the current cell, which is not before their charge.
function cells.repair(counter)
    read(counter)
    if #counter.newer > 0 then
        redis.call('HINCRBY', counter.key, text(counter.tick), text(counter.ahead))
        redis.call('HINCRBY', counter.key, 'era', '1')
        redis.call('HDEL', counter.key, unpack(counter.newer))
        keep(counter)
        read(counter)
    end
end

-- The current cell and the N cells before it count: an interval of one window touches no others.
function cells.peek(counter)
    if not counter.tick then
        read(counter)
    end
    local spent = counter.spent + counter.ahead + counter.held
    counter.remaining = math.max(counter.limit - spent, 0)
    if counter.permits > counter.limit then
        counter.wait = -1
    elseif counter.permits > counter.remaining then
        -- The request fits once this number of permits has left the window.
        local leaving = spent + counter.permits - counter.limit
        local counted = counter.counted
        -- Cells that are ahead of TIME count as the current one.
        counted[#counted + 1] = { counter.tick, counter.ahead }
        table.sort(counted, function(one, other) return one[1] < other[1] end)
        for _, cell in ipairs(counted) do
            leaving = leaving - cell[2]
            if leaving <= 0 then
                counter.wait = (cell[1] + counter.cells + 1) * counter.cell_width - now
                break
            end
        end
        if leaving > 0 then
            -- Only leased permits are missing. They may be returned at any time, and they expire.
            counter.wait = math.max(counter.until_last - now, counter.cell_width)
        end
    end
end

function cells.charge(counter)
    counter.spent = counter.spent + counter.permits
    counter.counted[#counter.counted + 1] = { counter.tick, counter.permits }
    redis.call('HINCRBY', counter.key, text(counter.tick), text(counter.permits))
    if not counter.era then
        counter.era = now
        redis.call('HSET', counter.key, 'era', text(now))
    end
    if #counter.stale > 0 then
        redis.call('HDEL', counter.key, unpack(counter.stale))
    end
    keep(counter)
    counter.first, counter.second = counter.tick, counter.era
end

-- Refunds unless the cell is gone, or a repair has changed the era. A refunded request was not served, so every window still
-- holds at most the limit of served permits.
function cells.refund(counter)
    local cell = text(counter.first)
    local spent = tonumber(redis.call('HGET', counter.key, cell) or 0)
    local era = tonumber(redis.call('HGET', counter.key, 'era') or 0)
    -- No charge has the era 0, which stands for a counter without cells.
    if era == 0 or era ~= counter.second or spent < counter.permits then
        return 0
    end
    redis.call('HINCRBY', counter.key, cell, text(-counter.permits))
    return counter.permits
end
