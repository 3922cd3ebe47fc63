-- The generic cell rate algorithm: a string of five numbers. The first two are the theoretical arrival time, at which
-- no charge counts any more. The third is the reading of the last change. The fourth is 1 if that was a refund or a
-- repair. The last is the time per permit of that change, in units. The limit of the counter is the burst.
--
-- A time has two parts: microseconds, and units of half a nanosecond, of which a microsecond has 2000. One number would lose
-- digits. The time per permit is rounded up to a unit, as in the limiter of one process.
local gcra = {}
local units_each = 2000

-- Adds or subtracts (by a factor of -1) the time of this number of permits.
local function shift(counter, time, permits, factor)
    local micros = time[1] + factor * permits * counter.permit_micros
    local units = time[2] + factor * permits * counter.permit_units
    return { micros + math.floor(units / units_each), units % units_each }
end

-- The time per permit in units.
local function permit_of(counter)
    return counter.permit_micros * units_each + counter.permit_units
end

local function is_negative(time)
    return time[1] < 0
end

-- The second number of a receipt: the units of the arrival time, and the reading of the charge, modulo 51 days so that the
-- number stays below 2^53. After a reset, another charge may lead to the same arrival time, but at another reading.
local function receipt(time, at)
    return time[2] + units_each * (at % 2 ^ 42)
end

local function read(counter)
    local micros, units, at, not_charge, permit =
        string.match(redis.call('GET', counter.key) or '', '^(%d+) (%d+) (%d+) ([01]) (%d+)$')
    counter.time, counter.is_charge = { tonumber(micros) or 0, tonumber(units) or 0 }, not_charge == '0'
    counter.at = tonumber(at) or 0
    counter.ahead = math.max(counter.at - now, 0)
    if counter.ahead > 0 then
        -- TIME has gone back. No permit was refilled since the last change, as far as is known.
        counter.time[1] = math.max(counter.time[1] - counter.ahead, 0)
        counter.is_charge = false
    end
    local own = permit_of(counter)
    if permit and tonumber(permit) ~= own and counter.time[1] >= now then
        -- The limit was changed. At the new rate, the same permits take another time, which is rounded up to a microsecond.
        local ahead = counter.time[1] - now + counter.time[2] / units_each
        counter.time = { now + math.floor(ahead * (own / tonumber(permit))) + 1, 0 }
        counter.is_charge = false
    end
end

local function write(counter, time, is_charge)
    counter.time, counter.is_charge = time, is_charge
    local numbers = { text(time[1]), text(time[2]), text(now), is_charge and '0' or '1', text(permit_of(counter)) }
    redis.call('SET', counter.key, table.concat(numbers, ' '))
    -- From there on the bucket is as full as a new one.
    expire(counter.key, time[1] + 1)
end

-- The later one of the arrival time and now.
local function start_of(counter)
    -- Claim: redis 10, an idle bucket is no fuller than a new one.
    return counter.time[1] >= now and counter.time or { now, 0 }
end

-- If TIME has gone back, the bucket has as many permits now as at the last change.
function gcra.repair(counter)
    read(counter)
    if counter.ahead > 0 then
        write(counter, counter.time, false)
        counter.ahead = 0
    end
end

-- A bucket has room while the arrival time is no further ahead than the time of a burst.
function gcra.peek(counter)
    if not counter.time then
        read(counter)
    end
    local start = start_of(counter)
    local room = shift(counter, { now - start[1], -start[2] }, counter.limit, 1)
    local free = 0
    if not is_negative(room) then
        local permit = counter.permit_micros + counter.permit_units / units_each
        free = math.floor((room[1] + room[2] / units_each) / permit)
        -- The division is rounded, by less than one permit.
        if is_negative(shift(counter, room, free, -1)) then
            free = free - 1
        elseif not is_negative(shift(counter, room, free + 1, -1)) then
            free = free + 1
        end
    end
    -- Claim: redis 11, the registered permits of a bucket have no room.
    counter.remaining = math.max(free - counter.held, 0)
    local needed = counter.permits + counter.held
    if counter.permits > counter.limit then
        counter.wait = -1
    elseif counter.permits <= counter.remaining then
        counter.wait = 0
    elseif needed > counter.limit then
        -- Only leased permits are missing. They may be returned at any time, and they expire.
        counter.wait = math.max(counter.until_last - now, counter.window)
    else
        local ready = shift(counter, shift(counter, counter.time, needed, 1), counter.limit, -1)
        counter.wait = ready[1] + (ready[2] > 0 and 1 or 0) - now
    end
end

function gcra.charge(counter)
    write(counter, shift(counter, start_of(counter), counter.permits, 1), true)
    counter.first, counter.second = counter.time[1], receipt(counter.time, now)
end

-- Refunds while nothing was charged or refunded since: later charges began where this one ended.
function gcra.refund(counter)
    read(counter)
    local second = receipt(counter.time, counter.at)
    if not counter.is_charge or counter.time[1] ~= counter.first or second ~= counter.second then
        return 0
    end
    write(counter, shift(counter, counter.time, counter.permits, -1), false)
    return counter.permits
end
