-- Slots in flight: a sorted set with one member for each slot, whose score is the time at which it ends unless its node renews it.
-- A member is the name of the slot. Here the window is the term of the node that asks. Other nodes may have other terms.
local slots = {}

-- The longest term of a node.
local longest_term = 60000000

-- If TIME has gone back, slots that end later than the longest term from now end then.
function slots.repair(counter)
    local ends = text(now + math.max(counter.window, longest_term))
    for _, slot in ipairs(redis.call('ZRANGEBYSCORE', counter.key, '(' .. ends, '+inf')) do
        redis.call('ZADD', counter.key, ends, slot)
    end
end

-- A slot counts until it ends. No time frees a slot that its node renews.
function slots.peek(counter)
    local held = redis.call('ZCOUNT', counter.key, '(' .. text(now), '+inf')
    counter.remaining = math.max(counter.limit - held, 0)
    if counter.permits > counter.remaining then
        counter.wait = -1
    end
end

local function member(counter)
    return text(counter.first) .. ':' .. text(counter.second)
end

-- Adds the slot, or renews it.
function slots.charge(counter)
    redis.call('ZREMRANGEBYSCORE', counter.key, '-inf', text(now))
    redis.call('ZADD', counter.key, text(now + counter.window), member(counter))
    -- The slot of another node may have a longer term.
    local last = redis.call('ZRANGE', counter.key, -1, -1, 'WITHSCORES')
    expire(counter.key, tonumber(last[2]))
end

-- Releases the slot. A slot that has ended is released already.
function slots.refund(counter)
    redis.call('ZREM', counter.key, member(counter))
    return counter.permits
end
