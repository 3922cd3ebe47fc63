-- A sliding log: a sorted set with one member for each permit, its score the time. A member is '<time>:<sequence>',
-- the sequence with leading zeros, so that the last member is the newest, and no two are the same.
local log = {}

local function member(at, sequence)
    return text(at) .. ':' .. string.format('%09.0f', sequence)
end

-- Adds so many members, from this sequence on.
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

-- Permits whose time is newer than TIME, which has gone back, are taken to be of now: no earlier than they were
-- spent.
function log.repair(part)
    local newest = redis.call('ZRANGE', part.key, -1, -1, 'WITHSCORES')
    if newest[1] and tonumber(newest[2]) > now then
        local after, at = '(' .. text(now), text(now)
        local ahead = redis.call('ZCOUNT', part.key, after, '+inf')
        local sequence = log.next(redis.call('ZREVRANGEBYSCORE', part.key, at, at, 'WITHSCORES', 'LIMIT', 0, 1))
        add(part.key, now, sequence, ahead)
        redis.call('ZREMRANGEBYSCORE', part.key, after, '+inf')
        expire(part.key, now + part.window)
        part.sequence = sequence + ahead
    else
        part.sequence = log.next(newest)
    end
end

-- The sequence that a member of now would have.
function log.next(newest)
    if newest[1] and tonumber(newest[2]) == now then
        return tonumber(string.match(newest[1], ':(%d+)$')) + 1
    end
    return 0
end

-- What counts is younger than a window; what is ahead of TIME counts as well.
function log.look(part)
    local since = '(' .. text(now - part.window)
    local counted = redis.call('ZCOUNT', part.key, since, '+inf')
    local spent = counted + part.held + part.reserve
    part.remaining = math.max(part.limit - spent, 0)
    if part.permits > part.limit then
        part.wait = -1
    elseif part.permits > part.remaining then
        -- When so many have left, there is room.
        local leaving = spent + part.permits - part.limit
        if leaving > counted then
            -- Only holds are in the way, which may be given back at any time, and end by themselves.
            part.wait = math.max(part.until_last - now, part.window)
        else
            local last = redis.call('ZRANGEBYSCORE', part.key, since, '+inf', 'WITHSCORES', 'LIMIT', leaving - 1, 1)
            part.wait = math.min(tonumber(last[2]), now) + part.window - now
        end
    end
end

function log.take(part)
    add(part.key, now, part.sequence, part.permits)
    redis.call('ZREMRANGEBYSCORE', part.key, '-inf', text(now - part.window))
    expire(part.key, now + part.window)
    part.first, part.second = now, part.sequence
end

-- Removes the very members: nobody else has ones of these names.
function log.give_back(part)
    local gone, sequence = 0, part.second
    local last = sequence + part.permits
    while sequence < last do
        local members = {}
        for next = sequence, math.min(last, sequence + 1000) - 1 do
            members[#members + 1] = member(part.first, next)
        end
        gone = gone + redis.call('ZREM', part.key, unpack(members))
        sequence = sequence + #members
    end
    return gone
end
