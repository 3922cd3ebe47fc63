-- Leases: a hash beside each counter, with a field for each lease. Its value: the permits registered, the permits granted
-- (equal, or more if they are only a budget), the sequence of its last request, its end, how long it is kept after a
-- request, and the era that it began in. All are numbers, separated by spaces.
local leases = {}

-- Reads the permits that other leases hold, the end of the last of them, and this lease, if it is current. A lease that is
-- too far ahead, since TIME has gone back, counts as if it was renewed now.
function leases.read(counter, lease)
    counter.held, counter.until_last, counter.expired, counter.leases_ahead, counter.own = 0, 0, {}, {}, nil
    if counter.leases == counter.key then
        -- The counter has no leases.
        return
    end
    local fields = redis.call('HGETALL', counter.leases)
    for at = 1, #fields, 2 do
        local held, granted, sequence, ends, keep, era =
            string.match(fields[at + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
        held, ends, keep = tonumber(held), tonumber(ends), tonumber(keep)
        if not ends or ends <= now then
            counter.expired[#counter.expired + 1] = fields[at]
        elseif fields[at] == lease then
            counter.own = {
                held = held,
                granted = tonumber(granted),
                sequence = tonumber(sequence),
                era = tonumber(era),
            }
        else
            counter.held = counter.held + held
            counter.until_last = math.max(counter.until_last, math.min(ends, now + keep))
            if ends > now + keep then
                counter.leases_ahead[#counter.leases_ahead + 1] =
                    { fields[at], held, tonumber(granted), tonumber(sequence), keep, tonumber(era) }
            end
        end
    end
end

local function write(counter, lease, held, granted, sequence, keep, era)
    local numbers = { text(held), text(granted), text(sequence), text(now + keep), text(keep), text(era) }
    redis.call('HSET', counter.leases, lease, table.concat(numbers, ' '))
end

-- Removes leases that have expired, since others may have been granted their permits and TIME may go back. Leases that are
-- too far ahead end as if they were renewed now.
function leases.repair(counter)
    -- A call takes some 8,000 arguments at most.
    for from = 1, #counter.expired, 1000 do
        local last = math.min(from + 999, #counter.expired)
        redis.call('HDEL', counter.leases, unpack(counter.expired, from, last))
    end
    for _, other in ipairs(counter.leases_ahead) do
        write(counter, unpack(other))
    end
    if #counter.leases_ahead > 0 then
        expire(counter.leases, counter.until_last)
    end
end

-- Keeps a lease from now on: one that had expired too, and is_new once more.
function leases.write(counter, lease, held, granted, sequence, keep, era)
    leases.repair(counter)
    write(counter, lease, held, granted, sequence, keep, era)
    expire(counter.leases, math.max(counter.until_last, now + keep))
end
