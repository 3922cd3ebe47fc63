//! Nodes in separate processes, and the results of their calls.

use alloc::sync::Arc;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Instant;

use crate::node::{ORDERS, Orders};
use crate::random::Random;
use crate::server::PATIENCE;
use crate::shim::Clocks;

/// Decisions of one caller between two readings of the server's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) admitted: u64,
    /// The number of these that the node decided.
    pub(crate) here: u64,
    /// Whether the caller would have made more requests.
    pub(crate) refused: bool,
}

/// The output of a node.
#[derive(Debug, Default)]
struct NodeOutput {
    turns: Vec<Turn>,
    others: Vec<String>,
}

/// A process, which ends with the test.
pub(crate) struct Node {
    child: Child,
    input: Option<ChildStdin>,
    output: Arc<Mutex<NodeOutput>>,
    reader: Option<JoinHandle<()>>,
}

impl Node {
    /// A node that is ready, and makes no requests yet.
    pub(crate) fn start(orders: &Orders, clocks: &Clocks) -> Self {
        let this = std::env::current_exe().expect("this program");
        let mut words = clocks.words.iter().map(OsString::from).chain([this.into()]);
        let mut child = Command::new(words.next().expect("this program"))
            .args(words)
            .args([
                "node::entry",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ORDERS, orders.text())
            .envs(clocks.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("an output");
        let lines = Arc::new(Mutex::new(NodeOutput::default()));
        let received = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix('@') {
                    received.lock().expect("no panic").add(line);
                }
            }
        });
        let mut node = Self {
            input: child.stdin.take(),
            child,
            output: lines,
            reader: Some(reader),
        };
        let []: [u64; 0] = node.answer("ready");
        node
    }

    /// Makes its callers request as much as possible.
    pub(crate) fn go(&mut self) {
        self.send("go");
    }

    /// Makes its callers leave most of the node's leases unspent. When the process was stopped and continues, they
    /// request everything at once.
    pub(crate) fn go_quietly(&mut self) {
        self.send("quiet");
    }

    /// Ends its callers. Returns the number of immediate decisions, and their median, 99.9 % and longest durations in
    /// nanoseconds.
    pub(crate) fn stop(&mut self) -> [u64; 4] {
        self.send("stop");
        self.answer("local")
    }

    /// Charges the use and returns the leases. Returns whether that succeeded, and the permits that are then
    /// uncharged and leased.
    pub(crate) fn flush(&mut self) -> [u64; 3] {
        self.send("flush");
        self.answer("flushed")
    }

    fn send(&mut self, order: &str) {
        let input = self.input.as_mut().expect("the process runs");
        writeln!(input, "{order}").expect("the process reads its input");
    }

    /// Waits for an answer that begins with this word, and returns its numbers.
    fn answer<const N: usize>(&mut self, word: &str) -> [u64; N] {
        let began = Instant::now();
        loop {
            let found = self.output.lock().expect("no panic").take(word);
            if let Some(line) = found {
                let numbers = line
                    .split(' ')
                    .skip(1)
                    .map(|number| number.parse().expect("a number"));
                let numbers: Vec<u64> = numbers.collect();
                return numbers.try_into().expect("as many numbers");
            }
            assert!(began.elapsed() < PATIENCE, "a node does not answer {word}");
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "a node has ended: {ended:?}");
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(signal)
            .arg(self.child.id().to_string())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Kills the process at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
    }

    /// The calls that the node has reported so far.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.output.lock().expect("no panic").turns.clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A stopped process ends, too.
        self.kill();
    }
}

impl NodeOutput {
    fn add(&mut self, line: &str) {
        let Some(call) = line.strip_prefix("call ") else {
            self.others.push(line.to_owned());
            return;
        };
        let numbers: Vec<u64> = call.split(' ').filter_map(|number| number.parse().ok()).collect();
        let [before, after, admitted, here, refused] = numbers[..] else {
            panic!("{line}");
        };
        self.turns.push(Turn {
            before,
            after,
            admitted,
            here,
            refused: refused > 0,
        });
    }

    fn take(&mut self, word: &str) -> Option<String> {
        let at = self
            .others
            .iter()
            .position(|line| line.split(' ').next() == Some(word))?;
        Some(self.others.remove(at))
    }
}

/// The most admissions in any window, of turns that lie within it. The count holds whatever the clocks of the nodes
/// are.
pub(crate) fn most_in_a_window(turns: &[Turn], window: u64) -> u64 {
    let mut by_end: Vec<&Turn> = turns.iter().collect();
    by_end.sort_by_key(|turn| turn.after);
    let ends: Vec<u64> = by_end.iter().map(|turn| turn.after).collect();
    // A tree of sums: of the turns that end first, of the first two, and so on, over the turns that have started
    // since.
    let mut sums = vec![0; ends.len() + 1];
    let mut by_start: Vec<usize> = (0..by_end.len()).collect();
    by_start.sort_by_key(|&at| core::cmp::Reverse(by_end[at].before));
    let mut most = 0;
    for at in by_start {
        let mut place = at + 1;
        while place < sums.len() {
            sums[place] += by_end[at].admitted;
            place += place & place.wrapping_neg();
        }
        let mut place = ends.partition_point(|&end| end < by_end[at].before + window);
        let mut within = 0;
        while place > 0 {
            within += sums[place];
            place &= place - 1;
        }
        most = most.max(within);
    }
    most
}

#[test]
fn turns_count_that_lie_within() {
    let turn = |before, after, admitted| Turn {
        before,
        after,
        admitted,
        here: 0,
        refused: false,
    };
    let turns = [
        turn(10, 12, 3),
        turn(0, 9, 1),
        turn(12, 20, 5),
        turn(18, 19, 2),
        turn(5, 30, 9),
    ];
    let most = |window| most_in_a_window(&turns, window);
    assert_eq!(
        [most(10), most(11), most(20), most(21), most(31)],
        [7, 10, 10, 11, 20]
    );
    assert_eq!(most_in_a_window(&[], 31), 0);
    // By adding all turns.
    let mut random = Random::new(1);
    let mut next = |end| random.below(end);
    let many: Vec<Turn> = (0..300)
        .map(|_| {
            let before = next(1000);
            turn(before, before + next(60), next(9))
        })
        .collect();
    for window in [1, 7, 60, 200] {
        let within = |begin: u64| -> u64 {
            let within = many
                .iter()
                .filter(|it| it.before >= begin && it.after < begin + window);
            within.map(|it| it.admitted).sum()
        };
        let expected = (0..1000).map(within).max().unwrap_or(0);
        assert_eq!(most_in_a_window(&many, window), expected);
    }
}
