//! Shows rules to Prometheus: several threads send requests, and every scrape sees what the rules have done.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin metrics -- --once
//! cargo run --release --package ringgate-servers --bin metrics
//! curl http://127.0.0.1:9184/metrics
//! ```
//!
//! With `--once` it sends a fixed number of requests, prints what a scrape would get, and ends. The decisions know nothing
//! of it: the counts of the rules are read when somebody scrapes.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use ringgate::{Key, Observer, Rule, RuleSet};

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

    // The recorder first: counters are registered with the one that is there.
    let recorder = PrometheusBuilder::new().build_recorder();
    let scrape = Scrape {
        observer: Observer::new(),
        recorder: recorder.handle(),
    };
    metrics::set_global_recorder(recorder)?;

    let user = Key::new("user", |request: &Request, key| request.user.hash(key));
    let rules = RuleSet::builder()
        .rule(Rule::new("user", "3/min".parse()?).by(&user))
        .rule(Rule::new("everybody", "2000/min".parse()?))
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
                    // A thousand users, each of them asking again and again.
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

/// What answers a scrape.
struct Scrape {
    observer: Observer,
    recorder: PrometheusHandle,
}

impl Scrape {
    fn text(&self, rules: &RuleSet<Request>) -> String {
        self.observer.publish(rules);
        self.recorder.render()
    }

    /// Answers one scrape after the other, for ever.
    fn serve(&self, listener: &TcpListener, rules: &RuleSet<Request>) {
        for connection in listener.incoming() {
            // Whoever hangs up in the middle comes again.
            if let Err(error) = connection.and_then(|connection| self.answer(connection, rules)) {
                eprintln!("{error}");
            }
        }
    }

    fn answer(&self, mut connection: TcpStream, rules: &RuleSet<Request>) -> std::io::Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut lines = BufReader::new(&connection).lines();
        let asked = lines.next().transpose()?.unwrap_or_default();
        // The headers say nothing that matters here; they end with an empty line.
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let (status, text) = if asked.starts_with("GET /metrics ") {
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
