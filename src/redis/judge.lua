-- 'take': all enforced parts have room, and these are charged, with those of rules in the shadow whose parts all have
-- room; or none is. 'peek': the same, without taking. The answer: whether all enforced parts have room, the time, and
-- for each part whether it has room (0: no; 1: yes; 2: yes, but its rule in the shadow has not), what is left, the
-- wait in microseconds (-1: for ever), and the two numbers of its receipt.
local full = {}
for _, part in ipairs(parts) do
    holds.read(part)
    if verb == 'take' then
        part.by.repair(part)
        holds.repair(part)
    end
    part.by.look(part)
    if part.wait ~= 0 then
        full[part.shadow] = true
    end
end
local admitted = not full[0]
local answer = { admitted and 1 or 0, now }
for _, part in ipairs(parts) do
    local room = part.wait == 0 and 1 or 0
    if room == 1 and part.shadow ~= 0 and full[part.shadow] then
        room = 2
    elseif room == 1 and admitted and verb == 'take' then
        part.by.take(part)
        part.remaining = part.remaining - part.permits
    end
    answer[#answer + 1] = room
    answer[#answer + 1] = part.remaining
    answer[#answer + 1] = part.wait
    answer[#answer + 1] = part.first
    answer[#answer + 1] = part.second
end
return answer
