-- The beginning of every script. TIME is read once, since it may move while a script runs. All numbers are whole, of
-- microseconds or permits, below 2^53. They are written by '%.0f', since tostring would lose digits.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local function text(number)
    -- Claim: redis 8, numbers are written with all their digits.
    return string.format('%.0f', number)
end

-- Expiry follows the clock of TIME: in an expired key, nothing would count any more.
local function expire(key, microseconds)
    redis.call('PEXPIREAT', key, text(math.ceil(microseconds / 1000)))
end
