//! The answers of a layer: quota headers, and responses to rejected requests.

mod decision;
pub(super) mod grpc;
mod headers;
pub(super) mod policy;
mod problem;
mod rejection;
mod response;
mod texts;

pub use decision::Decision;
pub use grpc::Grpc;
pub use headers::QuotaHeaders;
pub(super) use headers::{HeaderValues, RATE_LIMIT, RATE_LIMIT_POLICY};
pub use policy::QuotaPolicy;
pub use problem::Problem;
pub use rejection::{Rejection, RejectionReason, RejectionResponse};
pub use response::DenialResponse;
pub(super) use response::{Statuses, respond};
