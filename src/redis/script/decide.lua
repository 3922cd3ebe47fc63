-- Decides. A request is admitted if every enforced counter has room for its permits and its reserve. Then 'charge' charges these
-- counters, and those of each rule in shadow mode whose counters all have room. If an enforced counter has no room for the permits,
-- 'charge' counts a violation for each enforced rule that has such a counter and a counter of violations. 'deny' only counts these
-- violations, and 'peek' changes nothing. 'owe' charges all counters, whether they have room or not.
--
-- The reply: 1 if the request is admitted, the time, and for each counter, without its reserve: its room (0: none, 1: enough,
-- 2: enough, but another counter of its shadow rule has none), the permits that are left, the wait in microseconds (-1: for ever),
-- and the two numbers of its receipt.
local full, admitted = {}, true
for _, counter in ipairs(counters) do
    -- Claim: shared 4, a decision reads the registered permits.
    leases.read(counter)
    if verb ~= 'peek' then
        counter.by.repair(counter)
        leases.repair(counter)
    end
    counter.by.peek(counter)
    -- Claim: redis 9, debt needs no room.
    if counter.wait ~= 0 and verb ~= 'owe' then
        full[counter.rule] = true
        admitted = admitted and counter.rule < 0
    elseif counter.permits + counter.reserve > counter.remaining and counter.rule > 0 and verb ~= 'owe' then
        -- The node of the request may have spent the reserve.
        admitted = false
    end
end
local answer = { admitted and 1 or 0, now }
for _, counter in ipairs(counters) do
    if (verb == 'charge' or verb == 'deny') and counter.by == blocks and counter.permits > 0 and counter.rule > 0 and full[counter.rule] then
        blocks.deny(counter)
    end
    local room = (counter.wait == 0 or verb == 'owe') and 1 or 0
    if room == 1 and counter.rule < 0 and full[counter.rule] then
        room = 2
    -- Claim: redis 5, a counter is charged only if all have room.
    elseif room == 1 and admitted and verb ~= 'peek' and verb ~= 'deny' then
        counter.by.charge(counter)
        counter.remaining = math.max(counter.remaining - counter.permits, 0)
    end
    answer[#answer + 1] = room
    answer[#answer + 1] = counter.remaining
    answer[#answer + 1] = counter.wait
    answer[#answer + 1] = counter.first
    answer[#answer + 1] = counter.second
end
return answer
