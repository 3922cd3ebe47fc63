//! An orderly end: all is charged, and all holds are given back.

use alloc::vec::Vec;

use super::books::Books;
use super::store_error::StoreError;

/// An account that is to be heard of: its life, the sequence to be answered, and how often it was not.
struct Awaited {
    at: usize,
    life: u128,
    sequence: u64,
    failures: u64,
}

impl Books {
    /// Has these accounts charge what they have spent and give back what they hold.
    pub(super) async fn give_back_of(
        &self,
        accounts: impl IntoIterator<Item = usize>,
    ) -> Result<(), StoreError> {
        let mut awaited: Vec<Awaited> = Vec::new();
        {
            let mut inside = self.lock();
            for at in accounts {
                let desk = &mut inside.desks[at];
                let sheet = self.accounts[at].balance();
                if desk.ticket().is_none() || sheet.used() + sheet.budget() + desk.asked() == 0 {
                    continue;
                }
                desk.yields = true;
                awaited.push(Awaited {
                    at,
                    life: desk.answered().0,
                    // The question that is open gives nothing back: it is the one after it.
                    sequence: desk.sequence() + 1,
                    failures: desk.failures(),
                });
            }
        }
        let mut result = Ok(());
        for awaited in &awaited {
            let heard = self.wait_for(awaited).await;
            result = result.and(heard);
        }
        let mut inside = self.lock();
        for awaited in &awaited {
            inside.desks[awaited.at].yields = false;
        }
        result
    }

    async fn wait_for(&self, awaited: &Awaited) -> Result<(), StoreError> {
        loop {
            // Before the look: whoever is heard of after it tells us.
            let heard = self.heard_of(awaited.at).notified();
            {
                let inside = self.lock();
                let desk = &inside.desks[awaited.at];
                let sheet = self.accounts[awaited.at].balance();
                let (life, sequence) = desk.answered();
                // Another life has nothing of this one.
                if life != awaited.life
                    || sequence >= awaited.sequence
                    || sheet.used() + sheet.budget() + desk.asked() == 0
                {
                    return Ok(());
                }
                if desk.failures() != awaited.failures
                    && let Some(error) = &inside.error
                {
                    return Err(error.clone());
                }
            }
            self.nudge(awaited.at, true);
            heard.await;
        }
    }
}
