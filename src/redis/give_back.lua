-- Gives back what a request was charged and has not used; the answer: how many permits of it, for each part.
local answer = {}
for at, part in ipairs(parts) do
    answer[at] = part.by.give_back(part)
end
return answer
