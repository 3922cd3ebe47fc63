use super::*;

pub(crate) const SEEDS: [u64; 4] = [1, 2, 3, 4];

pub(crate) struct Request {
    pub(crate) user: u32,
    pub(crate) cost: u64,
}

pub(crate) fn request(user: u32) -> Request {
    Request { user, cost: 1 }
}

pub(crate) fn user() -> Key<Request> {
    Key::new("user", |request: &Request, key| request.user.hash(key))
}

pub(crate) fn named(names: &[&str]) -> RuleSetBuilder<Request> {
    with_quota(names, "2/s")
}

pub(crate) fn with_quota(names: &[&str], quota: &str) -> RuleSetBuilder<Request> {
    let add = |rules: RuleSetBuilder<Request>, name: &&str| {
        rules.rule(Rule::new(*name, quota.parse().expect("a quota")))
    };
    names.iter().fold(RuleSetBuilder::new(), add)
}

pub(crate) fn live(names: &[&str]) -> Result<LiveRules<Request, ManualClock>, Box<dyn Error>> {
    Ok(LiveRules::new(
        named(names).build_with(ManualClock::new(), SEEDS)?,
    ))
}

pub(crate) fn ask(rules: &LiveRules<Request, ManualClock>, times: u32) {
    for _ in 0..times {
        let _ = rules.load().check(&request(0));
    }
}
