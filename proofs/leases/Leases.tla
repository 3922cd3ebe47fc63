------------------------------ MODULE Leases ------------------------------
(* Leases of one counter: src/shared/lease/state/protocol.md and "The protocol of leases" of src/shared/protocol.md.
   README.md names the function of the crate for each event, and what is abstracted. *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Nodes,       \* 1..K
    Limit,       \* L
    Window,      \* W
    Term,        \* D
    LastTime,    \* the store's clock reads 0..LastTime
    Reports,     \* the most reports of a node
    Copies,      \* the most copies of reports in the network at once
    Repeats,     \* whether the network may repeat a copy
    Suspends,    \* whether a decider may be suspended between its reading of the clock and its exchange
    Registered,  \* mode Lease: the store registers what it grants. Otherwise mode Sync
    Pending,     \* in mode Sync, the most permits of a budget
    Mutations    \* {"none"}, or rules of the protocol of which one is dropped

VARIABLES
    now,         \* the store's clock
    charged,     \* the permits that the store has charged, by their time
    held,        \* the registered permits, by the time at which they end (held_until)
    leases,      \* what the store keeps of a lease, by its number
    node,        \* each node
    network,     \* copies of reports that may arrive at the store at any time, or never
    answers,     \* answers that may arrive at the node at any time, or never
    used,        \* the permits that were admitted, by their time: what is claimed about
    mutation
vars == <<now, charged, held, leases, node, network, answers, used, mutation>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Sub(a, b) == IF a > b THEN a - b ELSE 0
Moments == 0..(LastTime + Term + Window)

RECURSIVE SumOver(_, _)
SumOver(f, ts) == IF ts = {} THEN 0 ELSE LET t == CHOOSE t \in ts : TRUE IN f[t] + SumOver(f, ts \ {t})

(* Counter::advance and Leases::advance are the conditions on times here, so nothing has to be removed. *)
S == SumOver(charged, {t \in Moments : t <= now /\ t + Window > now})
HeldIn(h) == SumOver(h, {t \in Moments : t > now})
Free(h) == Sub(Limit, S + HeldIn(h))

NoPending == [charge |-> 0, cap |-> 0, wanted |-> 0, isNew |-> FALSE, some |-> FALSE]
NoSpend == <<-1, 0, 0, 0>>
Lease(n, i) == <<n, i>>
NewNode == [
    lease |-> 1, sequence |-> 0,
    known |-> FALSE,    \* Standing::Held
    epoch |-> 0, budget |-> 0, use |-> 0,   \* BalanceWord
    term |-> 0,         \* the end of the term: a reading before it may spend
    heard |-> 0,        \* the time at which the store executed the last report whose answer was heard (E)
    carried |-> 0,      \* carried_permits
    pending |-> NoPending,  \* the UnansweredRequest of Phase
    spend |-> NoSpend]  \* the balance that a decider has read, and its reading, which is before the end of the term

Init ==
    /\ now = 0
    /\ charged = [t \in Moments |-> 0]
    /\ held = [t \in Moments |-> 0]
    /\ leases = <<>>
    /\ node = [n \in Nodes |-> NewNode]
    /\ network = {}
    /\ answers = {}
    /\ used = [t \in Moments |-> 0]
    /\ mutation \in Mutations

---------------------------------------------------------------------------
Tick ==
    /\ now < LastTime
    /\ now' = now + 1
    \* What no later step and no claim depends on is removed, so that fewer states differ.
    /\ charged' = [t \in Moments |-> IF t + Window > now' THEN charged[t] ELSE 0]
    /\ held' = [t \in Moments |-> IF t > now' THEN held[t] ELSE 0]
    /\ leases' = [i \in {i \in DOMAIN leases : leases[i].ends > now' \/ mutation = "an ended lease returns"} |-> leases[i]]
    /\ LET oldest == {now'} \cup {node[n].spend[4] : n \in {n \in Nodes : node[n].spend # NoSpend}}
       IN used' = [t \in Moments |-> IF \A reading \in oldest : t + Window <= reading THEN 0 ELSE used[t]]
    /\ UNCHANGED <<node, network, answers, mutation>>

(* LeaseState::spend reads the balance, then the term and the clock. *)
Evaluate(n) ==
    LET d == node[n]
    IN /\ d.spend = NoSpend
       /\ d.use < d.budget
       /\ now < d.term \/ mutation = "a decider does not read the term"
       /\ IF Suspends
          THEN /\ node' = [node EXCEPT ![n].spend = <<d.epoch, d.budget, d.use, now>>]
               /\ UNCHANGED used
          ELSE /\ node' = [node EXCEPT ![n].use = @ + 1]
               /\ used' = [used EXCEPT ![now] = @ + 1]
       /\ UNCHANGED <<now, charged, held, leases, network, answers, mutation>>

(* BalanceWord::spend. If the exchange is later than E + D, the permit is spent at E + D, which is in the call, or at the reading. *)
Exchange(n) ==
    LET d == node[n]
        at == Max(d.spend[4], Min(now, d.heard + Term))
        fits == <<d.spend[1], d.spend[2], d.spend[3]>> = <<d.epoch, d.budget, d.use>>
    IN /\ d.spend # NoSpend
       /\ node' = [node EXCEPT ![n].spend = NoSpend, ![n].use = IF fits THEN @ + 1 ELSE @]
       /\ used' = IF fits THEN [used EXCEPT ![at] = @ + 1] ELSE used
       /\ UNCHANGED <<now, charged, held, leases, network, answers, mutation>>

(* LeaseManager::begin_request and BalanceWord::report *)
Report(n) ==
    LET d == node[n]
        ends == d.known /\ d.use = 0 /\ (d.budget = 0 \/ ~Registered) /\ now >= d.heard + Term
        lost == [d EXCEPT !.lease = IF ends THEN @ + 1 ELSE @, !.sequence = IF ends THEN 0 ELSE @,
                          !.known = IF ends THEN FALSE ELSE @, !.budget = IF ends THEN 0 ELSE @,
                          !.epoch = IF ends THEN @ + 1 ELSE @]
    IN /\ ~d.pending.some
       /\ d.sequence + d.lease <= Reports
       /\ \E wanted \in 0..(IF Registered THEN Limit ELSE Pending) :
            LET cap == IF mutation = "a report keeps the whole budget" THEN Min(lost.budget, Max(wanted, lost.use))
                       ELSE Max(Min(wanted, lost.budget), lost.use)
                kept == IF mutation = "a report keeps the whole budget" THEN lost.budget - lost.use ELSE cap - lost.use
            IN node' = [node EXCEPT ![n] = [lost EXCEPT !.sequence = @ + 1, !.epoch = @ + 1, !.budget = kept, !.use = 0,
                    !.carried = 0, !.pending = [charge |-> lost.use + lost.carried, cap |-> cap + lost.carried,
                                                wanted |-> wanted, isNew |-> ~lost.known, some |-> TRUE]]]
       /\ UNCHANGED <<now, charged, held, leases, network, answers, used, mutation>>

(* LeaseManager::request: a copy of the unanswered report, Phase::Asking or Phase::Failing. Another copy may be sent at any later time. *)
Send(n) ==
    LET d == node[n]
        copy == [lease |-> Lease(n, d.lease), sequence |-> d.sequence, charge |-> d.pending.charge, cap |-> d.pending.cap,
                 wanted |-> d.pending.wanted, isNew |-> d.pending.isNew, sent |-> now]
    IN /\ d.pending.some
       /\ copy \notin network
       /\ Cardinality(network) < Copies
       /\ network' = network \cup {copy}
       /\ UNCHANGED <<now, charged, held, leases, node, answers, used, mutation>>

(* Counter::renew of src/shared/memory, which answers as renew.lua does. It grants half of the free permits, or all in mode Sync. Here
   it may also grant none or all of them: how much is not part of the proof. *)
Execute(r, share) ==
    LET isKnown == r.lease \in DOMAIN leases
                   /\ (leases[r.lease].ends > now \/ mutation = "an ended lease returns")
        old == IF isKnown THEN leases[r.lease] ELSE [granted |-> 0, sequence |-> 0, ends |-> 0, held |-> 0, until |-> 0]
        answer == [lease |-> r.lease, sequence |-> r.sequence, sent |-> r.sent, executed |-> now]
        \* Leases::take
        taken == IF isKnown /\ old.held > 0 /\ old.until > now THEN [held EXCEPT ![old.until] = @ - old.held] ELSE held
        isFirst == r.sequence > old.sequence
        chargedNow == IF isFirst THEN [charged EXCEPT ![now] = @ + r.charge] ELSE charged
        sum == S + (IF isFirst THEN r.charge ELSE 0)
        free == IF mutation = "a grant ignores other leases" THEN Sub(Limit, sum) ELSE Sub(Limit, sum + HeldIn(taken))
        some == IF mutation = "a grant ignores the limit" THEN Limit
                ELSE CASE share = "none" -> 0 [] share = "half" -> (free + 1) \div 2 [] share = "all" -> free
        covered == IF mutation = "a grant forgets uncharged use" THEN 0 ELSE Sub(Min(old.granted, r.cap), r.charge)
        granted == IF isFirst THEN Max(covered, Min(r.wanted, some)) ELSE old.granted
        kept == IF Registered THEN granted ELSE 0
        until == now + (IF mutation = "registered permits end with the term" THEN Term ELSE Term + Window)
        stored == [granted |-> granted, sequence |-> Max(r.sequence, old.sequence), ends |-> now + Term, held |-> kept, until |-> until]
    IN IF ~isKnown /\ ~r.isNew
       THEN /\ answers' = answers \cup {[answer EXCEPT !.sequence = r.sequence] @@ [granted |-> -1]}
            /\ UNCHANGED <<charged, held, leases>>
       ELSE /\ charged' = chargedNow
            /\ held' = IF mutation = "granted permits are not registered" THEN taken ELSE [taken EXCEPT ![until] = @ + kept]
            /\ leases' = (r.lease :> stored) @@ leases
            /\ answers' = answers \cup {answer @@ [granted |-> granted]}

Arrive ==
    /\ \E r \in network :
        /\ \E share \in {"none", "half", "all"} : Execute(r, share)
        \* The network keeps a copy, which may arrive again, and one that is no longer awaited may still arrive.
        /\ \E again \in (IF Repeats THEN BOOLEAN ELSE {FALSE}) : network' = IF again THEN network ELSE network \ {r}
    /\ UNCHANGED <<now, node, used, mutation>>

(* LeaseManager::answer *)
Hear(n, a) ==
    LET d == node[n]
        begin == IF mutation = "the term begins with the answer" THEN now ELSE a.sent
    IN /\ d.pending.some
       /\ a.lease = Lease(n, d.lease) /\ a.sequence = d.sequence
       /\ node' = [node EXCEPT ![n] =
            IF a.granted >= 0
            THEN [d EXCEPT !.known = TRUE, !.pending = NoPending, !.term = Max(@, begin + Term), !.heard = a.executed,
                           !.budget = Max(a.granted, d.use)]
            ELSE [d EXCEPT !.lease = @ + 1, !.sequence = 0, !.known = FALSE, !.pending = NoPending,
                           !.epoch = @ + 1, !.budget = 0, !.use = 0,
                           !.carried = IF Registered \/ mutation = "the use of an ended budget is forgotten" THEN 0
                                       ELSE d.pending.charge + d.use]]
       /\ answers' = {o \in answers : o.lease[1] # n}
       /\ UNCHANGED <<now, charged, held, leases, network, used, mutation>>

(* CounterStore::decide for one permit: of a node without a lease, or of one of the nodes in mode Sync (its reserve). *)
StoreDecides ==
    LET reserve == IF Registered \/ mutation = "the reserve is not left free" THEN 0 ELSE Min(Pending, Limit)
        h == IF mutation = "the store ignores registered permits" THEN 0 ELSE HeldIn(held)
    IN /\ S + h + reserve + 1 <= Limit
       /\ charged' = [charged EXCEPT ![now] = @ + 1]
       /\ used' = [used EXCEPT ![now] = @ + 1]
       /\ UNCHANGED <<now, held, leases, node, network, answers, mutation>>

Next ==
    \/ Tick
    \/ \E n \in Nodes : Evaluate(n) \/ Exchange(n) \/ Report(n) \/ Send(n) \/ \E a \in answers : Hear(n, a)
    \/ Arrive
    \/ StoreDecides
Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------
(* What `SharedRules::max_overshoot` states beyond the limit *)
Overshoot == IF Registered THEN 0 ELSE (Cardinality(Nodes) - 1) * Min(Pending, Limit)

(* No window holds more than the limit and the overshoot. *)
Bound == \A t \in 0..now : SumOver(used, {s \in 0..now : s <= t /\ s + Window > t}) <= Limit + Overshoot

(* u <= b *)
Budgets == \A n \in Nodes : node[n].use <= node[n].budget

---------------------------------------------------------------------------
(* A run of several mutations: see ../table/Table.tla. *)
AllMutations == <<
    "a decider does not read the term",
    "a report keeps the whole budget",
    "an ended lease returns",
    "a grant ignores other leases",
    "a grant ignores the limit",
    "a grant forgets uncharged use",
    "registered permits end with the term",
    "granted permits are not registered",
    "the term begins with the answer",
    "the use of an ended budget is forgotten",
    "the reserve is not left free",
    "the store ignores registered permits">>
Number(name) == CHOOSE i \in 1..Len(AllMutations) : AllMutations[i] = name
ASSUME \A i \in 1..Len(AllMutations) : TLCSet(i, FALSE)
IsNoted ==
    IF Bound \/ TLCGet(Number(mutation)) THEN TRUE
    ELSE TLCSet(Number(mutation), TRUE)
         /\ PrintT("counterexample|" \o mutation \o "|" \o ToString(TLCGet("level")) \o "|" \o ToString(TLCGet("distinct"))
                   \o "|" \o ToString(TLCGet("duration")))
IsOpenQuestion == ~TLCGet(Number(mutation))
=============================================================================
