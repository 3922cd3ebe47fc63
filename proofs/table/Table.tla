------------------------------- MODULE Table -------------------------------
(* The table of keys: the events of src/table/protocol.md, one shared access a step.
   README.md names the function of the crate for each step, and what is abstracted.

   `Step(m, l)` is a function of the memory m and of one thread's variables l. So the same function gives the
   next-state relation, and the runs of a thread while all others are suspended (`SoloRunsEnd`). *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Threads,     \* the number of threads; each has one operation
    Keys,        \* 1..n
    Buckets,     \* the number of buckets in the front
    Primary,     \* the primary bucket of each key
    Alternate,   \* the alternate bucket of each key
    Region,      \* the region of each key
    Ways,        \* entries of a bucket of the front
    Backyard,    \* entries of the backyard
    Times,       \* readings of the clock
    Operations,  \* a subset of {"decide", "reset"}
    InitialOwners, \* fingerprints of the entries at the beginning
    InitialWords,  \* their words
    Share,       \* whether the catch-all decides for a key without an entry; otherwise the key is denied
    Forget,      \* whether a key without an entry gets any entry that it can claim
    Glued,       \* the steps that a thread makes together with its step before, as one
    SoloSteps,   \* the most steps of an operation while all other threads are suspended
    Mutations    \* {"none"}, or rules of the protocol of which one is dropped

VARIABLES
    mem,
    threads,     \* the threads that have begun: how many have these variables (so threads have no names)
    left,        \* the number of threads that have not begun
    mutation     \* one of Mutations
vars == <<mem, threads, left, mutation>>

---------------------------------------------------------------------------
(* Fingerprints. Other is a key for which no thread acts. Several entries may have it, one for each such key. *)
Vacant == 0
Unused == 97
Tombstone == 98
Other == 99
IsKey(f) == f \notin {Vacant, Unused, Tombstone}
RegionOf(f) == IF f = Other THEN 1 ELSE Region[f]

(* An algorithm with a limit of one permit for each time, like a counter ring of one cell: its word 2h + c has the
   head h and c permits. A decision is made at max(reading, h). The word 0 is one without a decision. *)
Word(h, c) == 2 * h + c
HeadOf(w) == w \div 2
Count(w) == w % 2
Max(a, b) == IF a > b THEN a ELSE b
DecidedAt(w, now) == Max(now, HeadOf(w))
Admits(w, now) == Count(w) = 0 \/ now > HeadOf(w)
IsIdle(w, now) == now > HeadOf(w)
(* Only for a word whose head is not ahead of `now`. *)
Advance(w, now) ==
    Word(Max(HeadOf(w) + 1, now), 0)
LatestOfFresh(now) == HeadOf(Advance(0, now))

(* The first word of an entry: its state and the algorithm's word. *)
Open(w) == w
Claimed(w) == 100 + w
Tentative(w) == 200 + w
StateOf(r) == r \div 100
WordOf(r) == r % 100
IsOpen(r) == StateOf(r) = 0
IsClaimed(r) == StateOf(r) = 1
IsTentative(r) == StateOf(r) = 2

Front == Buckets * Ways
Entries == 1..(Front + Backyard)
Bucket(b) == [i \in 1..Ways |-> (b - 1) * Ways + i]
(* The entries of a key in the order of the probe. *)
Probe == [k \in Keys |->
    Bucket(Primary[k]) \o Bucket(Alternate[k]) \o [i \in 1..Backyard |-> Front + i]]

---------------------------------------------------------------------------
(* A thread. `pc` is its next step; the other variables are 0 while no step needs them.
   i: position in the probe; e, w, f: an entry, and its word and fingerprint as they were read; b: the time at which
   a state begins; o: the end of the key's mark; same: no rendezvous of the region since the thread read their number;
   mine: e is the entry that this call of `resolve` is about; x, v: the entry to withdraw, and its word; then: what
   follows the withdrawal. *)
Start == [pc |-> "start", k |-> 0, now |-> 0, i |-> 0, e |-> 0, w |-> 0, f |-> 0, b |-> 0, o |-> 0,
          same |-> FALSE, mine |-> FALSE, x |-> 0, v |-> 0, then |-> "none", u |-> 0, ms |-> {}]
Done == [Start EXCEPT !.pc = "done"]
(* The thread's operation, without what it has read. *)
Plain(l) == [Start EXCEPT !.k = l.k, !.now = l.now]
Again(l) == [Plain(l) EXCEPT !.pc = "scan: begin"]

R(m, l) == [m |-> m, l |-> l, met |-> 0]
Met(m, l) == [m |-> m, l |-> l, met |-> Region[l.k]]

Set(m, e, raw) == [m EXCEPT !.word[e] = raw]
Rename(m, e, f) == [m EXCEPT !.fp[e] = f]
Reclaimed(m, k) == m.reclaimed[Region[k]]
MarkOf(m, k) == LET filter == m.overflow[Region[k]] IN IF k \in filter.marks THEN filter.until ELSE 0

(* A decision of the key k is charged to the entry e at the time `at`. *)
Charge(m, k, e, at) ==
    [m EXCEPT !.word[e] = Open(Word(at, 1)), !.own[k] = @ \cup {at},
              !.fault = IF @ # "none" THEN @
                        ELSE IF m.fp[e] # k THEN "a decision was charged to an entry of another key"
                        ELSE IF at \in m.own[k] THEN "two permits of a limit of one" ELSE "none"]

---------------------------------------------------------------------------
(* find_or_insert of the common cases. *)

(* Bucket::has_vacancy of the primary bucket: its last entry *)
FrontBegin(m, l) ==
    R(m, IF m.fp[Probe[l.k][Ways]] = Vacant THEN [l EXCEPT !.pc = "front: primary", !.i = 1]
         ELSE [l EXCEPT !.pc = "front: count"])

(* Bucket::own_or_vacant of the primary (i <= Ways) or the alternate bucket *)
FrontVacant(m, l) ==
    LET e == Probe[l.k][l.i]
        isLast == l.i = Ways \/ l.i = 2 * Ways
    IN R(m, IF m.fp[e] \in {Vacant, l.k} THEN [Plain(l) EXCEPT !.pc = "front: mark", !.e = e]
            ELSE IF ~isLast THEN [l EXCEPT !.i = @ + 1]
            ELSE IF l.i = Ways THEN [l EXCEPT !.pc = "front: count", !.i = 0]
            ELSE [l EXCEPT !.pc = "front: backyard", !.i = 2 * Ways + 1])

(* Insertion::enter *)
FrontMark(m, l) == R(m, IF MarkOf(m, l.k) = 0 THEN [l EXCEPT !.pc = "front: enter"] ELSE Again(l))
FrontEnter(m, l) ==
    IF m.fp[l.e] = Vacant THEN R(Rename(m, l.e, l.k), [l EXCEPT !.pc = "begin"]) ELSE R(m, Again(l))

(* Region::rendezvous_count, then Bucket::has_vacancy of the alternate bucket (f = 1), then Bucket::entry_of of the alternate and of
   the primary bucket, from the last entry *)
VacancyLate == mutation = "the alternate bucket is searched before its vacancy is read"
FrontCount(m, l) ==
    R(m, [l EXCEPT !.same = TRUE, !.i = IF VacancyLate THEN 2 * Ways ELSE 0,
                   !.pc = IF VacancyLate THEN "front: own" ELSE "front: alternate"])
FrontVacancy(m, l) ==
    LET isVacant == m.fp[Probe[l.k][2 * Ways]] = Vacant
    IN R(m, IF ~VacancyLate THEN [l EXCEPT !.f = IF isVacant THEN 1 ELSE 0, !.i = 2 * Ways, !.pc = "front: own"]
            ELSE IF isVacant THEN [l EXCEPT !.pc = "front: primary", !.i = Ways + 1]
            ELSE [l EXCEPT !.pc = "front: backyard", !.i = 2 * Ways + 1])
FrontOwn(m, l) ==
    LET e == Probe[l.k][l.i]
        last == IF mutation = "the primary bucket is not searched again" THEN Ways + 1 ELSE 1
    IN R(m, IF m.fp[e] = l.k THEN [Plain(l) EXCEPT !.pc = "decide: word", !.e = e]
            ELSE IF l.i > last THEN [l EXCEPT !.i = @ - 1]
            ELSE IF VacancyLate THEN [l EXCEPT !.pc = "front: alternate", !.i = 0]
            ELSE IF l.f = 1 THEN [l EXCEPT !.pc = "front: primary", !.i = Ways + 1, !.f = 0]
            ELSE [l EXCEPT !.pc = "front: backyard", !.i = 2 * Ways + 1])

(* insert_full of the common cases *)
FrontBackyard(m, l) ==
    IF l.i > Len(Probe[l.k]) THEN
        R(m, IF Backyard > 0 /\ m.fp[Front + Backyard] = Vacant THEN Again(l) ELSE [l EXCEPT !.pc = "idle", !.i = 1])
    ELSE LET e == Probe[l.k][l.i]
         IN R(m, IF m.fp[e] = l.k THEN [Plain(l) EXCEPT !.pc = "decide: word", !.e = e] ELSE [l EXCEPT !.i = @ + 1])

---------------------------------------------------------------------------
(* find_or_insert of all cases, in another order: see README.md. *)

ScanBegin(m, l) == R(m, [l EXCEPT !.same = TRUE, !.pc = "scan", !.i = 1])

ScanNext(l) == [Plain(l) EXCEPT !.same = l.same, !.i = l.i + 1,
                                !.pc = IF l.i + 1 <= Len(Probe[l.k]) THEN "scan" ELSE "vacant"]

IdleSeen(m, l, e) ==
    LET r == m.word[e]
        f == m.fp[e]
        w == WordOf(r)
    IN /\ IsOpen(r) /\ f # l.k
       /\ IF w = 0 THEN TRUE
          ELSE IF f = Unused THEN HeadOf(Advance(w, l.now)) <= l.now
          ELSE IsIdle(w, l.now)

TakeSeen(m, l, e) == [l EXCEPT !.pc = "take: time", !.i = 0, !.e = e, !.w = WordOf(m.word[e]), !.f = m.fp[e]]

Scan(m, l) ==
    LET e == Probe[l.k][l.i]
        f == m.fp[e]
    IN R(m, IF f = l.k THEN [l EXCEPT !.pc = "own: word", !.e = e]
            ELSE IF mutation = "an idle entry is claimed beside a vacancy" /\ l.i <= 2 * Ways /\ f # Vacant /\ f # Tombstone
                    /\ IdleSeen(m, l, e)
                 THEN TakeSeen(m, l, e)
            ELSE IF mutation = "a tombstone is claimed beside a vacancy" /\ l.i <= 2 * Ways /\ f = Tombstone
                    /\ IdleSeen(m, l, e)
                 THEN TakeSeen(m, l, e)
            ELSE IF f = Vacant /\ l.i <= 2 * Ways THEN [l EXCEPT !.pc = "scan: mark", !.e = e]
            ELSE ScanNext(l))

(* barred_when_fresh; its reads of the mark and of `reclaimed` are one step, see README.md *)
ScanMark(m, l) ==
    LET until == MarkOf(m, l.k)
        begin == Max(l.now, Reclaimed(m, l.k))
    IN R(m, IF until > 0 /\ HeadOf(Advance(0, begin)) < LatestOfFresh(until) THEN Done
            ELSE [l EXCEPT !.pc = "scan: enter"])

(* enter *)
ScanEnter(m, l) ==
    LET f == m.fp[l.e]
    IN IF f = Vacant \/ mutation = "enter is a store" THEN R(Rename(m, l.e, l.k), [l EXCEPT !.pc = "own: word"])
       ELSE R(m, IF f = l.k /\ mutation # "an entry is skipped after a failed exchange"
                 THEN [l EXCEPT !.pc = "own: word"] ELSE ScanNext(l))

(* Seen::new, Seen::is_of and take_own *)
OwnWord(m, l) == R(m, [l EXCEPT !.pc = "own: key", !.w = m.word[l.e]])
OwnKey(m, l) ==
    R(m, IF m.fp[l.e] # l.k \/ IsClaimed(l.w) THEN ScanNext(l)
         ELSE IF l.w = Open(0) THEN [Plain(l) EXCEPT !.pc = "begin", !.e = l.e]
         ELSE IF IsOpen(l.w) THEN [Plain(l) EXCEPT !.pc = "decide", !.e = l.e, !.w = l.w]
         ELSE [Plain(l) EXCEPT !.pc = "resolve: rendezvous", !.e = l.e, !.w = WordOf(l.w), !.mine = TRUE])

(* vacant_in_backyard *)
Vacancy(m, l) ==
    LET e == Front + Backyard
    IN R(m, IF Backyard > 0 /\ m.fp[e] = Vacant /\ m.word[e] = Open(0) THEN TakeSeen(m, l, e)
            ELSE [l EXCEPT !.pc = "idle", !.i = 1])

(* find_idle, find_evictable, least_spent *)
Idle(m, l) ==
    IF l.i > Len(Probe[l.k]) THEN
        R(m, IF Forget THEN [l EXCEPT !.pc = "forget", !.i = 1] ELSE [Plain(l) EXCEPT !.pc = "none: time"])
    ELSE LET e == Probe[l.k][l.i]
         IN R(m, IF IdleSeen(m, l, e) THEN TakeSeen(m, l, e) ELSE [l EXCEPT !.i = @ + 1])
ForgetAny(m, l) ==
    IF l.i > Len(Probe[l.k]) THEN R(m, [Plain(l) EXCEPT !.pc = "none: time"])
    ELSE LET e == Probe[l.k][l.i]
         IN R(m, IF IsOpen(m.word[e]) /\ m.fp[e] # l.k /\ HeadOf(WordOf(m.word[e])) <= l.now THEN TakeSeen(m, l, e) ELSE [l EXCEPT !.i = @ + 1])

---------------------------------------------------------------------------
(* take_over: *evict* *)

TakeTime(m, l) ==
    R(m, [l EXCEPT !.b = IF mutation = "a state begins at the reading" THEN l.now ELSE Max(l.now, Reclaimed(m, l.k)),
                   !.same = IF mutation = "the rendezvous are counted after the scan" THEN TRUE ELSE @,
                   !.pc = "take: mark"])
TakeMark(m, l) ==
    LET until == MarkOf(m, l.k)
    IN R(m, IF until > 0 /\ HeadOf(Advance(l.w, l.b)) < LatestOfFresh(until) THEN Done
            ELSE [l EXCEPT !.pc = IF IsKey(l.f) THEN "take: reclaim" ELSE "take: claim"])
TakeReclaim(m, l) ==
    R(IF mutation = "reclaimed is not raised" THEN m ELSE [m EXCEPT !.reclaimed[RegionOf(l.f)] = Max(@, l.now)],
      [l EXCEPT !.pc = "take: claim"])
TakeClaim(m, l) ==
    LET to == Advance(l.w, l.b)
        old == m.fp[l.e]
        \* The key is forgotten, so its admissions count no more.
        own == IF Forget /\ old \in Keys THEN [m.own EXCEPT ![old] = {}] ELSE m.own
    IN IF m.word[l.e] = Open(l.w) \/ mutation = "claim is a store"
       THEN R([Set(m, l.e, Claimed(to)) EXCEPT !.own = own], [l EXCEPT !.pc = "take: rename", !.w = to, !.f = 0])
       ELSE R(m, Again(l))
TakeRename(m, l) == R(Rename(m, l.e, l.k), [l EXCEPT !.pc = "take: publish"])
TakePublish(m, l) ==
    IF mutation = "opened at once"
    THEN R(Set(m, l.e, Open(l.w)), [Plain(l) EXCEPT !.pc = "decide: first", !.e = l.e, !.w = l.w, !.b = l.b])
    ELSE R(Set(m, l.e, Tentative(l.w)), [l EXCEPT !.pc = "take: rendezvous"])
TakeRendezvous(m, l) ==
    LET next == [l EXCEPT !.pc = "take: read the mark"]
    IN IF mutation = "no rendezvous" THEN R(m, next) ELSE Met(m, next)
TakeOverflow(m, l) == R(m, [l EXCEPT !.o = MarkOf(m, l.k), !.pc = "take: current"])

(* is_current *)
IsCurrent(m, l) ==
    LET mark == IF mutation = "the mark is not read at the rendezvous" THEN 0 ELSE l.o
        lost == IF mutation = "reclaimed is not read at the rendezvous" THEN 0 ELSE Reclaimed(m, l.k)
        latest == Max(mark, lost)
    IN latest <= l.b \/ HeadOf(l.w) >= LatestOfFresh(latest)

TakeCurrent(m, l) ==
    LET opens == (l.same \/ mutation = "no resolve") /\ IsCurrent(m, l)
    IN R(m, IF opens THEN [l EXCEPT !.pc = "take: open", !.same = FALSE]
            ELSE [l EXCEPT !.pc = "resolve", !.same = FALSE, !.mine = TRUE, !.i = 1])
TakeOpen(m, l) ==
    IF m.word[l.e] = Tentative(l.w)
    THEN R(Set(m, l.e, Open(l.w)), [Plain(l) EXCEPT !.pc = "decide: first", !.e = l.e, !.w = l.w, !.b = l.b])
    ELSE R(m, Again(l))

---------------------------------------------------------------------------
(* resolve *)

ResolveRendezvous(m, l) == Met(m, [l EXCEPT !.pc = "resolve: mark"])
ResolveMark(m, l) == R(m, [l EXCEPT !.o = MarkOf(m, l.k), !.pc = "resolve", !.i = 1])

Searched == IF mutation = "the backyard is not resolved" THEN 2 * Ways ELSE 2 * Ways + Backyard
Resolve(m, l) ==
    IF l.i > Searched THEN
        R(m, IF IsCurrent(m, l) THEN [l EXCEPT !.pc = "resolve: open", !.i = 0]
             ELSE [l EXCEPT !.pc = "withdraw", !.i = 0, !.x = l.e, !.v = l.w, !.then = "lost"])
    ELSE LET e == Probe[l.k][l.i]
         IN R(m, IF e # l.e /\ m.fp[e] = l.k THEN [l EXCEPT !.x = e, !.pc = "resolve: word"] ELSE [l EXCEPT !.i = @ + 1])
ResolveWord(m, l) == R(m, [l EXCEPT !.v = m.word[l.x], !.pc = "resolve: key"])
ResolveKey(m, l) ==
    LET next == [l EXCEPT !.pc = "resolve", !.i = @ + 1, !.x = 0, !.v = 0]
        self == [l EXCEPT !.pc = "withdraw", !.i = 0, !.x = l.e, !.v = l.w, !.then = "lost"]
    IN R(m, IF m.fp[l.x] # l.k \/ IsClaimed(l.v) THEN next
            ELSE IF IsOpen(l.v) THEN IF mutation = "opened beside an open entry" THEN next ELSE self
            ELSE IF l.x < l.e
                 THEN [self EXCEPT !.e = l.x, !.w = WordOf(l.v), !.b = 0, !.mine = FALSE, !.then = "again"]
            ELSE IF mutation = "another tentative entry is not withdrawn" THEN next
            ELSE [l EXCEPT !.pc = "withdraw", !.i = 0, !.v = WordOf(l.v), !.then = "again"])
ResolveOpen(m, l) ==
    IF m.word[l.e] # Tentative(l.w) THEN R(m, Again(l))
    ELSE R(Set(m, l.e, Open(l.w)),
           IF ~l.mine THEN Again(l)
           ELSE IF l.b > 0 THEN [Plain(l) EXCEPT !.pc = "decide: first", !.e = l.e, !.w = l.w, !.b = l.b]
           ELSE [Plain(l) EXCEPT !.pc = "decide: word", !.e = l.e])

(* withdraw *)
Withdrawn(l) ==
    IF l.then = "lost" THEN Again(l)
    ELSE [l EXCEPT !.pc = "resolve: rendezvous", !.x = 0, !.v = 0, !.then = "none"]
Withdraw(m, l) ==
    IF m.word[l.x] = Tentative(l.v)
    THEN R(Set(m, l.x, Claimed(l.v)),
           [l EXCEPT !.pc = IF mutation = "a withdrawn entry keeps its key" THEN "withdraw: open" ELSE "withdraw: rename"])
    ELSE R(m, Withdrawn(l))
WithdrawRename(m, l) == R(Rename(m, l.x, Unused), [l EXCEPT !.pc = "withdraw: open"])
WithdrawOpen(m, l) == R(Set(m, l.x, Open(l.v)), Withdrawn(l))

---------------------------------------------------------------------------
(* Decider: decisions *)

(* begin, begin_time *)
Begin(m, l) ==
    R(m, [l EXCEPT !.pc = "decide: first", !.w = 0,
                   !.b = IF mutation = "a state begins at the reading" THEN l.now ELSE Max(l.now, Reclaimed(m, l.k))])
(* charge, of an entry that this thread has entered or opened *)
DecideFirst(m, l) ==
    IF m.word[l.e] = Open(l.w) THEN R(Charge(m, l.k, l.e, DecidedAt(l.w, l.b)), Done) ELSE R(m, Again(l))

(* Entry::decidable_word *)
DecideWord(m, l) ==
    LET r == m.word[l.e]
    IN IF mutation = "the fingerprint is read before the state"
       THEN R(m, IF m.fp[l.e] = l.k THEN [l EXCEPT !.pc = "decide: key"] ELSE Again(l))
       ELSE R(m, IF IsOpen(r) /\ r # Open(0) THEN [l EXCEPT !.pc = "decide: key", !.w = WordOf(r)] ELSE Again(l))
DecideKey(m, l) ==
    LET r == m.word[l.e]
    IN IF mutation = "the fingerprint is read before the state"
       THEN R(m, IF IsOpen(r) /\ r # Open(0) THEN [l EXCEPT !.pc = "decide", !.w = WordOf(r)] ELSE Again(l))
       ELSE R(m, IF m.fp[l.e] = l.k THEN [l EXCEPT !.pc = "decide"] ELSE Again(l))
(* OccupiedWords::exchange, or a denial *)
Decide(m, l) ==
    IF ~Admits(l.w, l.now)
    THEN R(m, [l EXCEPT !.pc = "decide: denied"])
    ELSE IF m.word[l.e] = Open(l.w) THEN R(Charge(m, l.k, l.e, DecidedAt(l.w, l.now)), Done) ELSE R(m, Again(l))
(* OccupiedWords::are_valid. A denial is about a permit of the key itself. *)
Denied(m, l) ==
    LET valid == m.word[l.e] = Open(l.w)
        fault == IF HeadOf(l.w) \in m.own[l.k] THEN "none" ELSE "a key was denied for another one"
    IN IF valid
       THEN R([m EXCEPT !.fault = IF @ = "none" THEN fault ELSE @], Done)
       ELSE R(m, Again(l))

---------------------------------------------------------------------------
(* decide_without_entry, attempt_by_catch_all *)

NoneTime(m, l) ==
    R(m, IF Share THEN [l EXCEPT !.pc = "share", !.b = Max(l.now, Reclaimed(m, l.k))] ELSE Done)
(* The catch-all decides; v is the time of the admission, or 0 for a denial. *)
ShareDecide(m, l) ==
    IF Admits(m.shared, l.b)
    THEN LET at == DecidedAt(m.shared, l.b)
         IN R([m EXCEPT !.shared = Word(at, 1)],
              [l EXCEPT !.v = at, !.pc = IF mutation = "the key is marked after the lookup" THEN "share: lookup" ELSE "mark",
                        !.i = IF mutation = "the key is marked after the lookup" THEN 1 ELSE 0])
    ELSE R(m, [l EXCEPT !.pc = "share: lookup", !.i = 1])

(* Region::mark_overflow *)
Mark(m, l) ==
    LET filter == m.overflow[Region[l.k]]
        expired == filter.until <= l.b
    IN R(m, [l EXCEPT !.u = filter.until, !.ms = filter.marks,
                      !.pc = IF expired /\ filter.until > 0 THEN "mark: reclaim" ELSE "mark: exchange"])
MarkReclaim(m, l) ==
    R(IF mutation = "a mark is dropped without its time" THEN m ELSE [m EXCEPT !.reclaimed[Region[l.k]] = Max(@, l.u)],
      [l EXCEPT !.pc = "mark: exchange"])
MarkExchange(m, l) ==
    LET r == Region[l.k]
        expired == l.u <= l.b
        end == IF mutation = "a mark ends with the admission" THEN l.v ELSE l.v + 1
        next == [until |-> IF expired THEN end ELSE Max(l.u, end), marks |-> (IF expired THEN {} ELSE l.ms) \cup {l.k}]
        then == [l EXCEPT !.u = 0, !.ms = {}, !.pc = "mark: rendezvous"]
    IN IF m.overflow[r].until = l.u /\ m.overflow[r].marks = l.ms
       THEN R([m EXCEPT !.overflow[r] = next], then)
       ELSE R(m, [l EXCEPT !.pc = "mark"])
MarkRendezvous(m, l) ==
    IF mutation = "the key is marked after the lookup"
    THEN [m |-> [m EXCEPT !.shares[l.k] = @ \cup {l.v}], l |-> Done, met |-> Region[l.k]]
    ELSE Met(m, [l EXCEPT !.pc = "share: lookup", !.i = 1])

(* may_have_entry_since *)
ShareLookup(m, l) ==
    IF mutation = "the catch-all does not look for an entry" THEN R([m EXCEPT !.shares[l.k] = @ \cup ({l.v} \ {0})], Done)
    ELSE IF l.i > Len(Probe[l.k]) THEN R(m, [l EXCEPT !.pc = "share: lost", !.i = 0])
    ELSE LET e == Probe[l.k][l.i]
         IN R(m, IF m.fp[e] = l.k THEN [l EXCEPT !.pc = "share: word", !.e = e] ELSE [l EXCEPT !.i = @ + 1])
ShareWord(m, l) == R(m, [l EXCEPT !.pc = "share: key", !.w = m.word[l.e]])
ShareKey(m, l) ==
    LET other == mutation = "a tentative entry does not count" /\ IsTentative(l.w)
    IN R(m, IF m.fp[l.e] # l.k \/ IsClaimed(l.w) \/ other
            THEN [l EXCEPT !.pc = "share: lookup", !.i = @ + 1, !.e = 0, !.w = 0]
            ELSE IF l.v = 0 THEN Again(l) ELSE [l EXCEPT !.pc = "share: refund"])
ShareLost(m, l) ==
    IF Reclaimed(m, l.k) > l.b /\ mutation # "a key that has come and gone does not count"
    THEN R(m, IF l.v = 0 THEN Again(l) ELSE [l EXCEPT !.pc = "share: refund"])
    ELSE IF mutation = "the key is marked after the lookup" /\ l.v > 0 THEN R(m, [l EXCEPT !.pc = "mark"])
    ELSE R([m EXCEPT !.shares[l.k] = @ \cup ({l.v} \ {0})], Done)
ShareRefund(m, l) ==
    R(IF m.shared = Word(l.v, 1) THEN [m EXCEPT !.shared = Word(l.v, 0)] ELSE m,
      Again(l))

---------------------------------------------------------------------------
(* reset *)

ResetBegin(l) == [Plain(l) EXCEPT !.pc = "reset: word", !.i = 1]
ResetWord(m, l) ==
    IF l.i > Len(Probe[l.k]) THEN R(m, Done)
    ELSE R(m, [l EXCEPT !.pc = "reset: key", !.e = Probe[l.k][l.i], !.w = m.word[Probe[l.k][l.i]]])
ResetKey(m, l) ==
    R(m, IF m.fp[l.e] = l.k /\ IsOpen(l.w) THEN [l EXCEPT !.pc = "reset: claim", !.i = 0]
         ELSE [l EXCEPT !.pc = "reset: word", !.i = @ + 1, !.e = 0, !.w = 0])
ResetClaim(m, l) ==
    LET to == Advance(l.w, Max(l.now, HeadOf(l.w)))
    IN IF m.word[l.e] = Open(l.w)
       THEN R([Set(m, l.e, Claimed(to)) EXCEPT !.own[l.k] = {}], [l EXCEPT !.pc = "reset: rename", !.w = to])
       ELSE R(m, ResetBegin(l))
ResetRename(m, l) ==
    R(Rename(m, l.e, IF mutation = "reset leaves a vacant entry" THEN Vacant ELSE Tombstone), [l EXCEPT !.pc = "reset: open"])
ResetOpen(m, l) == R(Set(m, l.e, Open(l.w)), Done)

---------------------------------------------------------------------------
Step(m, l) ==
    CASE l.pc = "scan" -> Scan(m, l)
      [] l.pc = "front: begin" -> FrontBegin(m, l)
      [] l.pc = "front: primary" -> FrontVacant(m, l)
      [] l.pc = "front: mark" -> FrontMark(m, l)
      [] l.pc = "front: enter" -> FrontEnter(m, l)
      [] l.pc = "front: count" -> FrontCount(m, l)
      [] l.pc = "front: own" -> FrontOwn(m, l)
      [] l.pc = "front: alternate" -> FrontVacancy(m, l)
      [] l.pc = "front: backyard" -> FrontBackyard(m, l)
      [] l.pc = "scan: begin" -> ScanBegin(m, l)
      [] l.pc = "scan: mark" -> ScanMark(m, l)
      [] l.pc = "scan: enter" -> ScanEnter(m, l)
      [] l.pc = "own: word" -> OwnWord(m, l)
      [] l.pc = "own: key" -> OwnKey(m, l)
      [] l.pc = "vacant" -> Vacancy(m, l)
      [] l.pc = "idle" -> Idle(m, l)
      [] l.pc = "forget" -> ForgetAny(m, l)
      [] l.pc = "take: time" -> TakeTime(m, l)
      [] l.pc = "take: mark" -> TakeMark(m, l)
      [] l.pc = "take: reclaim" -> TakeReclaim(m, l)
      [] l.pc = "take: claim" -> TakeClaim(m, l)
      [] l.pc = "take: rename" -> TakeRename(m, l)
      [] l.pc = "take: publish" -> TakePublish(m, l)
      [] l.pc = "take: rendezvous" -> TakeRendezvous(m, l)
      [] l.pc = "take: read the mark" -> TakeOverflow(m, l)
      [] l.pc = "take: current" -> TakeCurrent(m, l)
      [] l.pc = "take: open" -> TakeOpen(m, l)
      [] l.pc = "resolve" -> Resolve(m, l)
      [] l.pc = "resolve: rendezvous" -> ResolveRendezvous(m, l)
      [] l.pc = "resolve: mark" -> ResolveMark(m, l)
      [] l.pc = "resolve: word" -> ResolveWord(m, l)
      [] l.pc = "resolve: key" -> ResolveKey(m, l)
      [] l.pc = "resolve: open" -> ResolveOpen(m, l)
      [] l.pc = "withdraw" -> Withdraw(m, l)
      [] l.pc = "withdraw: rename" -> WithdrawRename(m, l)
      [] l.pc = "withdraw: open" -> WithdrawOpen(m, l)
      [] l.pc = "begin" -> Begin(m, l)
      [] l.pc = "decide: first" -> DecideFirst(m, l)
      [] l.pc = "decide: word" -> DecideWord(m, l)
      [] l.pc = "decide: key" -> DecideKey(m, l)
      [] l.pc = "decide" -> Decide(m, l)
      [] l.pc = "decide: denied" -> Denied(m, l)
      [] l.pc = "none: time" -> NoneTime(m, l)
      [] l.pc = "share" -> ShareDecide(m, l)
      [] l.pc = "share: lookup" -> ShareLookup(m, l)
      [] l.pc = "share: word" -> ShareWord(m, l)
      [] l.pc = "share: key" -> ShareKey(m, l)
      [] l.pc = "share: lost" -> ShareLost(m, l)
      [] l.pc = "share: refund" -> ShareRefund(m, l)
      [] l.pc = "mark" -> Mark(m, l)
      [] l.pc = "mark: reclaim" -> MarkReclaim(m, l)
      [] l.pc = "mark: exchange" -> MarkExchange(m, l)
      [] l.pc = "mark: rendezvous" -> MarkRendezvous(m, l)
      [] l.pc = "reset: word" -> ResetWord(m, l)
      [] l.pc = "reset: key" -> ResetKey(m, l)
      [] l.pc = "reset: claim" -> ResetClaim(m, l)
      [] l.pc = "reset: rename" -> ResetRename(m, l)
      [] l.pc = "reset: open" -> ResetOpen(m, l)

---------------------------------------------------------------------------
(* The table at the beginning: any that calls one after another can leave, except for what README.md names. *)
InitialEntry ==
    {<<f, w>> \in InitialOwners \X (InitialWords \cup {0}) :
        CASE f = Vacant -> w = 0
          [] f = Unused -> w > 0 /\ Count(w) = 0
          [] f = Tombstone \/ f = Other -> w > 0
          [] OTHER -> TRUE}
IsFull(entries, k) == \A i \in 1..(2 * Ways) : entries[Probe[k][i]][1] # Vacant
IsLegal(entries, reclaimed) ==
    /\ \A d, e \in Entries : d # e /\ entries[d][1] = entries[e][1] => entries[e][1] \notin Keys
    /\ \A b \in 1..Buckets : \A i \in 1..(Ways - 1) :
           entries[Bucket(b)[i]][1] = Vacant => entries[Bucket(b)[i + 1]][1] = Vacant
    \* A key is only in its buckets: in the alternate one if the primary one is full, and in the backyard if both are.
    /\ \A k \in Keys : \A e \in Entries : entries[e][1] = k =>
           \E i \in 1..Len(Probe[k]) :
               Probe[k][i] = e /\ (i > Ways => entries[Probe[k][Ways]][1] # Vacant) /\ (i > 2 * Ways => IsFull(entries, k))
    \* Entries were claimed only for keys with a full front.
    /\ (\E e \in Entries : e > Front /\ entries[e][1] # Vacant) => \E k \in Keys : IsFull(entries, k)
    /\ (\E e \in Entries : entries[e][1] = Unused) => \E k \in Keys : IsFull(entries, k)
    /\ reclaimed > 0 => \E k \in Keys : IsFull(entries, k)
    \* An entry of the backyard was claimed for its key.
    /\ \A e \in Entries : e > Front /\ entries[e][1] # Vacant => entries[e][2] > 0

(* The times at which the key has admissions: that of its word, and those from before its last eviction. *)
InitialOwn(entries, reclaimed, k) ==
    LET own == {e \in Entries : entries[e][1] = k}
    IN IF own = {} THEN IF \E e \in 1..Ways : entries[Probe[k][e]][1] = Vacant THEN {} ELSE {t \in Times : t < reclaimed}
       ELSE UNION {IF Count(entries[e][2]) = 1 THEN {HeadOf(entries[e][2])} ELSE {} : e \in own}

Regions == {Region[k] : k \in Keys} \cup {1}
Init ==
    /\ threads = <<>>
    /\ left = Threads
    /\ mutation \in Mutations
    /\ \E entries \in [Entries -> InitialEntry], reclaimed \in {0} \cup Times :
        /\ IsLegal(entries, reclaimed)
        /\ mem = [fp |-> [e \in Entries |-> entries[e][1]], word |-> [e \in Entries |-> entries[e][2]],
                  reclaimed |-> [r \in Regions |-> reclaimed],
                  overflow |-> [r \in Regions |-> [until |-> 0, marks |-> {}]],
                  shared |-> 0,
                  own |-> [k \in Keys |-> InitialOwn(entries, reclaimed, k)],
                  shares |-> [k \in Keys |-> {}],
                  fault |-> "none"]

Scanned == {"an idle entry is claimed beside a vacancy", "a tombstone is claimed beside a vacancy", "enter is a store",
            "an entry is skipped after a failed exchange"}
Begun(op, k, now) ==
    LET l == [Start EXCEPT !.k = k, !.now = now]
    IN IF op = "reset" THEN ResetBegin(l) ELSE [l EXCEPT !.pc = IF mutation \in Scanned THEN "scan: begin" ELSE "front: begin"]

(* A step, and the glued ones after it. *)
RECURSIVE Steps(_)
Steps(r) ==
    IF r.l.pc \notin Glued THEN r
    ELSE LET next == Step(r.m, r.l)
         IN Steps([next EXCEPT !.met = Max(@, r.met)])

Add(all, l, n) == IF l \in DOMAIN all THEN [all EXCEPT ![l] = @ + n] ELSE all @@ (l :> n)
Remove(all, l) == IF all[l] = 1 THEN [o \in DOMAIN all \ {l} |-> all[o]] ELSE [all EXCEPT ![l] = @ - 1]
(* A rendezvous: the number of rendezvous that other threads have read is no longer the current one. *)
RECURSIVE Outdated(_, _, _)
Outdated(all, rest, region) ==
    IF rest = {} THEN all
    ELSE LET l == CHOOSE l \in rest : TRUE
             n == all[l]
         IN Outdated(Add([o \in DOMAIN all \ {l} |-> all[o]], [l EXCEPT !.same = FALSE], n), rest \ {l}, region)

(* A step of a thread l; `others` are the other threads that have begun. *)
Move(others, l) ==
    LET r == Steps(Step(mem, l))
        met == IF r.met = 0 THEN others
               ELSE Outdated(others, {o \in DOMAIN others : o.same /\ Region[o.k] = r.met}, r.met)
    IN /\ mem' = r.m
       /\ threads' = IF r.l.pc = "done" THEN met ELSE Add(met, r.l, 1)

Begins ==
    /\ left > 0
    /\ \E op \in Operations, k \in Keys, now \in Times : Move(threads, Begun(op, k, now))
    /\ left' = left - 1
Continues ==
    /\ \E l \in DOMAIN threads : Move(Remove(threads, l), l)
    /\ UNCHANGED left
Next == (Begins \/ Continues) /\ UNCHANGED mutation

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------
(* What is claimed *)

OpenEntries(k) == {e \in Entries : mem.fp[e] = k /\ IsOpen(mem.word[e])}

(* A key never has two open entries. *)
OneEntry == \A k \in Keys : Cardinality(OpenEntries(k)) <= 1

(* No charge is lost: a permit that the key has in a window is in its open entry. Or the key has no entry with a
   decision, and each state of it begins after that permit. *)
NoChargeIsLost ==
    \A k \in Keys : \A t \in mem.own[k] :
        \/ \E e \in OpenEntries(k) : HeadOf(mem.word[e]) > t \/ mem.word[e] = Word(t, 1)
        \/ (\A e \in OpenEntries(k) : mem.word[e] = Open(0)) /\ Reclaimed(mem, k) > t

(* A decision is charged to its own key, and the limit of one permit for each time holds. *)
NoFault == mem.fault = "none"

(* An admission by the catch-all and one by the key's entry do not count at the same time. *)
OneBudget == \A k \in Keys : mem.own[k] \cap mem.shares[k] = {}

(* A suspended thread stops no other: while all others are suspended, wherever they are, a thread ends its operation. *)
RECURSIVE Ends(_, _, _)
Ends(m, l, steps) ==
    \/ l.pc = "done"
    \/ steps > 0 /\ LET r == Step(m, l) IN Ends(r.m, r.l, steps - 1)
SoloRunsEnd == \A l \in DOMAIN threads : Ends(mem, l, SoloSteps)
(* An operation that begins while all threads are suspended ends, too. *)
NewRunsEnd == left = 0 => \A op \in Operations, k \in Keys, now \in Times : Ends(mem, Begun(op, k, now), SoloSteps)

---------------------------------------------------------------------------
(* A run of several mutations: each state that contradicts a claim prints the mutation, once, and how many steps it took.
   States of a mutation that was found to fail are not continued. *)

Claims == OneEntry /\ NoChargeIsLost /\ NoFault /\ OneBudget
AllMutations == <<
    "an idle entry is claimed beside a vacancy",
    "a tombstone is claimed beside a vacancy",
    "no resolve",
    "no rendezvous",
    "opened at once",
    "the rendezvous are counted after the scan",
    "opened beside an open entry",
    "another tentative entry is not withdrawn",
    "a withdrawn entry keeps its key",
    "the alternate bucket is searched before its vacancy is read",
    "the primary bucket is not searched again",
    "enter is a store",
    "an entry is skipped after a failed exchange",
    "reset leaves a vacant entry",
    "the fingerprint is read before the state",
    "claim is a store",
    "reclaimed is not raised",
    "a state begins at the reading",
    "reclaimed is not read at the rendezvous",
    "the backyard is not resolved",
    "the key is marked after the lookup",
    "the mark is not read at the rendezvous",
    "a mark is dropped without its time",
    "a mark ends with the admission",
    "the catch-all does not look for an entry",
    "a tentative entry does not count",
    "a key that has come and gone does not count">>
Number(name) == CHOOSE i \in 1..Len(AllMutations) : AllMutations[i] = name
ASSUME \A i \in 1..Len(AllMutations) : TLCSet(i, FALSE)
IsNoted ==
    IF Claims \/ TLCGet(Number(mutation)) THEN TRUE
    ELSE TLCSet(Number(mutation), TRUE)
         /\ PrintT("counterexample|" \o mutation \o "|" \o ToString(TLCGet("level")) \o "|" \o ToString(TLCGet("distinct"))
                   \o "|" \o ToString(TLCGet("duration")))
IsOpenQuestion == ~TLCGet(Number(mutation))

---------------------------------------------------------------------------
(* Values for the configurations *)

PrimaryMixed == <<1, 2, 1>>
AlternateMixed == <<2, 1, 2>>
PrimarySame == <<1, 1, 1>>
AlternateSame == <<2, 2, 2>>
AlternateOwn == <<2, 3>>
OneRegion == <<1, 1, 1>>
TwoRegions == <<1, 2, 1>>
NotGlued == {}
GluedReads == {"front: backyard", "vacant", "idle", "take: mark", "take: reclaim", "take: publish", "take: read the mark",
    "take: current", "withdraw: rename", "withdraw: open", "reset: key", "reset: open", "own: key", "decide: key", "decide",
    "resolve: word", "resolve: key", "resolve: mark", "share: word", "share: key", "mark: reclaim", "front: mark", "scan: mark",
    "none: time", "scan: begin", "front: count"}
=============================================================================
