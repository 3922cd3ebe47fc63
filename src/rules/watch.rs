use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use std::{fs, io};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::builder::RuleSetBuilder;
use super::config::{Extractors, ReloadError};
use super::live::{LiveRules, Reloaded, ReplaceError};
use crate::clock::Clock;

/// Reloads rules whenever their file changes, until it is dropped.
///
/// # Guarantee
///
/// - A file that is wrong, or missing, changes nothing: the rules from before hold, and `report` is told.
/// - What the file says when it has come to rest is what holds, and every change that is read is reported on; a text
///   that could not be stored yet ([`ReplaceError::Pending`]) is tried, and reported on, again. That a pending reload
///   has been finished is not reported. The file is also read at the start, so that a change between the first reading
///   of it and the watching is not missed.
/// - What a reload leaves [pending](Reloaded::Pending) is [finished](LiveRules::finish) as soon as nobody decides
///   by the old rules any more.
///
/// The directory is watched, not the file, so that an editor's renaming of a new file over the old one is seen, and
/// so is a symbolic link that is turned elsewhere within it. The file is read when nothing has happened in
/// the directory for a [`REST`](Self::REST), or at the latest after [`LATEST`](Self::LATEST), and reloaded if its
/// text is another. So keep it in a directory in which little else happens. The directory must remain.
///
/// # Cost
///
/// A thread, which sleeps while nothing happens. On the decision path nothing.
///
/// # Caveats
///
/// - Network file systems often send no notifications: there, call [`LiveRules::reload`] by a timer.
/// - A link's target that is edited in another directory is not seen.
/// - The watcher does not know of rules that others store: the file wins again only when its text changes.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// use std::sync::Arc;
///
/// use ringgate::{Extractors, LiveRules, RuleSetBuilder, RulesWatcher};
///
/// let extractors = Extractors::<str>::new();
/// let rules = RuleSetBuilder::from_file("rules.toml", &extractors)?.build()?;
/// let live = Arc::new(LiveRules::new(rules));
/// let watcher = RulesWatcher::new(Arc::clone(&live), "rules.toml", extractors, |reloaded| {
///     match reloaded {
///         Ok(_) => println!("new rules hold"),
///         Err(error) => eprintln!("the old rules still hold: {error}"),
///     }
/// })?;
/// // Serve, deciding by `live`.
/// # drop(watcher);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[must_use = "the file is watched only as long as this is held"]
pub struct RulesWatcher {
    path: PathBuf,
    /// Sends to the thread until it is dropped.
    watcher: Option<RecommendedWatcher>,
    stop: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// A rules file cannot be watched.
#[derive(Debug)]
pub struct WatchError(Problem);

#[derive(Debug)]
enum Problem {
    Notify(notify::Error),
    Io(io::Error),
}

enum Message {
    /// Something may have changed.
    Changed,
    Stop,
}

impl RulesWatcher {
    /// How long nothing must have happened in the directory before the file is read.
    pub const REST: Duration = Duration::from_millis(50);

    /// How long a change waits for such a rest at the most.
    pub const LATEST: Duration = Duration::from_secs(1);

    /// Begins to watch, and reloads at once; from then on after every change.
    ///
    /// The watcher's thread calls `report` with what became of each reload. A panic in it ends the watching.
    ///
    /// # Errors
    ///
    /// When the file's directory cannot be watched (it is missing, say, or the operating system watches as much as it
    /// can), or no thread be had. A file that is wrong or missing is no error here: it is reported.
    pub fn new<R, C>(
        rules: Arc<LiveRules<R, C>>,
        path: impl AsRef<Path>,
        extractors: Extractors<R>,
        report: impl FnMut(Result<Reloaded, ReloadError>) + Send + 'static,
    ) -> Result<Self, WatchError>
    where
        R: ?Sized + 'static,
        C: Clock + Clone + Send + Sync + 'static,
    {
        // The directory of the process may become another.
        let path = std::path::absolute(path).map_err(WatchError::io)?;
        let directory = path.parent().unwrap_or(&path);
        let (stop, messages) = mpsc::channel();
        let changes = stop.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may have hidden a change.
            if event.map_or(true, |event| is_change(event.kind)) {
                // The thread has ended when nobody receives it.
                let _ = changes.send(Message::Changed);
            }
        })
        .map_err(WatchError::notify)?;
        watcher
            .watch(directory, RecursiveMode::NonRecursive)
            .map_err(WatchError::notify)?;
        let reloader = Reloader {
            rules,
            path: path.clone(),
            extractors,
            report,
            seen: None,
        };
        let thread = thread::Builder::new()
            .name("ringgate-rules".into())
            .spawn(move || reloader.run(&messages))
            .map_err(WatchError::io)?;
        Ok(Self {
            path,
            watcher: Some(watcher),
            stop,
            thread: Some(thread),
        })
    }

    /// The file, as an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Stops watching. Waits for a reload that has begun, unless `report` itself drops it.
impl Drop for RulesWatcher {
    fn drop(&mut self) {
        drop(self.watcher.take());
        // It may have ended by a panic of `report`.
        let _ = self.stop.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// Whether an event can mean that the file is another. Reading it, as we do, is not one.
fn is_change(event: EventKind) -> bool {
    match event {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// What the thread does.
struct Reloader<R: ?Sized, C, F> {
    rules: Arc<LiveRules<R, C>>,
    path: PathBuf,
    extractors: Extractors<R>,
    report: F,
    /// What was found last: a text, or why there is none.
    seen: Option<Result<String, io::ErrorKind>>,
}

impl<R, C, F> Reloader<R, C, F>
where
    R: ?Sized,
    C: Clock + Clone,
    F: FnMut(Result<Reloaded, ReloadError>),
{
    /// How soon what a reload has left is tried again: at first, and at the most.
    const AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

    fn run(mut self, messages: &Receiver<Message>) {
        let mut unfinished = self.look().then_some(Self::AGAIN.0);
        loop {
            // A change, or time to go on with what is unfinished.
            let message = match unfinished {
                Some(wait) => messages.recv_timeout(wait),
                None => messages.recv().map_err(RecvTimeoutError::from),
            };
            match message {
                Ok(Message::Changed) => {
                    if !Self::rest(messages) {
                        return;
                    }
                    if self.look() {
                        unfinished = Some(Self::AGAIN.0);
                    }
                }
                Err(RecvTimeoutError::Timeout) => unfinished = self.go_on(unfinished),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits until nothing has happened for a while. Whether to go on.
    fn rest(messages: &Receiver<Message>) -> bool {
        let latest = Instant::now() + RulesWatcher::LATEST;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            match messages.recv_timeout(RulesWatcher::REST.min(left)) {
                Ok(Message::Changed) if !left.is_zero() => {}
                Ok(Message::Changed) | Err(RecvTimeoutError::Timeout) => return true,
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Reloads if the file says something else than the last time. Whether something is left to do.
    fn look(&mut self) -> bool {
        let read = fs::read_to_string(&self.path);
        let found = match &read {
            Ok(text) => Ok(text.clone()),
            Err(error) => Err(error.kind()),
        };
        if self.seen.as_ref() == Some(&found) {
            return false;
        }
        self.seen = Some(found);
        let reloaded = self.reload(read);
        let unfinished = match &reloaded {
            Ok(Reloaded::Pending(_)) => true,
            // Without any, waiting does not help.
            Err(ReloadError::Replace(ReplaceError::Pending(1..))) => {
                // To be tried again.
                self.seen = None;
                true
            }
            _ => false,
        };
        (self.report)(reloaded);
        unfinished
    }

    fn reload(&self, read: io::Result<String>) -> Result<Reloaded, ReloadError> {
        let rules =
            RuleSetBuilder::from_read(&self.path, read, &self.extractors).map_err(ReloadError::File)?;
        self.rules.store(&rules).map_err(ReloadError::Replace)
    }

    /// Goes on with what is unfinished. When to do so again.
    fn go_on(&mut self, waited: Option<Duration>) -> Option<Duration> {
        let pending = self.rules.finish() != Reloaded::Done;
        let again = if pending {
            true
        } else {
            // What could not be stored for too many old states may be stored now.
            self.seen.is_none() && self.look()
        };
        again.then(|| (waited.unwrap_or(Self::AGAIN.0) * 2).min(Self::AGAIN.1))
    }
}

impl WatchError {
    fn notify(error: notify::Error) -> Self {
        Self(Problem::Notify(error))
    }

    fn io(error: io::Error) -> Self {
        Self(Problem::Io(error))
    }
}

impl fmt::Debug for RulesWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulesWatcher")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rules file cannot be watched: ")?;
        match &self.0 {
            Problem::Notify(error) => error.fmt(f),
            Problem::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for WatchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0 {
            Problem::Notify(error) => Some(error),
            Problem::Io(error) => Some(error),
        }
    }
}
