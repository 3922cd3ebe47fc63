//! Requests over several slots of a cluster, which no one script can decide: reserve and undo.
//!
//! All places are looked at first, at once, and a request that one of them has no room for is refused without a
//! charge. Then they are taken one after the other, what is scarcest first, since that is where others are likeliest
//! to be faster. When one refuses after all, what was taken is given back, exactly: nobody has used it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;

use super::accounts::{Ask, Told};
use super::redis_store::RedisStore;
use super::store::{Answer, Found, Part, Store, Verdict};
use super::store_error::StoreError;

/// The parts of one tag, and where they stood.
struct Place {
    parts: Vec<Part>,
    at: Vec<usize>,
}

fn places(parts: &[Part]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match places.iter_mut().find(|place| place.parts[0].tag() == part.tag()) {
            Some(place) => {
                place.parts.push(part.clone());
                place.at.push(at);
            }
            None => places.push(Place {
                parts: alloc::vec![part.clone()],
                at: alloc::vec![at],
            }),
        }
    }
    places
}

/// What was found in all places, in the order of the parts.
fn together(places: &[Place], verdicts: &[Verdict]) -> Verdict {
    let mut found: Vec<(usize, Found)> = places
        .iter()
        .zip(verdicts)
        .flat_map(|(place, verdict)| place.at.iter().copied().zip(verdict.found().iter().copied()))
        .collect();
    found.sort_by_key(|&(at, _)| at);
    let found = found.into_iter().map(|(_, found)| found).collect();
    // Servers' clocks differ; the newest is what all of them have reached or soon will.
    let at = verdicts.iter().map(Verdict::at).max().unwrap_or(0);
    if verdicts.iter().all(Verdict::is_admitted) {
        Verdict::new(at, found)
    } else {
        Verdict::refused(at, found)
    }
}

impl RedisStore {
    async fn look(&self, places: &[Place]) -> Result<Vec<Verdict>, StoreError> {
        all(places.iter().map(|place| {
            let looked: Answer<'_, Verdict> = Box::pin(self.judge("peek", &place.parts));
            looked
        }))
        .await
        .into_iter()
        .collect()
    }

    pub(super) async fn peek_spread(&self, parts: &[Part]) -> Result<Verdict, StoreError> {
        let places = places(parts);
        Ok(together(&places, &self.look(&places).await?))
    }

    pub(super) async fn take_spread(&self, parts: &[Part]) -> Result<Verdict, StoreError> {
        let places = places(parts);
        let mut verdicts = self.look(&places).await?;
        if !verdicts.iter().all(Verdict::is_admitted) {
            return Ok(together(&places, &verdicts));
        }
        let left = |verdict: &Verdict, place: &Place| {
            let left = verdict.found().iter().zip(&place.parts);
            let left = left.filter(|(_, part)| part.is_enforced());
            left.map(|(found, part)| found.remaining().saturating_sub(part.permits()))
                .min()
                .unwrap_or(u64::MAX)
        };
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&place| left(&verdicts[place], &places[place]));
        let mut taken: Vec<usize> = Vec::new();
        for place in order {
            let verdict = self.judge("take", &places[place].parts).await;
            match verdict {
                Ok(verdict) if verdict.is_admitted() => {
                    verdicts[place] = verdict;
                    taken.push(place);
                }
                refused => {
                    self.undo_places(&places, &verdicts, &taken).await;
                    verdicts[place] = refused?;
                    return Ok(together(&places, &verdicts));
                }
            }
        }
        Ok(together(&places, &verdicts))
    }

    /// Gives back what was taken in these places. What that fails for stays charged, which is stricter.
    async fn undo_places(&self, places: &[Place], verdicts: &[Verdict], taken: &[usize]) {
        all(taken.iter().map(|&place| {
            let undone: Answer<'_, u64> = Box::pin(self.undo(&places[place].parts, &verdicts[place]));
            undone
        }))
        .await;
    }

    pub(super) async fn give_back_spread(&self, parts: &[Part], taken: &Verdict) -> Result<u64, StoreError> {
        let mut lost = 0;
        for place in places(parts) {
            let found: Vec<Found> = place.at.iter().map(|&at| taken.found()[at]).collect();
            lost += self
                .give_back(&place.parts, &Verdict::new(taken.at(), found))
                .await?;
        }
        Ok(lost)
    }

    /// Settles accounts in all places, at once.
    pub(super) async fn settle_spread(&self, asks: &[Ask]) -> Vec<Result<Told, StoreError>> {
        let mut places: Vec<(Vec<Ask>, Vec<usize>)> = Vec::new();
        for (at, ask) in asks.iter().enumerate() {
            let tag = ask.part().tag();
            match places.iter_mut().find(|(asks, _)| asks[0].part().tag() == tag) {
                Some((asks, places)) => {
                    asks.push(ask.clone());
                    places.push(at);
                }
                None => places.push((alloc::vec![ask.clone()], alloc::vec![at])),
            }
        }
        let told = all(places.iter().map(|(asks, _)| {
            let told: Answer<'_, Vec<Told>> = Box::pin(self.settle_together(asks));
            told
        }))
        .await;
        let mut answers: Vec<(usize, Result<Told, StoreError>)> = Vec::new();
        for ((_, at), told) in places.iter().zip(told) {
            match told {
                Ok(told) => answers.extend(at.iter().copied().zip(told.into_iter().map(Ok))),
                Err(error) => answers.extend(at.iter().map(|&at| (at, Err(error.clone())))),
            }
        }
        answers.sort_by_key(|&(at, _)| at);
        answers.into_iter().map(|(_, told)| told).collect()
    }

    pub(super) async fn reset_spread(&self, parts: &[Part]) -> Result<(), StoreError> {
        for place in places(parts) {
            self.forget(&place.parts).await?;
        }
        Ok(())
    }
}

/// A question, and its answer when there is one.
type Asked<'a, T> = (Answer<'a, T>, Option<Result<T, StoreError>>);

/// What all of these answer, asked at once.
async fn all<'a, T: Unpin>(asked: impl Iterator<Item = Answer<'a, T>>) -> Vec<Result<T, StoreError>> {
    let mut asked: Vec<Asked<'a, T>> = asked.map(|answer| (answer, None)).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (answer, answered) in &mut asked {
            if answered.is_none() {
                match Pin::new(answer).poll(context) {
                    Poll::Ready(ready) => *answered = Some(ready),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    asked.into_iter().filter_map(|(_, answered)| answered).collect()
}
