-- Leases. The registered permits of all leases are a hash beside the counter, with a field for each time at which permits
-- end, in microseconds. That time is a multiple of a sixteenth of the time for which a lease is kept, so the size of the hash
-- does not depend on the number of leases. The field 'latest' is the reading of the last change. The field 'era' is the time
-- at which the hash was made, plus one for each repair.
--
-- Each lease has a key of its own, which expires with the lease: the permits granted, the sequence of its last request, the
-- end of its term, the end of its registered permits (0: it has none), and the eras of the hash and of the server.
local leases = {}

-- Reads the permits that are registered, and the last time at which some of them end.
function leases.read(counter)
    counter.held, counter.until_last, counter.ended, counter.current = 0, 0, {}, {}
    counter.lease_era, counter.time_went_back = 0, false
    if counter.leases == counter.key then
        -- The counter has no leases.
        return
    end
    local fields, latest = redis.call('HGETALL', counter.leases), 0
    for at = 1, #fields, 2 do
        local field, number = fields[at], tonumber(fields[at + 1])
        if field == 'latest' then
            latest = number
        elseif field == 'era' then
            counter.lease_era = number
        elseif tonumber(field) <= now then
            counter.ended[#counter.ended + 1] = field
        else
            counter.held = counter.held + number
            counter.until_last = math.max(counter.until_last, tonumber(field))
            counter.current[#counter.current + 1] = field
        end
    end
    if latest > now + counter.window / 16 then
        -- TIME has gone back. The last permits end as long after now as they did after the last change.
        counter.time_went_back = true
        -- Claim: shared 9, permits that are ahead of the clock end together.
        counter.until_last = now + math.max(counter.until_last - latest, 0)
    end
end

-- Removes permits that have ended, because others may be granted them, and TIME may go back. After TIME has gone back, one field
-- has all remaining permits, and no lease with registered permits is valid any more: the field that its key names is gone, or
-- belongs to other leases.
function leases.repair(counter)
    if counter.time_went_back then
        redis.call('HINCRBY', counter.leases, 'era', '1')
        counter.lease_era = counter.lease_era + 1
        if #counter.current > 0 then
            redis.call('HDEL', counter.leases, unpack(counter.current))
            redis.call('HSET', counter.leases, text(counter.until_last), text(counter.held))
        end
    end
    if #counter.ended > 0 then
        redis.call('HDEL', counter.leases, unpack(counter.ended))
    end
    -- Claim: shared 10, a step that removes ended permits notes its reading.
    if counter.time_went_back or #counter.ended > 0 then
        redis.call('HSET', counter.leases, 'latest', text(now))
    end
    if counter.time_went_back and #counter.current > 0 then
        -- This comes last: if the time is past already, the hash is removed, and a write after it would leave one without
        -- an expiry.
        expire(counter.leases, counter.until_last)
    end
end

-- The lease of this key, if its term is not over and its registered permits are in the hash.
function leases.find(counter, key)
    local value = redis.call('GET', key) or ''
    local granted, sequence, ends, held_until, lease_era, server_era =
        string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if not ends or tonumber(ends) <= now then
        return nil
    end
    local own = {
        granted = tonumber(granted),
        sequence = tonumber(sequence),
        held_until = tonumber(held_until),
        server_era = tonumber(server_era),
        held = 0,
    }
    if own.held_until > 0 then
        own.held = own.granted
        if tonumber(lease_era) ~= counter.lease_era then
            return nil
        end
    end
    return own
end

local function add(counter, ends, permits)
    if redis.call('HINCRBY', counter.leases, text(ends), text(permits)) == 0 then
        redis.call('HDEL', counter.leases, text(ends))
    end
end

-- Renews a lease. The registered permits that it has now end a window after its term. Those that it had before are
-- removed.
function leases.write(counter, key, own, held, term, server_era)
    local held_until = 0
    if held > 0 then
        -- Claim: shared 5, the server keeps permits registered for a window after the term.
        local keep = term + counter.window
        local part = math.ceil(keep / 16)
        held_until = math.ceil((now + keep) / part) * part
        add(counter, held_until, held)
        counter.until_last = math.max(counter.until_last, held_until)
        if counter.lease_era == 0 then
            counter.lease_era = now
            redis.call('HSET', counter.leases, 'era', text(now))
        end
        expire(counter.leases, counter.until_last)
    end
    if own.held > 0 then
        add(counter, own.held_until, -own.held)
    end
    if held > 0 or own.held > 0 then
        redis.call('HSET', counter.leases, 'latest', text(now))
    end
    local numbers = { own.granted, own.sequence, now + term, held_until, counter.lease_era, server_era }
    for at, number in ipairs(numbers) do
        numbers[at] = text(number)
    end
    redis.call('SET', key, table.concat(numbers, ' '))
    expire(key, now + term)
end
