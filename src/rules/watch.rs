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

use super::config::extractors::Extractors;
use super::live::{LiveRules, ReloadError, Reloaded};
use super::set::builder::RuleSetBuilder;
use crate::clock::Clock;

/// A watcher that reloads rules when their file changes, until it is dropped.
///
/// # Guarantees
///
/// - A file that is invalid or missing leaves the rules in force, and is reported.
/// - The last text of the file is put in force, and each text that is read is reported. If a text could not be stored
///   ([`ReloadError::Pending`]), it is tried and reported again.
/// - The file is also read at the start, so a change before the watch begins is not missed.
/// - A [pending](Reloaded::Pending) reload is [finished](LiveRules::finish) soon after the last decision by old rules. This is
///   not reported.
///
/// The watcher watches the directory of the file. So it notices a file that is renamed over the watched one, and a changed symbolic
/// link, at once. It reads the file when the directory has been quiet for 50 ms, or a second after a change, and reloads it if its
/// text differs. Keep the file in a directory with few other changes.
///
/// It also reads the file every two seconds, because some changes send no notification: the edit of a
/// link's target in another directory, a link to the directory that is replaced, a directory that is removed and created again,
/// and changes on most network file systems.
///
/// # Cost
///
/// The watcher has a thread, which reads the file once per interval. Decisions are not affected.
///
/// # Caveats
///
/// - Replace the file by renaming a complete one over it. A file that is written in place, with a pause longer than
///   50 ms, may be read in between. If the written part is valid by itself, it is put in force, and the
///   rules that are missing in it begin empty later.
/// - If [`LiveRules::store`] is called directly, the file is put in force again only when its text changes.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
///
/// use ringgate::LiveRules;
/// use ringgate::rules::{Extractors, RuleSetBuilder, RulesWatcher};
///
/// let extractors = Extractors::<str>::new();
/// let rules = RuleSetBuilder::from_file("rules.toml", &extractors)?.build()?;
/// let live = Arc::new(LiveRules::new(rules));
/// let watcher = RulesWatcher::new(Arc::clone(&live), "rules.toml", extractors, |reloaded| {
///     match reloaded {
///         Ok(_) => println!("the new rules are in force"),
///         Err(error) => eprintln!("the old rules are still in force: {error}"),
///     }
/// })?;
/// // Serve requests, and decide by `live`.
/// # drop(watcher);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use = "the file is watched only until this is dropped"]
pub struct RulesWatcher {
    /// Sends to the thread until it is dropped.
    watcher: Option<RecommendedWatcher>,
    stop: Sender<WatchMessage>,
    thread: Option<JoinHandle<()>>,
}

/// The time for which the directory must be quiet before the file is read.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The time after a change at which the file is read even if the directory is not quiet.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The time between two reads of the file without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A message to the watcher's thread.
enum WatchMessage {
    /// The file may have changed.
    Changed,
    Stop,
}

impl RulesWatcher {
    /// Starts to watch, and reloads the file at once and after every change.
    ///
    /// The watcher's thread calls `report` with the result of each reload. A panic in `report` ends the watch.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be watched (for example because it is missing, or because the system's limit of
    /// watches is reached), or if the thread cannot be started. A file that is invalid or missing is not an error here. It is passed
    /// to `report`.
    pub fn new<R, C>(
        rules: Arc<LiveRules<R, C>>,
        path: impl AsRef<Path>,
        extractors: Extractors<R>,
        report: impl FnMut(Result<Reloaded, ReloadError>) + Send + 'static,
    ) -> io::Result<Self>
    where
        R: ?Sized + 'static,
        C: Clock + Clone + Send + Sync + 'static,
    {
        Self::of(rules, path, extractors, report)
    }

    /// Starts to watch the file of any rules that can be replaced.
    pub(crate) fn of<R, T>(
        rules: Arc<T>,
        path: impl AsRef<Path>,
        extractors: Extractors<R>,
        report: impl FnMut(Result<Reloaded, ReloadError>) + Send + 'static,
    ) -> io::Result<Self>
    where
        R: ?Sized + 'static,
        T: Replaceable<R> + Send + Sync + 'static,
    {
        // The path is made absolute, because the working directory of the process may change.
        let unwatched = |error: io::Error| unwatched(error.kind(), error);
        let path = std::path::absolute(path).map_err(unwatched)?;
        let directory = path.parent().unwrap_or(&path);
        let (stop, messages) = mpsc::channel();
        let changes = stop.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error is treated as a change, because it may hide one.
            if event.map_or(true, |event| is_change(event.kind)) {
                // This fails if the thread has ended.
                let _ = changes.send(WatchMessage::Changed);
            }
        })
        .map_err(not_notified)?;
        watcher
            .watch(directory, RecursiveMode::NonRecursive)
            .map_err(not_notified)?;
        let reloader = Reloader {
            rules,
            path,
            extractors,
            report,
            last_read: None,
        };
        let thread = thread::Builder::new()
            .name("ringgate-rules".into())
            .spawn(move || reloader.run(&messages))
            .map_err(unwatched)?;
        Ok(Self {
            watcher: Some(watcher),
            stop,
            thread: Some(thread),
        })
    }
}

/// Stops the watch. The drop waits for a reload in progress, unless `report` drops the watcher.
impl Drop for RulesWatcher {
    fn drop(&mut self) {
        drop(self.watcher.take());
        // This fails if the thread has ended by a panic of `report`.
        let _ = self.stop.send(WatchMessage::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// Whether the file may have changed. Reads of the file, such as those of this watcher, also cause events.
fn is_change(event: EventKind) -> bool {
    match event {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// Rules that are replaced when their file changes.
pub(crate) trait Replaceable<R: ?Sized> {
    fn replace(&self, rules: &RuleSetBuilder<R>) -> Result<Reloaded, ReloadError>;

    /// Finishes a pending reload, if it can.
    fn finish(&self) -> Reloaded;
}

impl<R: ?Sized, C: Clock + Clone> Replaceable<R> for LiveRules<R, C> {
    fn replace(&self, rules: &RuleSetBuilder<R>) -> Result<Reloaded, ReloadError> {
        self.store(rules)
    }

    fn finish(&self) -> Reloaded {
        Self::finish(self)
    }
}

/// The watcher's thread.
struct Reloader<R: ?Sized, T, F> {
    rules: Arc<T>,
    path: PathBuf,
    extractors: Extractors<R>,
    report: F,
    /// The last result of reading the file. `None` forces a reload.
    last_read: Option<Result<String, io::ErrorKind>>,
}

impl<R, T, F> Reloader<R, T, F>
where
    R: ?Sized,
    T: Replaceable<R>,
    F: FnMut(Result<Reloaded, ReloadError>),
{
    /// The time before the first attempt to finish a reload. It doubles before each further one, up to the maximum.
    const MIN_RETRY: Duration = Duration::from_millis(1);
    const MAX_RETRY: Duration = Duration::from_millis(250);

    fn run(mut self, messages: &Receiver<WatchMessage>) {
        let mut retry_in = self.reload_if_changed().then_some(Self::MIN_RETRY);
        let mut polled = Instant::now();
        loop {
            let poll_in = POLL_INTERVAL.saturating_sub(polled.elapsed());
            let wait = retry_in.map_or(poll_in, |retry_in| retry_in.min(poll_in));
            let changed = match messages.recv_timeout(wait) {
                Ok(WatchMessage::Changed) => true,
                Err(RecvTimeoutError::Timeout) => {
                    retry_in = retry_in.and_then(|waited| self.retry(waited));
                    let due = polled.elapsed() >= POLL_INTERVAL;
                    if due {
                        polled = Instant::now();
                    }
                    // After `None`, the retries read the file.
                    due && self.last_read.is_some() && {
                        let (_, changed) = self.read();
                        changed
                    }
                }
                Ok(WatchMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if changed {
                // A file that is being written is read when it is complete.
                if !Self::debounce(messages) {
                    return;
                }
                if self.reload_if_changed() {
                    retry_in = Some(Self::MIN_RETRY);
                }
            }
        }
    }

    /// Reads the file. Returns the text, and whether it differs from the last one.
    fn read(&self) -> (io::Result<String>, bool) {
        let read = fs::read_to_string(&self.path);
        let same = match (&read, &self.last_read) {
            (Ok(text), Some(Ok(last))) => text == last,
            (Err(error), Some(Err(last))) => error.kind() == *last,
            _ => false,
        };
        (read, !same)
    }

    /// Waits until the directory is quiet. Returns false if the watch has been stopped.
    fn debounce(messages: &Receiver<WatchMessage>) -> bool {
        let latest = Instant::now() + MAX_DELAY;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            match messages.recv_timeout(DEBOUNCE.min(left)) {
                Ok(WatchMessage::Changed) if !left.is_zero() => {}
                Ok(WatchMessage::Changed) | Err(RecvTimeoutError::Timeout) => return true,
                Ok(WatchMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Reloads the file if its text differs from the last one. Returns whether the reload is unfinished.
    fn reload_if_changed(&mut self) -> bool {
        let (read, changed) = self.read();
        if !changed {
            return false;
        }
        self.last_read = Some(match &read {
            Ok(text) => Ok(text.clone()),
            Err(error) => Err(error.kind()),
        });
        let reloaded = self.reload(read);
        let unfinished = match &reloaded {
            Ok(Reloaded::Pending(_)) => true,
            Err(ReloadError::Pending(_)) => {
                // The same text is tried again.
                self.last_read = None;
                true
            }
            Ok(Reloaded::Done) | Err(ReloadError::File(_) | ReloadError::Rules(_)) => false,
        };
        (self.report)(reloaded);
        unfinished
    }

    fn reload(&self, read: io::Result<String>) -> Result<Reloaded, ReloadError> {
        let rules =
            RuleSetBuilder::from_read(&self.path, read, &self.extractors).map_err(ReloadError::File)?;
        self.rules.replace(&rules)
    }

    /// Tries to finish a reload. Returns the time until the next attempt, if one is needed.
    fn retry(&mut self, waited: Duration) -> Option<Duration> {
        let pending = self.rules.finish() != Reloaded::Done;
        // A text that was rejected because of too many old states may be accepted now.
        let again = pending || (self.last_read.is_none() && self.reload_if_changed());
        again.then(|| (waited * 2).min(Self::MAX_RETRY))
    }
}

/// The error of a file that cannot be watched.
fn unwatched(kind: io::ErrorKind, error: impl fmt::Display) -> io::Error {
    io::Error::new(kind, alloc::format!("rules file cannot be watched: {error}"))
}

/// The error of a directory whose changes the system does not announce.
fn not_notified(error: notify::Error) -> io::Error {
    let kind = match &error.kind {
        notify::ErrorKind::Io(error) => error.kind(),
        notify::ErrorKind::PathNotFound => io::ErrorKind::NotFound,
        notify::ErrorKind::MaxFilesWatch => io::ErrorKind::QuotaExceeded,
        notify::ErrorKind::Generic(_)
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_) => io::ErrorKind::Other,
    };
    unwatched(kind, error)
}

impl fmt::Debug for RulesWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulesWatcher").finish_non_exhaustive()
    }
}
