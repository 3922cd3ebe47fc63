use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use ::http::Method;
use ::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use ::http::request::Parts;

/// Which requests are none of the layer's business.
#[derive(Clone)]
pub(super) struct Skip {
    preflight: bool,
    paths: Vec<Arc<str>>,
    functions: Vec<Arc<Predicate>>,
}

type Predicate = dyn Fn(&Parts) -> bool + Send + Sync;

impl Skip {
    pub(super) const fn new() -> Self {
        Self {
            preflight: false,
            paths: Vec::new(),
            functions: Vec::new(),
        }
    }

    pub(super) const fn preflight(&mut self) {
        self.preflight = true;
    }

    pub(super) fn path(&mut self, path: String) {
        self.paths.push(path.into());
    }

    pub(super) fn function(&mut self, function: impl Fn(&Parts) -> bool + Send + Sync + 'static) {
        self.functions.push(Arc::new(function));
    }

    #[inline]
    pub(super) fn skips(&self, request: &Parts) -> bool {
        self.preflight && is_preflight(request)
            || self.paths.iter().any(|path| **path == *request.uri.path())
            || self.functions.iter().any(|function| function(request))
    }
}

/// As the Fetch Standard has it (3.2.2): browsers send it by themselves, before the request that is meant.
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
            .field("functions", &self.functions.len())
            .finish()
    }
}
