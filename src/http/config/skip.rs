use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use ::http::Method;
use ::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use ::http::request::Parts;

use crate::http::request::outer_path;

/// Requests that the layer passes to the inner service without evaluating rules.
#[derive(Clone)]
pub(in crate::http) struct Skip {
    preflight: bool,
    paths: Vec<Arc<str>>,
    predicates: Vec<Arc<Predicate>>,
}

/// A function that selects requests that are not limited.
type Predicate = dyn Fn(&Parts) -> bool + Send + Sync;

impl Skip {
    pub(in crate::http) const fn new() -> Self {
        Self {
            preflight: false,
            paths: Vec::new(),
            predicates: Vec::new(),
        }
    }

    pub(in crate::http) const fn add_preflight(&mut self) {
        self.preflight = true;
    }

    pub(in crate::http) fn add_path(&mut self, path: String) {
        self.paths.push(path.into());
    }

    pub(in crate::http) fn add_predicate(
        &mut self,
        predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static,
    ) {
        self.predicates.push(Arc::new(predicate));
    }

    #[inline]
    pub(in crate::http) fn contains(&self, request: &Parts) -> bool {
        self.preflight && is_preflight(request)
            || !self.paths.is_empty() && self.paths.iter().any(|path| **path == *outer_path(request))
            || self.predicates.iter().any(|predicate| predicate(request))
    }
}

/// Returns whether a request is a CORS preflight (Fetch Standard, section 3.3.2).
fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS
        && request.headers.contains_key(ORIGIN)
        && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

impl fmt::Debug for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skip")
            .field("preflight", &self.preflight)
            .field("paths", &self.paths)
            .field("predicates", &self.predicates.len())
            .finish()
    }
}
