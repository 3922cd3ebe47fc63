//! Exports the counters of rules to Prometheus while several threads send requests.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin metrics -- --once
//! cargo run --release --package ringgate-servers --bin metrics
//! curl http://127.0.0.1:9184/metrics
//! ```
//!
//! With `--once`, it sends a fixed number of requests, prints the metrics, and exits. Each scrape reads the counts.
//! Decisions do not call the recorder.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use ringgate::observe::Observer;
use ringgate::{Key, Rule, RuleSet};

const ADDRESS: &str = "127.0.0.1:9184";
const WORKERS: u32 = 4;
/// Requests of each worker, with `--once`.
const REQUESTS: u32 = 5_000;

struct Request {
    user: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let once = match (std::env::args().nth(1).as_deref(), std::env::args().nth(2)) {
        (None, _) => false,
        (Some("--once"), None) => true,
        _ => return Err("usage: metrics [--once]".into()),
    };

    // The recorder is set first, because counters are registered with the current recorder.
    let recorder = PrometheusBuilder::new().build_recorder();
    let scrape = Scrape {
        observer: Observer::new(),
        recorder: recorder.handle(),
    };
    metrics::set_global_recorder(recorder)?;

    let user = Key::new("user", |request: &Request, key| request.user.hash(key));
    let rules = RuleSet::builder()
        .rule(Rule::new("user", "3/min".parse()?).by(&user))
        .rule(Rule::new("total", "2000/min".parse()?))
        .rule(Rule::new("stricter", "1500/min".parse()?).shadow())
        .build()?;

    let listener = if once {
        None
    } else {
        Some(TcpListener::bind(ADDRESS)?)
    };
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let rules = &rules;
            scope.spawn(move || {
                let mut number = worker;
                loop {
                    // The requests are of a thousand users in turn.
                    let _ = rules.check(&Request { user: number % 1000 });
                    number += WORKERS;
                    if once && number >= WORKERS * REQUESTS {
                        return;
                    }
                    if !once {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
        if let Some(listener) = listener {
            println!("http://{ADDRESS}/metrics");
            scrape.serve(&listener, &rules);
        }
    });
    print!("{}", scrape.text(&rules));
    Ok(())
}

/// Renders the metrics for a scrape.
struct Scrape {
    observer: Observer,
    recorder: PrometheusHandle,
}

impl Scrape {
    fn text(&self, rules: &RuleSet<Request>) -> String {
        self.observer.publish(rules);
        self.recorder.render()
    }

    /// Responds to scrapes, one at a time.
    fn serve(&self, listener: &TcpListener, rules: &RuleSet<Request>) {
        for connection in listener.incoming() {
            // A scraper that disconnects early tries again later.
            if let Err(error) = connection.and_then(|connection| self.respond(connection, rules)) {
                eprintln!("{error}");
            }
        }
    }

    fn respond(&self, mut connection: TcpStream, rules: &RuleSet<Request>) -> std::io::Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut lines = BufReader::new(&connection).lines();
        let request = lines.next().transpose()?.unwrap_or_default();
        // The headers are not needed. They end with an empty line.
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let (status, text) = if request.starts_with("GET /metrics ") {
            ("200 OK", self.text(rules))
        } else {
            ("404 Not Found", String::from("see /metrics\n"))
        };
        write!(
            connection,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}",
            text.len()
        )
    }
}
