-- Renews leases. KEYS: those of `counters.lua`, and the key of the era. ARGV: those of the counters, whose permits are the
-- charges, and then for each lease: its number, the sequence of the request, 1 if the lease is new, 1 if it is registered,
-- the cap, the wanted permits, and how long it is kept in microseconds. The reply, for each lease: 1 if it is known, the
-- permits granted, the permits left to others, and the wait in microseconds until there are more (-1: unknown).
local fields = 7
local base = 1 + fields_each * #counters

-- The time since which the server has forgotten nothing: the time noted by this run of the server, or its start if none is
-- noted. After a failover, the note is of another run.
local started
local function era_start(keep)
    if not started then
        local info = redis.call('INFO', 'server')
        local run = string.match(info, 'run_id:(%x+)')
        local noted = redis.call('GET', KEYS[#KEYS])
        local noted_run, at = string.match(noted or '', '^(%x+) (%d+)$')
        started = tonumber(at)
        if noted and (noted_run ~= run or not started or started > now) then
            started = now
        elseif not noted then
            -- The difference of two times in whole seconds may be one second too long.
            local uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
            started = now - 1000000 * math.max(uptime - 1, 0)
        end
        if not noted or started == now then
            redis.call('SET', KEYS[#KEYS], run .. ' ' .. text(started))
        end
        -- A cluster has a note for each key, which no lease outlives. A single server has one note, without an expiry.
        if string.find(KEYS[#KEYS], '{', 1, true) then
            expire(KEYS[#KEYS], now + 2 * keep)
        end
    end
    return started
end

local answer = {}
for at, counter in ipairs(counters) do
    local from = base + fields * (at - 1)
    local lease, sequence = ARGV[from + 1], tonumber(ARGV[from + 2])
    local is_new, is_registered = ARGV[from + 3] == '1', ARGV[from + 4] == '1'
    local cap, wanted, keep = tonumber(ARGV[from + 5]), tonumber(ARGV[from + 6]), tonumber(ARGV[from + 7])
    local charge = counter.permits
    leases.read(counter, lease)
    local own, era = counter.own, 0
    if is_registered then
        era = era_start(keep)
        if own and own.era ~= era then
            -- It was granted before the server forgot something.
            own = nil
        end
    end
    if not own and (not is_new or is_registered and now < era + keep) then
        answer[#answer + 1] = 0
        answer[#answer + 1] = 0
        answer[#answer + 1] = 0
        answer[#answer + 1] = -1
    else
        own = own or { held = 0, granted = 0, sequence = 0 }
        counter.by.repair(counter)
        local is_first = sequence > own.sequence
        if is_first and charge > 0 then
            -- Whether there is room or not: the permits were spent under the lease.
            counter.by.charge(counter)
        end
        counter.permits = 1
        counter.by.peek(counter)
        local free = counter.remaining
        if is_first then
            local covered = math.max(math.min(own.granted, cap) - charge, 0)
            -- A registered lease gets at most half, so that others find room.
            local some = is_registered and math.ceil(free / 2) or free
            own.granted = math.max(covered, math.min(wanted, some))
            own.held = is_registered and own.granted or 0
            own.sequence = sequence
        end
        leases.write(counter, lease, own.held, own.granted, own.sequence, keep, era)
        local left = math.max(free - own.granted, 0)
        local wait = -1
        if left == 0 then
            counter.held = counter.held + own.granted
            counter.until_last = math.max(counter.until_last, now + keep)
            counter.by.peek(counter)
            wait = counter.wait
        end
        answer[#answer + 1] = 1
        answer[#answer + 1] = own.granted
        answer[#answer + 1] = left
        answer[#answer + 1] = wait
    end
end
return answer
