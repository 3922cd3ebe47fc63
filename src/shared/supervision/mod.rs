//! A connection to a server that no request waits for, for stores in any server: [`Supervisor`].
//!
//! A store implements [`Server`] for its client, and makes each call by [`Supervisor::call`]. It gets the timeouts of calls, a
//! circuit breaker, new connections after an outage, [`Health`], the events of `tracing`, and the metrics of `StoreObserver`
//! (feature `observe`). `redis::RedisStore` is such a store.
//!
//! ```
//! use core::time::Duration;
//!
//! use ringgate::shared::StoreError;
//! use ringgate::shared::supervision::{
//!     CallError, Connected, Server, ServerRole, Supervisor, SupervisorSettings,
//! };
//!
//! /// A server of one number, which this example keeps in the process.
//! struct Numbers;
//!
//! impl Server for Numbers {
//!     const NAME: &'static str = "Numbers";
//!     // The client of a real server.
//!     type Connection = u64;
//!
//!     fn prefix(&self) -> &str {
//!         "ringgate"
//!     }
//!
//!     async fn connect(&self) -> Result<Connected<u64>, StoreError> {
//!         Ok(Connected { connection: 7, role: ServerRole::Primary })
//!     }
//!
//!     async fn ping(&self, _: &u64) -> Result<(), CallError> {
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let supervisor = Supervisor::start(Numbers, SupervisorSettings::default())?;
//! supervisor.ready(Duration::from_secs(1), async |_| Ok(())).await?;
//! assert_eq!(supervisor.call(async |number| Ok(number + 1)).await?, 8);
//! assert_eq!(supervisor.live_health().read().answered, 1);
//! # Ok(())
//! # }
//! ```

mod breaker;
mod call_error;
#[cfg_attr(not(feature = "observe"), path = "no_events.rs")]
mod events;
mod health;
mod live_health;
#[cfg(feature = "observe")]
mod observer;
mod server;
mod settings;
mod supervisor;

pub use breaker::BreakerState;
pub use call_error::{CallError, ErrorClass};
pub use health::Health;
pub use live_health::LiveHealth;
#[cfg(feature = "observe")]
pub use observer::StoreObserver;
pub use server::{Connected, Server, ServerRole};
pub use settings::{BreakerSettings, SupervisorSettings};
pub use supervisor::Supervisor;
