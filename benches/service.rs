//! A service for benches of the HTTP layer. One request is served again and again.

use core::cell::Cell;
use core::convert::Infallible;
use core::error::Error;
use core::future::{Ready, ready};
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use http::{Request, Response};
use ringgate::http::PeerAddress;
use tower::Service;

thread_local! {
    /// The request, between two calls.
    static SERVED: Cell<Option<Request<()>>> = const { Cell::new(None) };
}

/// Stores the request, and makes an empty response.
///
/// The call is not inlined. Otherwise the compiler would merge the bare service into the loop of the bench, and the
/// difference would count as a cost of the layer.
#[derive(Clone, Debug)]
pub(crate) struct Store;

impl Service<Request<()>> for Store {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<()>) -> Self::Future {
        SERVED.set(Some(request));
        ready(Ok(Response::new(String::new())))
    }
}

pub(crate) fn request() -> Result<Request<()>, Box<dyn Error>> {
    Ok(Request::get("/orders/17")
        .header("x-api-key", "alice")
        .header("host", "example.com")
        .header("accept", "*/*")
        .extension(PeerAddress("192.0.2.1".parse()?))
        .body(())?)
}

/// Returns a function that sends the request once and returns whether it was admitted.
pub(crate) fn turn<S>(mut service: S) -> Result<impl FnMut() -> bool, Box<dyn Error>>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible>,
{
    let mut first = Some(request()?);
    Ok(move || {
        let mut cx = Context::from_waker(Waker::noop());
        let Some(request) = first.take().or_else(|| SERVED.take()) else {
            return false;
        };
        if service.poll_ready(&mut cx).is_pending() {
            return false;
        }
        black_box(&request);
        let response = pin!(service.call(request)).poll(&mut cx);
        matches!(black_box(&response), Poll::Ready(Ok(response)) if response.status().is_success())
    })
}
