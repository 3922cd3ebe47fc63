-- Refunds a request that was charged and not served. The reply: the permits that were refunded, for each counter.
local answer = {}
for at, counter in ipairs(counters) do
    answer[at] = counter.by.refund(counter)
end
return answer
