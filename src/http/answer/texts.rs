use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;
use std::thread_local;

use ::http::header::HeaderValue;

use super::policy::{QuotaPolicy, assign_names, percent_encode, whole_seconds};

/// The header texts that depend on the policies of a request, and not on their state.
pub(super) struct PolicyTexts {
    pub(super) header: HeaderValue,
    items: Vec<PolicyText>,
    /// The memory in which [`states`](Self::states) writes its list.
    buffer: Vec<u8>,
}

/// The text of the `RateLimit-Policy` item of one quota, with the values that it was made of.
struct PolicyText {
    rule: Box<str>,
    limit: u64,
    window: Duration,
    is_block: bool,
    name: Vec<u8>,
}

/// The parameter of a limit of requests in flight, which has no window.
const IN_FLIGHT_UNIT: &[u8] = b";qu=\"concurrent-requests\"";

/// The number of lists of policies whose texts a thread keeps. A server has one list for each combination of rules and tiers that
/// apply to a request.
const MAX_CACHED: usize = 8;

thread_local! {
    static CACHE: RefCell<Vec<PolicyTexts>> = const { RefCell::new(Vec::new()) };
}

impl PolicyTexts {
    /// Passes the texts of these policies to `write`, unless there is no policy. Each thread caches the texts of the last lists of
    /// policies that it has built.
    pub(super) fn with(policies: &[QuotaPolicy<'_>], write: impl FnOnce(&mut Self)) {
        let with_cache = |cache: &RefCell<Vec<Self>>| {
            let cache = &mut *cache.borrow_mut();
            let index = match cache.iter().position(|texts| texts.are_of(policies)) {
                Some(index) => index,
                None => {
                    let Some(texts) = Self::new(policies) else {
                        return;
                    };
                    // The oldest texts are replaced.
                    if cache.len() == MAX_CACHED {
                        cache.remove(0);
                    }
                    cache.push(texts);
                    cache.len() - 1
                }
            };
            write(&mut cache[index]);
        };
        // This fails while the thread ends. The response has no quota headers then.
        let _ = CACHE.try_with(with_cache);
    }

    fn new(policies: &[QuotaPolicy<'_>]) -> Option<Self> {
        let mut named = policies.to_vec();
        assign_names(&mut named);
        let mut header = Vec::new();
        let mut items = Vec::with_capacity(named.len());
        for policy in &named {
            if !header.is_empty() {
                header.extend_from_slice(b", ");
            }
            let start = header.len();
            push_string(&mut header, policy.name());
            items.push(PolicyText {
                rule: policy.rule().into(),
                limit: policy.limit(),
                window: policy.window(),
                is_block: policy.is_block(),
                name: header[start..].to_vec(),
            });
            push_parameter(&mut header, b";q=", policy.limit());
            if policy.is_in_flight() {
                header.extend_from_slice(IN_FLIGHT_UNIT);
            } else {
                push_parameter(&mut header, b";w=", whole_seconds(policy.window()));
            }
        }
        if items.is_empty() {
            return None;
        }
        let header = HeaderValue::try_from(header).ok()?;
        let buffer = Vec::new();
        Some(Self {
            header,
            items,
            buffer,
        })
    }

    fn are_of(&self, policies: &[QuotaPolicy<'_>]) -> bool {
        let same = |(item, policy): (&PolicyText, &QuotaPolicy<'_>)| {
            (item.limit, item.window, item.is_block) == (policy.limit(), policy.window(), policy.is_block())
                && *item.rule == *policy.rule()
        };
        self.items.len() == policies.len() && self.items.iter().zip(policies).all(same)
    }

    /// Writes the list of the policies' states. Only the value is allocated.
    pub(super) fn states(&mut self, policies: &[QuotaPolicy<'_>]) -> Option<HeaderValue> {
        let list = &mut self.buffer;
        list.clear();
        for (item, policy) in self.items.iter().zip(policies) {
            if !list.is_empty() {
                list.extend_from_slice(b", ");
            }
            list.extend_from_slice(&item.name);
            push_parameter(list, b";r=", policy.remaining());
            if let Some(reset_after) = policy.reset_after().filter(|_| !policy.is_in_flight()) {
                push_parameter(list, b";t=", whole_seconds(reset_after));
            }
        }
        HeaderValue::from_bytes(list).ok()
    }
}

/// Writes a string (RFC 9651, section 4.1.6), percent-encoded because it must be ASCII.
fn push_string(list: &mut Vec<u8>, text: &str) {
    list.push(b'"');
    for byte in percent_encode(text).bytes() {
        if matches!(byte, b'"' | b'\\') {
            list.push(b'\\');
        }
        list.push(byte);
    }
    list.push(b'"');
}

/// Writes an integer parameter, which has at most 15 digits (RFC 9651, section 3.3.1).
fn push_parameter(list: &mut Vec<u8>, key: &[u8; 3], value: u64) {
    list.extend_from_slice(key);
    let value = value.min(999_999_999_999_999);
    list.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
