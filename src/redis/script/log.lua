-- A sliding log: a sorted set with one member for each permit, whose score is its time. A member is '<time>:<sequence>'. The
-- sequence has leading zeros, so the last member is the newest, and no two members are equal.
local log = {}

local function member(at, sequence)
    -- Claim: redis 4, sequences have leading zeros.
    return text(at) .. ':' .. string.format('%09.0f', sequence)
end

-- Adds this number of members from a sequence on, at most 1000 in one command, since a Lua call has limited arguments.
local function add(key, at, sequence, permits)
    local score = text(at)
    local last = sequence + permits
    while sequence < last do
        local members = {}
        for next = sequence, math.min(last, sequence + 1000) - 1 do
            members[#members + 1] = score
            members[#members + 1] = member(at, next)
        end
        redis.call('ZADD', key, unpack(members))
        sequence = sequence + #members / 2
    end
end

-- If TIME has gone back, permits that are ahead of it become permits of now, which is no earlier than they were spent.
function log.repair(counter)
    local newest = redis.call('ZRANGE', counter.key, -1, -1, 'WITHSCORES')
    if newest[1] and tonumber(newest[2]) > now then
        local after, at = '(' .. text(now), text(now)
        local ahead = redis.call('ZCOUNT', counter.key, after, '+inf')
        local sequence = log.next(redis.call('ZREVRANGEBYSCORE', counter.key, at, at, 'WITHSCORES', 'LIMIT', 0, 1))
        -- Claim: redis 6, permits ahead of the clock become permits of now.
        add(counter.key, now, sequence, ahead)
        redis.call('ZREMRANGEBYSCORE', counter.key, after, '+inf')
        expire(counter.key, now + counter.window)
        counter.sequence = sequence + ahead
    else
        counter.sequence = log.next(newest)
    end
end

-- The sequence of the next member of now.
function log.next(newest)
    if newest[1] and tonumber(newest[2]) == now then
        return tonumber(string.match(newest[1], ':(%d+)$')) + 1
    end
    return 0
end

-- A permit counts while it is younger than a window, and if it is ahead of TIME.
function log.peek(counter)
    -- Claim: redis 2, a log counts a whole window.
    local since = '(' .. text(now - counter.window)
    local counted = redis.call('ZCOUNT', counter.key, since, '+inf')
    local spent = counted + counter.held
    counter.remaining = math.max(counter.limit - spent, 0)
    if counter.permits > counter.limit then
        counter.wait = -1
    elseif counter.permits > counter.remaining then
        -- There is room once this number of permits has left the window.
        local leaving = spent + counter.permits - counter.limit
        if leaving > counted then
            -- Only leased permits are missing. They may be returned at any time, and they expire.
            counter.wait = math.max(counter.until_last - now, counter.window)
        else
            local last = redis.call('ZRANGEBYSCORE', counter.key, since, '+inf', 'WITHSCORES', 'LIMIT', leaving - 1, 1)
            counter.wait = math.min(tonumber(last[2]), now) + counter.window - now
        end
    end
end

-- Needs the sequence that log.repair has set.
function log.charge(counter)
    add(counter.key, now, counter.sequence, counter.permits)
    redis.call('ZREMRANGEBYSCORE', counter.key, '-inf', text(now - counter.window))
    expire(counter.key, now + counter.window)
    counter.first, counter.second = now, counter.sequence
end

-- Removes the members of the request. No other request has members of these names.
function log.refund(counter)
    local gone, sequence = 0, counter.second
    local last = sequence + counter.permits
    while sequence < last do
        local members = {}
        for next = sequence, math.min(last, sequence + 1000) - 1 do
            members[#members + 1] = member(counter.first, next)
        end
        gone = gone + redis.call('ZREM', counter.key, unpack(members))
        sequence = sequence + #members
    end
    return gone
end
