-- Holds: a hash beside the counts of a part, with a field for each life of a node. Its value: what it holds, what it was
-- granted (the same, or more if that is only its budget), the sequence of its last question, until when it counts,
-- how long it is kept after a question, and the era that it began in. All numbers, with spaces in between.
local holds = {}

-- What others than this life hold, until when the last of it counts, and the life itself, if it counts. Those that are
-- too far ahead, since TIME has gone back, are as if they had asked now.
function holds.read(part, life)
    part.held, part.until_last, part.lapsed, part.ahead_lives, part.own = 0, 0, {}, {}, nil
    if part.holds == part.key then
        -- Nobody may have any.
        return
    end
    local fields = redis.call('HGETALL', part.holds)
    for at = 1, #fields, 2 do
        local held, granted, sequence, ends, keep, era =
            string.match(fields[at + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
        held, ends, keep = tonumber(held), tonumber(ends), tonumber(keep)
        if not ends or ends <= now then
            part.lapsed[#part.lapsed + 1] = fields[at]
        elseif fields[at] == life then
            part.own = {
                held = held,
                granted = tonumber(granted),
                sequence = tonumber(sequence),
                era = tonumber(era),
            }
        else
            part.held = part.held + held
            part.until_last = math.max(part.until_last, math.min(ends, now + keep))
            if ends > now + keep then
                part.ahead_lives[#part.ahead_lives + 1] =
                    { fields[at], held, tonumber(granted), tonumber(sequence), keep, tonumber(era) }
            end
        end
    end
end

local function write(part, life, held, granted, sequence, keep, era)
    local numbers = { text(held), text(granted), text(sequence), text(now + keep), text(keep), text(era) }
    redis.call('HSET', part.holds, life, table.concat(numbers, ' '))
end

-- Forgets those that no longer count, so that TIME, should it go back, finds none that others were given the permits of;
-- and has those that are too far ahead end as if they had asked now.
function holds.repair(part)
    if #part.lapsed > 0 then
        redis.call('HDEL', part.holds, unpack(part.lapsed))
    end
    for _, other in ipairs(part.ahead_lives) do
        write(part, unpack(other))
    end
    if #part.ahead_lives > 0 then
        expire(part.holds, part.until_last)
    end
end

-- Keeps a life from now on: one that had lapsed too, and begins once more.
function holds.write(part, life, held, granted, sequence, keep, era)
    holds.repair(part)
    write(part, life, held, granted, sequence, keep, era)
    expire(part.holds, math.max(part.until_last, now + keep))
end
