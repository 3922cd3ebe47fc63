//! An orderly end: all is charged, and all holds are given back.
//!
//! Giving back is a question like any other, and the mark that asks for it belongs to the desk: the next question takes it.
//! A future that is dropped while it waits leaves a mark that the flusher takes in its next round, and nothing else. Other
//! demand for the key is met by the question after it, so a loop of resets does not starve requests.

use alloc::vec::Vec;

use super::books::Books;
use super::store_error::StoreError;

/// An account whose release is awaited: its life, the sequence to be answered, and how often it was not.
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
                if let Some((life, sequence)) = desk.release(&self.accounts[at]) {
                    awaited.push(Awaited {
                        at,
                        life,
                        sequence,
                        failures: desk.failures(),
                    });
                }
            }
        }
        // All of them, before the first wait: the future may be dropped there.
        for awaited in &awaited {
            self.due.note(awaited.at);
        }
        self.wake.notify_one();
        let mut result = Ok(());
        for awaited in &awaited {
            let heard = self.wait_for(awaited).await;
            result = result.and(heard);
        }
        result
    }

    async fn wait_for(&self, awaited: &Awaited) -> Result<(), StoreError> {
        loop {
            // Before the look: an answer that comes after it ends the wait.
            let heard = self.heard_of(awaited.at).notified();
            {
                let inside = self.lock();
                let desk = &inside.desks[awaited.at];
                let (life, sequence) = desk.answered();
                // Another life has nothing of this one.
                if life != awaited.life
                    || sequence >= awaited.sequence
                    || desk.is_released(&self.accounts[awaited.at])
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
