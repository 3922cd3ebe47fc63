//! A macro for stores of the tests that pass their calls on to another store.

/// Methods of a `CounterStore` that call the same method of the store in a field: as it is, or by a method that gets its future.
/// `keeps` is followed by what the store serves beside counters: any of `slots`, `blocks` and `leases`.
macro_rules! forward {
    (keeps $($what:ident)*) => {
        fn keeps_slots(&self) -> bool {
            [$(stringify!($what)),*].contains(&"slots")
        }

        fn keeps_blocks(&self) -> bool {
            [$(stringify!($what)),*].contains(&"blocks")
        }

        fn leases(&self) -> Option<&dyn ringgate::shared::LeaseStore> {
            forward!(@ leases self $($what)*)
        }
    };
    (@ leases $this:ident leases) => {
        Some($this)
    };
    (@ leases $this:ident $other:ident $($what:ident)*) => {
        forward!(@ leases $this $($what)*)
    };
    (@ leases $this:ident) => {
        None
    };
    ($store:tt: $($method:ident)*) => {
        $(forward!(@ $method $store);)*
    };
    ($store:tt by $by:ident: $($method:ident)*) => {
        $(forward!(@ $method $store $by);)*
    };
    (@ refund $store:tt $($by:ident)?) => {
        fn refund<'a>(
            &'a self,
            requests: &'a [ringgate::shared::CounterRequest],
            charged: &'a ringgate::shared::CheckResult,
        ) -> ringgate::shared::StoreFuture<'a, u64> {
            forward!(@@ self, self.$store.refund(requests, charged) $(, $by)?)
        }
    };
    (@ decide $store:tt $($by:ident)?) => {
        forward!(@ decide ringgate::shared::CheckResult, $store $($by)?);
    };
    (@ peek $store:tt $($by:ident)?) => {
        forward!(@ peek ringgate::shared::CheckResult, $store $($by)?);
    };
    (@ $method:ident $store:tt $($by:ident)?) => {
        forward!(@ $method (), $store $($by)?);
    };
    (@ $method:ident $output:ty, $store:tt $($by:ident)?) => {
        fn $method<'a>(
            &'a self,
            requests: &'a [ringgate::shared::CounterRequest],
        ) -> ringgate::shared::StoreFuture<'a, $output> {
            forward!(@@ self, self.$store.$method(requests) $(, $by)?)
        }
    };
    (@@ $this:ident, $call:expr) => {
        $call
    };
    (@@ $this:ident, $call:expr, $by:ident) => {
        Box::pin($this.$by($call))
    };
}
