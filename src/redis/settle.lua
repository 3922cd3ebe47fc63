-- Answers what nodes ask about their accounts. KEYS: as for `judge.lua`, and last the key of the era. ARGV: after the
-- parts, whose permits are what is to be charged, for each of them: the life, the sequence of the question, 1 if the
-- life begins, 1 if what is granted is a hold and no budget, the most that is uncharged until this is answered, what is
-- wanted, and how long the life is kept, in microseconds. The answer, for each: 1 if the life is known, what is
-- granted, what is left to others, and the wait in microseconds until there is more (-1: nobody knows).
local fields = 7
local base = 1 + told * #parts

-- Since when the server forgets nothing: this run of it, as far as anybody has noted it, and otherwise since it was
-- started. After a failover it is another run that has the note.
local born
local function begin_of_era(keep)
    if not born then
        local info = redis.call('INFO', 'server')
        local run = string.match(info, 'run_id:(%x+)')
        local noted = redis.call('GET', KEYS[#KEYS])
        local noted_run, at = string.match(noted or '', '^(%x+) (%d+)$')
        born = tonumber(at)
        if noted and (noted_run ~= run or not born or born > now) then
            born = now
        elseif not noted then
            -- The difference of two whole seconds, so that it may be one too many.
            local uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
            born = now - 1000000 * math.max(uptime - 1, 0)
        end
        if not noted or born == now then
            redis.call('SET', KEYS[#KEYS], run .. ' ' .. text(born))
        end
        -- Of one server there is one note; of a cluster one for each key, which no life outlives.
        if string.find(KEYS[#KEYS], '{', 1, true) then
            expire(KEYS[#KEYS], now + 2 * keep)
        end
    end
    return born
end

local answer = {}
for at, part in ipairs(parts) do
    local from = base + fields * (at - 1)
    local life, sequence = ARGV[from + 1], tonumber(ARGV[from + 2])
    local begins, is_hold = ARGV[from + 3] == '1', ARGV[from + 4] == '1'
    local cap, want, keep = tonumber(ARGV[from + 5]), tonumber(ARGV[from + 6]), tonumber(ARGV[from + 7])
    local charge = part.permits
    holds.read(part, life)
    local own, era = part.own, 0
    if is_hold then
        era = begin_of_era(keep)
        if own and own.era ~= era then
            -- What was granted before the server forgot something.
            own = nil
        end
    end
    if not own and (not begins or is_hold and now < era + keep) then
        answer[#answer + 1] = 0
        answer[#answer + 1] = 0
        answer[#answer + 1] = 0
        answer[#answer + 1] = -1
    else
        own = own or { held = 0, granted = 0, sequence = 0 }
        part.by.repair(part)
        local fresh = sequence > own.sequence
        if fresh and charge > 0 then
            -- Whether there is room or not: what was used was held.
            part.by.take(part)
        end
        part.permits = 1
        part.by.look(part)
        local free = part.remaining
        if fresh then
            local covered = math.max(math.min(own.granted, cap) - charge, 0)
            -- Of a hold others are left as much as it gets.
            local some = is_hold and math.ceil(free / 2) or free
            own.granted = math.max(covered, math.min(want, some))
            own.held = is_hold and own.granted or 0
            own.sequence = sequence
        end
        holds.write(part, life, own.held, own.granted, own.sequence, keep, era)
        local left = math.max(free - own.granted, 0)
        local wait = -1
        if left == 0 then
            part.held = part.held + own.granted
            part.until_last = math.max(part.until_last, now + keep)
            part.by.look(part)
            wait = part.wait
        end
        answer[#answer + 1] = 1
        answer[#answer + 1] = own.granted
        answer[#answer + 1] = left
        answer[#answer + 1] = wait
    end
end
return answer
