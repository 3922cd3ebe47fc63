-- Renews leases. KEYS: those of `counters.lua`, the key of each lease, and the key of the era. ARGV: those of the counters,
-- whose permits are the charges, and then for each lease: the sequence of the request, 1 if the lease is new, 1 if it is
-- registered, the cap, the wanted permits, and its term in microseconds. The reply, for each lease: 1 if it is known, the
-- permits granted, the permits left to others, and the wait in microseconds until there are more (-1: unknown; -2: unknown,
-- and no lease is registered, because the server does not tell when its run began; -3: a key holds data of another program).
local fields = 6
local base = 1 + fields_each * #counters
local era_key = KEYS[#KEYS]

-- The time since which the server has forgotten nothing: the time noted by this run of the server, or its start if none is
-- noted. After a failover, the note is of another run. The note outlives the permits of every lease by at least the time
-- for which a lease is kept, and by a day more without a cluster. In a cluster each key has a note of its own.
local started, run, noted_until
local extra = string.find(era_key, '{', 1, true) and 0 or 86400000000
local function era_start(keep)
    if not started then
        -- The user may have no right to it, and servers that are not Redis may leave out what is needed.
        local info = redis.pcall('INFO', 'server')
        info = type(info) == 'string' and info or ''
        run = string.match(info, 'run_id:(%x+)')
        local uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or '')
        if not run or not uptime then
            return nil
        end
        local noted = redis.call('GET', era_key)
        local noted_run, at, ends = string.match(noted or '', '^(%x+) (%d+) (%d+)$')
        started, noted_until = tonumber(at), tonumber(ends)
        if not noted then
            -- The difference of two times in whole seconds may be one second too long.
            started, noted_until = now - 1000000 * math.max(uptime - 1, 0), 0
        -- Claim: shared 8, the note of another run of the server is not believed.
        elseif noted_run ~= run or not started or started > now then
            started, noted_until = now, 0
        end
    end
    if noted_until < now + 2 * keep + extra then
        noted_until = now + 3 * keep + 2 * extra
        redis.call('SET', era_key, run .. ' ' .. text(started) .. ' ' .. text(noted_until))
        expire(era_key, noted_until)
    end
    return started
end

local function renew(at, counter)
    local from = base + fields * (at - 1)
    local key, sequence = KEYS[2 * #counters + at], tonumber(ARGV[from + 1])
    local is_new, is_registered = ARGV[from + 2] == '1', ARGV[from + 3] == '1'
    local cap, wanted, term = tonumber(ARGV[from + 4]), tonumber(ARGV[from + 5]), tonumber(ARGV[from + 6])
    local keep, charge = term + counter.window, counter.permits
    leases.read(counter)
    leases.repair(counter)
    local own, server_era = leases.find(counter, key), 0
    if is_registered then
        server_era = era_start(keep)
        if own and own.server_era ~= server_era then
            -- It was granted before the server forgot something.
            own = nil
        end
    end
    if not own and (not is_new or is_registered and (not server_era or now < server_era + keep)) then
        return 0, 0, 0, server_era and -1 or -2
    end
    own = own or { granted = 0, sequence = 0, held = 0 }
    counter.held = counter.held - own.held
    counter.by.repair(counter)
    local is_first = sequence > own.sequence
    -- Claim: shared 1, a report is charged once.
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
        own.sequence = sequence
    end
    -- Claim: shared 11, a lease that begins again is registered.
    local held = is_registered and own.granted or 0
    leases.write(counter, key, own, held, term, server_era)
    local left = math.max(free - own.granted, 0)
    local wait = -1
    if left == 0 then
        counter.held = counter.held + own.granted
        counter.until_last = math.max(counter.until_last, now + keep)
        counter.by.peek(counter)
        wait = counter.wait
    end
    return 1, own.granted, left, wait
end

-- Whether an error is due to data that another program has written to a key.
local function is_of_data(message)
    for _, part in ipairs({ 'WRONGTYPE', 'not an integer', 'attempt to' }) do
        if string.find(message, part, 1, true) then
            return true
        end
    end
    return false
end

local answer = {}
for at, counter in ipairs(counters) do
    -- The data of one counter fails only its own lease. Other errors, as of a server without memory, fail all.
    local is_done, known, granted, left, wait = pcall(renew, at, counter)
    if not is_done then
        local message = type(known) == 'table' and known.err or tostring(known)
        if not is_of_data(message) then
            return redis.error_reply(message)
        end
        known, granted, left, wait = 0, 0, 0, -3
    end
    answer[#answer + 1] = known
    answer[#answer + 1] = granted
    answer[#answer + 1] = left
    answer[#answer + 1] = wait
end
return answer
