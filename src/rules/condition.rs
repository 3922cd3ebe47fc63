use alloc::sync::Arc;
use core::fmt;

/// A named function of a request.
pub(crate) struct NamedFn<F: ?Sized> {
    name: Arc<str>,
    function: Arc<F>,
}

impl<F: ?Sized> NamedFn<F> {
    /// Whether both are clones of one function.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    #[inline]
    pub(crate) fn function(&self) -> &F {
        &self.function
    }
}

impl<F: ?Sized> Clone for NamedFn<F> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            function: Arc::clone(&self.function),
        }
    }
}

/// Declares a named function of a request. The answer may borrow from the request for `'a`.
macro_rules! function_of_a_request {
    ($(#[$doc:meta])* $name:ident, $answer:ty) => {
        $(#[$doc])*
        pub struct $name<R: ?Sized>(pub(crate) NamedFn<dyn for<'a> Fn(&'a R) -> $answer + Send + Sync>);

        impl<R: ?Sized> $name<R> {
            /// Creates a named function of a request.
            pub fn new(
                name: impl Into<Arc<str>>,
                function: impl for<'a> Fn(&'a R) -> $answer + Send + Sync + 'static,
            ) -> Self {
                Self(NamedFn {
                    name: name.into(),
                    function: Arc::new(function),
                })
            }

            pub(crate) fn name(&self) -> &str {
                &self.0.name
            }
        }

        impl<R: ?Sized> Clone for $name<R> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<R: ?Sized> fmt::Debug for $name<R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name))
                    .field(&self.0.name)
                    .finish()
            }
        }
    };
}

function_of_a_request! {
    /// A named function that returns the cost of a request in permits: bytes, tokens, rows.
    ///
    /// Rules with clones of one `Cost` have the same cost. A rule without a cost charges one permit.
    ///
    /// ```
    /// use ringgate::rules::Cost;
    ///
    /// let bytes = Cost::new("bytes", |body: &Vec<u8>| body.len() as u64);
    /// # let _ = bytes;
    /// ```
    Cost, u64
}

function_of_a_request! {
    /// A named function that returns whether a rule applies to a request.
    ///
    /// Rules with clones of one `Condition` have the same condition. Two with the same code are different, so each rule takes a state
    /// of its own. A reload compares conditions by name, so the counts stay if only the code has changed.
    ///
    /// ```
    /// use ringgate::rules::Condition;
    ///
    /// let login = Condition::new("login", |path: &str| path == "/login");
    /// # let _ = login;
    /// ```
    Condition, bool
}

function_of_a_request! {
    /// A named function that returns the tier of a request by its name.
    ///
    /// The rule's own quota applies if the function returns `None`, or a name that the rule does not have.
    ///
    /// ```
    /// use ringgate::rules::TierOf;
    ///
    /// struct User {
    ///     plan: String,
    /// }
    ///
    /// let plan = TierOf::new("plan", |user: &User| Some(user.plan.as_str()));
    /// # let _ = plan;
    /// ```
    TierOf, Option<&'a str>
}

/// A function that returns the limit of a request.
pub(crate) struct LimitBy<R: ?Sized>(pub(crate) Arc<LimitFn<R>>);

/// A function that returns the limit of a request.
type LimitFn<R> = dyn Fn(&R) -> Option<u64> + Send + Sync;

impl<R: ?Sized> Clone for LimitBy<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: ?Sized> fmt::Debug for LimitBy<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitBy").finish_non_exhaustive()
    }
}
