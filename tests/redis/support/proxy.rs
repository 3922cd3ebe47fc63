//! A proxy between client and server, which applies faults of networks.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The fault that the proxy applies to the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Route {
    Pass,
    /// Bytes of clients are dropped, on connections that stay open.
    Swallow,
    /// Requests arrive at once, and replies are late, even if the fault has changed by then.
    DelayReplies,
    /// Requests arrive. One byte of the reply comes back, and the connection ends.
    CutReplies,
}

/// The delay of replies.
pub(crate) const LATE: core::time::Duration = core::time::Duration::from_millis(120);

pub(crate) struct Proxy {
    port: u16,
    inside: Arc<Inside>,
    task: tokio::task::JoinHandle<()>,
}

struct Inside {
    upstream: u16,
    way: AtomicU8,
    cut: AtomicU64,
    /// Set to end all connections.
    ended: watch::Sender<u64>,
}

impl Proxy {
    /// A proxy for the server at this port.
    pub(crate) async fn before(upstream: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let inside = Arc::new(Inside {
            upstream,
            way: AtomicU8::new(Route::Pass as u8),
            cut: AtomicU64::new(0),
            ended: watch::Sender::new(0),
        });
        let accepting = Arc::clone(&inside);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&accepting).join(client));
            }
        });
        Self { port, inside, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn go(&self, way: Route) {
        self.inside.way.store(way as u8, Ordering::SeqCst);
    }

    /// The number of replies that were cut.
    pub(crate) fn cut(&self) -> u64 {
        self.inside.cut.load(Ordering::SeqCst)
    }

    /// Ends all connections.
    pub(crate) fn end_all(&self) {
        self.inside.ended.send_modify(|ended| *ended += 1);
    }
}

impl Inside {
    fn is(&self, way: Route) -> bool {
        self.way.load(Ordering::SeqCst) == way as u8
    }

    async fn join(self: Arc<Self>, mut client: TcpStream) {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", self.upstream)).await else {
            return;
        };
        let mut ended = self.ended.subscribe();
        let (mut sent, mut answered) = ([0; 65536], [0; 65536]);
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        // Ends both connections, whatever the cause.
        loop {
            tokio::select! {
                _ = ended.changed() => return,
                read = from_client.read(&mut sent) => match read {
                    Ok(1..) if self.is(Route::Swallow) => {}
                    Ok(bytes @ 1..) => if to_server.write_all(&sent[..bytes]).await.is_err() { return },
                    _ => return,
                },
                read = from_server.read(&mut answered) => match read {
                    Ok(1..) if self.is(Route::CutReplies) => {
                        let _ = to_client.write_all(&answered[..1]).await;
                        self.cut.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                    Ok(bytes @ 1..) => {
                        if self.is(Route::DelayReplies) {
                            tokio::time::sleep(LATE).await;
                        }
                        if to_client.write_all(&answered[..bytes]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.end_all();
    }
}
