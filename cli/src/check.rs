//! `ringgate check`: rules in words.

use alloc::sync::Arc;

use ringgate::rules::{Mode, RuleView};
use ringgate::shared::{MemoryStore, SharedRules};

use crate::failure::Failure;
use crate::rules::{Plan, UNSEEN};

/// A paragraph for each rule. A request that one rule denies is charged to none. With `shared`, a paragraph also says how a store
/// serves the rule.
///
/// # Errors
///
/// When a rule cannot be built. With `shared`, one error names everything that no store serves.
pub(crate) fn words(plan: &Plan, shared: bool) -> Result<String, Failure> {
    let rules = plan.checked()?;
    if shared {
        check_shared(plan)?;
    }
    let mut text = match rules {
        [_] => String::from("1 rule\n"),
        _ => format!(
            "{} rules, decided together: a request is admitted if all admit it, and otherwise charged to none\n",
            rules.len()
        ),
    };
    for rule in rules {
        let view = rule.view();
        text += &format!("\n{}\n", view.name);
        for entry in plan.entries.iter().filter(|entry| entry.rule == view.name) {
            let (bound, bytes) = (entry.bound()?, 8 * entry.words());
            if entry.calendar.is_some() {
                text += &format!(
                    "  {} permits in each {} for {}: at most {bound} in {:?}, {bytes} bytes of state a key\n",
                    entry.quota.limit(),
                    entry.window_text(),
                    whom(&view),
                    entry.quota.window(),
                );
                continue;
            }
            text += &format!(
                "  {} permits in {:?} for {}, by {}: at most {bound} in any window, {bytes} bytes of state a key\n",
                entry.quota.limit(),
                entry.quota.window(),
                whom(&view),
                match (entry.form(), entry.cells()) {
                    (Some(form), _) => format!("{} in {form}", entry.counting.algorithm),
                    (None, Some(cells)) => format!("{} with {cells} cells", entry.counting.algorithm),
                    (None, None) => entry.counting.algorithm.to_string(),
                }
            );
        }
        if let Some(limit) = view.in_flight {
            text += &format!(
                "  {limit} requests in flight for {}: 8 bytes of state a key\n",
                whom(&view)
            );
            text += &format!("  left out by ringgate replay, because {UNSEEN}\n");
        }
        for sentence in sentences(&view) {
            text += &format!("  {sentence}\n");
        }
        if shared {
            text += &format!("  {}\n", of_store(&view));
        }
    }
    Ok(text)
}

/// Builds the rules over a store that has every feature.
fn check_shared(plan: &Plan) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("cannot start a runtime", &error))?;
    let _context = runtime.enter();
    let rules = SharedRules::builder().rules(plan.rules().clone());
    rules.build(Arc::new(MemoryStore::new()))?;
    Ok(())
}

/// The part that a store has in the decisions of a rule.
fn of_store(view: &RuleView<'_>) -> String {
    let key = match view.key {
        Some(key) => format!("; in the program, the key {key} needs `shared_as`"),
        None => String::new(),
    };
    match view.mode {
        Mode::Local => "in mode Local: each machine counts separately, and no store is asked".to_owned(),
        mode => format!(
            "served by a store, in mode {mode:?}, or without its answer by {:?}{key}",
            view.on_error
        ),
    }
}

fn whom(view: &RuleView<'_>) -> String {
    match view.key {
        Some(key) => format!("each {key}"),
        None => "all requests together".to_owned(),
    }
}

/// The other parts of a rule.
fn sentences(view: &RuleView<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.push(match view.when {
        Some(when) => format!("applies to requests with {when}"),
        None => "applies to every request".to_owned(),
    });
    sentences.push(match view.cost {
        Some(cost) => format!("a request costs as many permits as {cost} says"),
        None => "a request costs 1 permit".to_owned(),
    });
    if let Some(burst) = view.burst {
        sentences.push(format!("at most {burst} permits at once"));
    }
    if let Some(tier_of) = view.tier_of {
        let tiers = view.tiers.iter().map(|(name, limit)| format!("{name}: {limit}"));
        let tiers: Vec<String> = tiers.collect();
        sentences.push(format!(
            "the limit by {tier_of} is another one for {}",
            tiers.join(", ")
        ));
    }
    if view.allowed > 0 {
        sentences.push(format!("keys that are always admitted: {}", view.allowed));
    }
    if view.denied > 0 {
        sentences.push(format!("keys that are always denied: {}", view.denied));
    }
    if let Some(block) = view.block {
        let (number, window) = (block.after.limit(), block.after.window());
        let (first, factor, longest) = (block.duration, block.factor, block.ceiling);
        let mut sentence = format!("violation {number} of a key within {window:?} blocks it for {first:?}");
        if factor > 1 {
            sentence += &format!(
                "; each further block is {factor} times as long, up to {longest:?}, until the key is forgiven after {:?}",
                block.forgive_after
            );
        }
        if block.extends {
            sentence += "; a retry begins the block anew";
        }
        sentences.push(sentence);
    }
    if view.enforced <= 0.0 {
        sentences.push("in the shadow: counts, and denies nothing".to_owned());
    } else if view.enforced < 100.0 {
        sentences.push(format!(
            "denies {} % of the keys; for others it only counts",
            view.enforced
        ));
    }
    if let (Some(capacity), Some(_)) = (view.capacity, view.key) {
        sentences.push(format!(
            "room for {capacity} keys; the decision about a new key without room is {:?}",
            view.on_full
        ));
    }
    sentences
}
