//! The rules by the definitions of their algorithms. All charges of each quota and key are counted for each decision.

use super::*;
use crate::exact::{Charges, Counting, Definition, Mark};

/// One rule, as plain data.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) quotas: Vec<Quota>,
    pub(crate) algorithm: RuleAlgorithm,
    pub(crate) cells: Option<u64>,
    /// The cells and the unit of a sliding window that chose one word.
    pub(crate) word: Option<(u64, u64)>,
    pub(crate) burst: Option<u64>,
    pub(crate) by: By,
    pub(crate) costs: bool,
    pub(crate) login_only: bool,
    /// Limits of "free" and "pro".
    pub(crate) tiers: Option<[u64; 2]>,
    /// Whether the limit of a request replaces a higher one.
    pub(crate) limit_by: bool,
    pub(crate) allow: Option<u64>,
    pub(crate) deny: Option<u64>,
    pub(crate) enforced: Enforced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Nothing,
    User,
    Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enforced {
    All,
    None,
    Half,
}

/// Functions that several rules use, so that they can share a state.
pub(crate) struct Functions {
    pub(crate) user: Key<Request>,
    pub(crate) address: Key<Request>,
    pub(crate) cost: Cost<Request>,
    pub(crate) login: Condition<Request>,
    pub(crate) plan: TierOf<Request>,
}

impl Functions {
    pub(crate) fn new() -> Self {
        Self {
            user: super::by_user(),
            address: super::by_address(),
            cost: super::by_cost(),
            login: super::login(),
            plan: super::by_plan(),
        }
    }
}

impl Spec {
    pub(crate) fn rule(&self, functions: &Functions) -> Rule<Request> {
        let mut rule = Rule::new(self.name, self.quotas[0]).algorithm(self.algorithm);
        for &quota in &self.quotas[1..] {
            rule = rule.also(quota);
        }
        if let Some(cells) = self.cells {
            rule = rule.cells(cells);
        }
        if let Some(burst) = self.burst {
            rule = rule.burst(burst);
        }
        rule = match self.by {
            By::Nothing => rule,
            By::User => rule.by(&functions.user).capacity(300),
            By::Address => rule.by(&functions.address).capacity(300),
        };
        if self.costs {
            rule = rule.cost(&functions.cost);
        }
        if self.login_only {
            rule = rule.when(&functions.login);
        }
        if let Some([free, pro]) = self.tiers {
            rule = rule.tier_of(&functions.plan).tier("free", free).tier("pro", pro);
        }
        if self.limit_by {
            rule = rule.limit_by(|request: &Request| request.limit);
        }
        if let Some(key) = self.allow {
            rule = rule.allow(key);
        }
        if let Some(key) = self.deny {
            rule = rule.deny(key);
        }
        match self.enforced {
            Enforced::All => rule,
            Enforced::None => rule.shadow(),
            Enforced::Half => rule.enforce_percent(50.0),
        }
    }

    pub(crate) fn key(&self, request: &Request) -> u64 {
        match self.by {
            By::Nothing => 0,
            By::User => request.user,
            By::Address => request.address,
        }
    }

    pub(crate) fn permits(&self, request: &Request) -> u64 {
        if self.costs { request.cost } else { 1 }
    }

    pub(crate) fn is_about(&self, request: &Request) -> bool {
        (!self.login_only || request.login) && self.allow != Some(self.key(request))
    }

    pub(crate) fn denies(&self, request: &Request) -> bool {
        self.deny == Some(self.key(request)) || self.limit(0, request) == 0
    }

    pub(crate) fn limit(&self, quota: usize, request: &Request) -> u64 {
        let of_request = request.limit.filter(|_| self.limit_by);
        self.tier_limit(quota, request)
            .min(of_request.unwrap_or(u64::MAX))
    }

    fn tier_limit(&self, quota: usize, request: &Request) -> u64 {
        match (self.tiers, request.plan) {
            (Some([free, _]), Some("free")) => free,
            (Some([_, pro]), Some("pro")) => pro,
            _ => self.quotas[quota].limit(),
        }
    }

    /// The quota that applies to the request.
    fn definition(&self, quota: usize, request: &Request) -> Definition {
        // A limit of 0 denies by itself.
        let (limit, given) = (self.limit(quota, request).max(1), self.quotas[quota]);
        let window = nanos(given.window());
        let counting = match self.algorithm {
            RuleAlgorithm::Log => Definition::log(given.limit(), window).counting,
            RuleAlgorithm::Gcra => {
                let of_tier = self.tier_limit(quota, request);
                let burst = self.burst.unwrap_or(given.limit());
                let burst = (burst * of_tier / given.limit()).max(1);
                let burst = (burst * limit / of_tier).max(1);
                Counting::Bucket { window, burst }
            }
            RuleAlgorithm::SlidingWindow if self.word.is_some() => {
                let (cells, unit) = self.word.expect("a word");
                let width = window.div_ceil(cells);
                Counting::Units { cells, unit, width }
            }
            algorithm => {
                let is_strict = matches!(algorithm, RuleAlgorithm::Counter | RuleAlgorithm::SlidingWindow);
                let default = match algorithm {
                    RuleAlgorithm::SlidingWindow => CounterRing::DEFAULT_CELLS,
                    _ => CounterRing::DEFAULT_CLASSIC_CELLS,
                };
                let cells = match algorithm {
                    RuleAlgorithm::Fixed => 1,
                    _ => self.cells.unwrap_or(default),
                };
                Counting::Cells {
                    cells,
                    summed: cells + u64::from(is_strict),
                    width: window.div_ceil(cells),
                    tick: 1,
                    shares: algorithm == RuleAlgorithm::Even,
                }
            }
        };
        Definition { limit, counting }
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("not for centuries")
}

/// A violation: the rule, the quota, the limit, and the remaining permits.
pub(crate) type Violation = (String, String, u64, u64);

/// All rules, and all their charges.
pub(crate) struct Reference {
    pub(crate) specs: Vec<Spec>,
    charges: HashMap<(usize, usize, u64), Charges>,
    /// The charges of the last request.
    last: Vec<((usize, usize, u64), Definition, Mark)>,
    pub(crate) counts: Vec<RuleCounts>,
}

impl Reference {
    pub(crate) fn new(specs: Vec<Spec>) -> Self {
        let counts = specs.iter().map(|_| RuleCounts::default()).collect();
        Self {
            specs,
            charges: HashMap::new(),
            last: Vec::new(),
            counts,
        }
    }

    fn charges(&self, rule: usize, quota: usize, request: &Request) -> Charges {
        let key = (rule, quota, self.specs[rule].key(request));
        self.charges.get(&key).cloned().unwrap_or_default()
    }

    pub(crate) fn spent(&self, rule: usize, quota: usize, request: &Request, now: u64) -> u64 {
        let definition = self.specs[rule].definition(quota, request);
        definition.spent(&self.charges(rule, quota, request), now)
    }

    pub(crate) fn remaining(&self, rule: usize, quota: usize, request: &Request, now: u64) -> u64 {
        let spec = &self.specs[rule];
        if spec.denies(request) {
            return 0;
        }
        spec.definition(quota, request)
            .remaining(&self.charges(rule, quota, request), now)
    }

    /// The quotas of a rule that would deny.
    fn without_room(&self, rule: usize, request: &Request, now: u64) -> Vec<Violation> {
        let spec = &self.specs[rule];
        if !spec.is_about(request) {
            return Vec::new();
        }
        let violated = |quota: usize| {
            let room = self.remaining(rule, quota, request, now);
            (spec.denies(request) || room < spec.permits(request)).then(|| {
                let text = spec.quotas[quota].to_string();
                (spec.name.to_string(), text, spec.limit(quota, request), room)
            })
        };
        (0..spec.quotas.len()).filter_map(violated).collect()
    }

    /// The violations of the request, sorted. `enforced` states for each rule whether it is enforced.
    pub(crate) fn violations(&self, request: &Request, enforced: &[bool], now: u64) -> Vec<Violation> {
        let rules = (0..self.specs.len()).filter(|&rule| enforced[rule]);
        let mut all: Vec<_> = rules
            .flat_map(|rule| self.without_room(rule, request, now))
            .collect();
        all.sort_unstable();
        all
    }

    /// Whether the request is never admitted.
    pub(crate) fn is_hopeless(&self, request: &Request, enforced: &[bool]) -> bool {
        (0..self.specs.len()).any(|rule| {
            let spec = &self.specs[rule];
            let too_many = |quota| spec.permits(request) > spec.definition(quota, request).max_request();
            enforced[rule]
                && spec.is_about(request)
                && (spec.denies(request) || (0..spec.quotas.len()).any(too_many))
        })
    }

    /// Decides, and counts.
    pub(crate) fn check(
        &mut self,
        request: &Request,
        enforced: &[bool],
        now: u64,
    ) -> Result<(), Vec<Violation>> {
        let violations = self.violations(request, enforced, now);
        self.last.clear();
        for (rule, &enforced) in enforced.iter().enumerate() {
            if !self.specs[rule].is_about(request) {
                continue;
            }
            let has_room = self.without_room(rule, request, now).is_empty();
            let counts = &mut self.counts[rule];
            match (enforced, has_room) {
                (true, false) => counts.denied += 1,
                (false, false) => counts.shadow_denied += 1,
                (_, true) if violations.is_empty() => {
                    let permits = self.specs[rule].permits(request);
                    counts.admitted += 1;
                    counts.charged += permits;
                    self.charge(rule, request, now, permits);
                }
                _ => {}
            }
        }
        if violations.is_empty() {
            Ok(())
        } else {
            Err(violations)
        }
    }

    fn charge(&mut self, rule: usize, request: &Request, now: u64, permits: u64) {
        for quota in 0..self.specs[rule].quotas.len() {
            let spec = &self.specs[rule];
            let (key, definition) = ((rule, quota, spec.key(request)), spec.definition(quota, request));
            let mark = self
                .charges
                .entry(key)
                .or_default()
                .charge(definition, now, permits);
            self.last.push((key, definition, mark));
        }
    }

    /// Refunds the last charge. Returns the most permits that one rule has forfeited. A log refunds nothing.
    pub(crate) fn take_back(&mut self, request: &Request, charged: &[bool]) -> u64 {
        let mut most = 0;
        for rule in (0..self.specs.len()).filter(|&rule| charged[rule]) {
            let spec = &self.specs[rule];
            if spec.algorithm == RuleAlgorithm::Log {
                let kept = spec.permits(request);
                // Each quota of a log is a separate state.
                self.counts[rule].forfeited += kept * spec.quotas.len() as u64;
                most = kept.max(most);
                continue;
            }
            let permits = spec.permits(request);
            self.counts[rule].refunded += permits;
            for (key, definition, mark) in self.last.iter().filter(|(key, ..)| key.0 == rule) {
                let charges = self.charges.get_mut(key).expect("it was charged");
                assert!(charges.refund(&[*definition], *mark, permits, permits));
            }
        }
        most
    }

    /// The rules that an admitted request is charged to.
    pub(crate) fn charged(&self, request: &Request, now: u64) -> Vec<bool> {
        let rules = 0..self.specs.len();
        rules
            .map(|rule| {
                self.specs[rule].is_about(request) && self.without_room(rule, request, now).is_empty()
            })
            .collect()
    }
}
