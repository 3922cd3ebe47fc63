//! What stands behind an account: whose it is, which question is open, and what is to be asked next.

use core::time::Duration;

use super::accounts::{Ask, Told};
use super::store::Part;
use crate::account::{Account, Question};

/// What an account is for.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) part: Part,
    /// Whether what is granted is registered.
    pub(super) is_hold: bool,
    /// The most that is asked for.
    pub(super) most: u64,
    /// The time between two questions, in nanoseconds.
    pub(super) period: u64,
    /// How long what was granted may be spent, in nanoseconds.
    pub(super) term: u64,
    /// By how much less, since readings of the clock may be late.
    pub(super) margin: u64,
    /// The limiter of this node that stands in for the store: its state, and the key and tier there; `None`: another
    /// account of the same request charges it.
    pub(super) stand_in: Option<(u16, u64, usize)>,
}

/// The desk of one account. Its lock is held for a few instructions, and never across an await.
#[derive(Debug, Default)]
pub(super) struct Desk {
    ticket: Option<Ticket>,
    life: u128,
    /// Of the last question that was made.
    sequence: u64,
    /// Of the last that was answered.
    answered: u64,
    /// Whether the store has answered the life.
    known: bool,
    open: Option<Open>,
    /// Whether a copy of the open question is on its way.
    away: bool,
    /// Twice the permits that are wanted in a period: at least as much as lately, half of that a period later.
    heat: u64,
    /// When demand was counted last, and the heat halved.
    counted_at: u64,
    cooled_at: u64,
    /// What of the use of this epoch was counted, and what the stand-in was charged.
    counted: u64,
    warmed: u64,
    /// When the last question was made, and the last copy sent that was answered.
    asked_at: u64,
    heard_at: u64,
    failures: u64,
    /// Whether the store would not begin the life that was asked for last: it is too young to grant holds.
    wary: bool,
    /// Whether the next question gives everything back. That question takes the mark, so no caller has to clear it.
    releasing: bool,
    /// Whether the flusher looks after it in every period.
    pub(super) watched: bool,
}

#[derive(Debug)]
struct Open {
    question: Question,
    want: u64,
    begins: bool,
    /// Whether it gives everything back.
    releases: bool,
}

/// What a key must be asked for in a period, twice, to be worth a hold: fewer are as well decided by the store.
const HOT: u64 = 4;

impl Desk {
    pub(super) const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    pub(super) const fn heat(&self) -> u64 {
        self.heat
    }

    /// Whether it is worth while to wait for a question about it.
    pub(super) fn is_hot(&self, account: &Account) -> bool {
        account.balance().budget() > 0 || self.heat >= HOT && !self.wary
    }

    /// Whether an answer is awaited.
    pub(super) const fn is_asking(&self) -> bool {
        self.open.is_some()
    }

    pub(super) const fn failures(&self) -> u64 {
        self.failures
    }

    /// The number of the life, and of the question in it that was answered last.
    pub(super) const fn answered(&self) -> (u128, u64) {
        (self.life, self.answered)
    }

    /// Has the next question give everything back, and returns its life and sequence. `None`: there is nothing to give
    /// back, and no open question that may be granted something.
    pub(super) fn release(&mut self, account: &Account) -> Option<(u128, u64)> {
        if self.ticket.is_none() || self.is_released(account) {
            return None;
        }
        self.releasing = true;
        Some((self.life, self.sequence + 1))
    }

    /// Whether the account holds and owes nothing, and no open question may change that.
    pub(super) fn is_released(&self, account: &Account) -> bool {
        let sheet = account.balance();
        self.open.is_none() && sheet.used() + sheet.budget() == 0
    }

    /// What is uncharged and not in the account, since it is being asked about.
    pub(super) fn asked(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.question.charge)
    }

    pub(super) const fn heard_at(&self) -> u64 {
        self.heard_at
    }

    /// Begins with another key.
    pub(super) fn open(&mut self, ticket: Ticket, life: u128, now: u64) {
        *self = Self {
            ticket: Some(ticket),
            life,
            counted_at: now,
            cooled_at: now,
            watched: self.watched,
            ..Self::default()
        };
    }

    /// Whether the account may be given to another key.
    pub(super) fn is_free(&self, account: &Account, now: u64) -> bool {
        let Some(ticket) = &self.ticket else { return true };
        let sheet = account.balance();
        let holds = ticket.is_hold && sheet.budget() > 0 && now < self.heard_at.saturating_add(ticket.term);
        !self.away && !self.releasing && self.open.is_none() && sheet.used() == 0 && !holds
    }

    /// Whether there is something to look after.
    pub(super) fn is_busy(&self, account: &Account) -> bool {
        let sheet = account.balance();
        let holds = self.ticket.as_ref().is_some_and(|ticket| ticket.is_hold) && sheet.budget() > 0;
        self.away || self.releasing || self.open.is_some() || sheet.used() > 0 || holds || self.heat > 0
    }

    /// What the stand-in is to be charged, since the account has admitted it.
    pub(super) fn warm(&mut self, account: &Account) -> u64 {
        let used = account.balance().used();
        let more = used.saturating_sub(self.warmed);
        self.warmed = self.warmed.max(used);
        more
    }

    /// The question to be sent now, if there is one: once more, or a new one. With what the stand-in is to be charged.
    /// `nudged`: it need not wait for the period.
    pub(super) fn ask(
        &mut self,
        account: &Account,
        now: u64,
        nudged: bool,
        life: impl FnOnce() -> u128,
    ) -> Option<(Ask, u64)> {
        let ticket = self.ticket.as_ref()?;
        if self.away {
            return None;
        }
        let mut warm = 0;
        if self.open.is_none() {
            let (most, is_hold, period) = (ticket.most, ticket.is_hold, ticket.period);
            let missed = self.count(account, period, now);
            let releases = core::mem::take(&mut self.releasing) && !self.is_released(account);
            let want = if releases {
                0
            } else if is_hold {
                self.heat.min(most)
            } else {
                most
            };
            if !releases && !self.is_due(account, is_hold, period, now, nudged, missed) {
                return None;
            }
            let keep = self.keep();
            let empty = account.balance().budget() == 0 && account.balance().used() == 0;
            if self.known && empty && now >= self.heard_at.saturating_add(keep) {
                self.begin(life());
            }
            warm = self.warm(account);
            if want < account.balance().budget() {
                // The notice counts what the account holds as taken. From here on that is given back.
                account.reopen();
            }
            let question = account.ask(want);
            // What was spent since is counted with the question.
            warm += question.charge.saturating_sub(self.warmed);
            (self.warmed, self.counted) = (0, 0);
            self.sequence += 1;
            self.asked_at = now;
            self.open = Some(Open {
                question,
                want,
                begins: !self.known,
                releases,
            });
        }
        let keep = Duration::from_nanos(self.keep());
        let (ticket, open) = (self.ticket.as_ref()?, self.open.as_ref()?);
        self.away = true;
        let ask = Ask {
            part: ticket.part.clone(),
            life: self.life,
            sequence: self.sequence,
            begins: open.begins,
            is_hold: ticket.is_hold,
            charge: open.question.charge,
            cap: open.question.cap,
            want: open.want,
            keep,
        };
        Some((ask, warm))
    }

    /// How long the store keeps a life: until what was spent in its term has left every window.
    fn keep(&self) -> u64 {
        let keep = |ticket: &Ticket| ticket.term.saturating_add(nanos(ticket.part.window()));
        self.ticket.as_ref().map_or(0, keep)
    }

    /// Counts what was wanted since the last time, and says what of it was not had.
    fn count(&mut self, account: &Account, period: u64, now: u64) -> u64 {
        let (used, missed) = (account.balance().used(), account.missed());
        let demand = used.saturating_sub(self.counted) + missed;
        self.counted = used;
        let cooled = now.saturating_sub(self.cooled_at) / period;
        self.heat = self
            .heat
            .checked_shr(u32::try_from(cooled).unwrap_or(64))
            .unwrap_or(0);
        self.cooled_at += cooled * period;
        let over = now.saturating_sub(self.counted_at);
        self.counted_at = now;
        // In a period; a few in a short time may be by chance.
        let least = if demand < 8 { period } else { period / 8 };
        let rate = u128::from(demand) * u128::from(period) / u128::from(over.max(least).max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.heat = self.heat.max(rate.saturating_mul(2));
        missed
    }

    fn is_due(
        &self,
        account: &Account,
        is_hold: bool,
        period: u64,
        now: u64,
        nudged: bool,
        missed: u64,
    ) -> bool {
        let sheet = account.balance();
        let (used, budget) = (sheet.used(), sheet.budget());
        let in_time = now >= self.asked_at.saturating_add(period);
        let early = nudged && !account.is_shut(now) && !self.wary;
        if !is_hold {
            let wanted = used > 0 || missed > 0;
            return wanted && (in_time || early && (2 * used >= budget || missed > 0));
        }
        if used == 0 && budget == 0 {
            return self.heat >= HOT && (in_time || early);
        }
        in_time || early && (2 * used >= budget || missed > 0)
    }

    fn begin(&mut self, life: u128) {
        self.life = life;
        (self.sequence, self.answered, self.known) = (0, 0, false);
    }

    /// Whether this was the answer to the open question.
    pub(super) fn tell(
        &mut self,
        account: &Account,
        (asked, told): (&Ask, Told),
        (sent, now): (u64, u64),
        life: impl FnOnce() -> u128,
    ) -> bool {
        let Some(ticket) = &self.ticket else { return false };
        if asked.life != self.life || asked.sequence != self.sequence {
            return false;
        }
        let Some(open) = self.open.take() else {
            return false;
        };
        self.away = false;
        if open.releases {
            // The demand that the account has met is over. It asks for permits again when there is new demand.
            self.heat = 0;
        }
        self.wary = told.permits().is_none() && asked.begins;
        match told.permits() {
            Some(permits) => {
                self.known = true;
                self.answered = asked.sequence;
                self.heard_at = sent;
                account.hear(permits, sent.saturating_add(ticket.term - ticket.margin));
                match told.after() {
                    Some(after) if told.beyond() == 0 => {
                        let after = nanos(after);
                        let more = now.saturating_add(after);
                        account.shut(now.saturating_add(after.min(ticket.period)), 0, more);
                    }
                    _ => account.reopen(),
                }
            }
            None => {
                account.lose();
                (self.warmed, self.counted) = (0, 0);
                self.begin(life());
            }
        }
        self.releasing &= !self.is_released(account);
        true
    }

    /// That nobody has answered.
    pub(super) fn fail(&mut self, asked: &Ask) {
        if asked.life == self.life && asked.sequence == self.sequence {
            self.away = false;
            self.failures += 1;
        }
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
