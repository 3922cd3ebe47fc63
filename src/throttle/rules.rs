//! Throttling by rules that connections share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::borrow::Borrow;

use super::builder::ThrottledBuilder;
use super::quantum::Quantum;
use super::shared_limit::{SharedLimit, Turns};
use crate::rules::Cost;
use crate::wait::{Fair, RuleSource};

/// A turn of rules in bytes. It is fixed, because the rate of rules depends on the request.
const TURN_BYTES: u64 = 8 * 1024;

impl<T> ThrottledBuilder<T> {
    /// Limits reading by rules that connections share. Replaces a shared limiter or shared rules that were set before.
    ///
    /// Each turn is one request, which `request` creates from the bytes of the turn. `cost` reads the bytes from the request.
    /// A rule without this cost counts turns.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use std::sync::Arc;
    /// use ringgate::rules::Cost;
    /// use ringgate::throttle::Throttled;
    /// use ringgate::{Fair, Key, Rule, RuleSet};
    ///
    /// #[derive(Clone, Copy)]
    /// struct Transfer {
    ///     user: u32,
    ///     bytes: u64,
    /// }
    ///
    /// let user = Key::new("user", |transfer: &Transfer, key| transfer.user.hash(key));
    /// let bytes = Cost::new("bytes", |transfer: &Transfer| transfer.bytes);
    /// let rules = RuleSet::builder()
    ///     .rule(Rule::new("each user", "1_000_000/s".parse()?).by(&user).cost(&bytes))
    ///     .rule(Rule::new("all", "10_000_000/s".parse()?).cost(&bytes))
    ///     .build()?;
    /// let rules = Arc::new(Fair::new(rules));
    ///
    /// let upload = Throttled::builder(tokio::io::empty())
    ///     .read_rules(rules, &bytes, |bytes| Transfer { user: 7, bytes })
    ///     .build()?;
    /// # let _ = upload;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn read_rules<S, B>(
        mut self,
        rules: Arc<Fair<S>>,
        cost: &Cost<S::Request>,
        request: impl Fn(u64) -> B + Send + Sync + 'static,
    ) -> Self
    where
        S: RuleSource<Request: 'static> + Send + Sync + 'static,
        B: Borrow<S::Request> + Unpin + Send + 'static,
    {
        self.read.shared = Some(turns(rules, cost.clone(), request));
        self
    }

    /// Limits writing by rules that connections share. See [`read_rules`](Self::read_rules).
    pub fn write_rules<S, B>(
        mut self,
        rules: Arc<Fair<S>>,
        cost: &Cost<S::Request>,
        request: impl Fn(u64) -> B + Send + Sync + 'static,
    ) -> Self
    where
        S: RuleSource<Request: 'static> + Send + Sync + 'static,
        B: Borrow<S::Request> + Unpin + Send + 'static,
    {
        self.write.shared = Some(turns(rules, cost.clone(), request));
        self
    }
}

/// Turns of shared rules. Each turn is one request.
fn turns<L, B>(
    rules: Arc<Fair<L>>,
    cost: Cost<L::Request>,
    request: impl Fn(u64) -> B + Send + Sync + 'static,
) -> Box<dyn SharedLimit>
where
    L: RuleSource<Request: 'static> + Send + Sync + 'static,
    B: Borrow<L::Request> + Unpin + Send + 'static,
{
    let (joined, settled) = (Arc::clone(&rules), Arc::clone(&rules));
    Box::new(Turns::new(
        Quantum::of_bytes(TURN_BYTES),
        move || rules.waiting(),
        move |bytes| Arc::clone(&joined).acquire_owned(request(bytes)),
        move |reservation, moved| settled.settle(reservation, (&cost, moved)),
    ))
}
