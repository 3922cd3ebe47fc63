-- What every script of ringgate begins with. TIME is read once: it moves while a script runs. All numbers are whole,
-- of microseconds and permits, below 2^53, and written by '%.0f': tostring would lose digits.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local function text(number)
    return string.format('%.0f', number)
end

-- By the same clock as TIME: whoever finds the key gone would have found nothing in it that counts.
local function expire(key, microseconds)
    redis.call('PEXPIREAT', key, text(math.ceil(microseconds / 1000)))
end
