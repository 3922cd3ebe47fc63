//! A file that changes while its rules are in force. Each step waits for the report of the previous step, and not for a time.

use alloc::sync::Arc;
use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use ringgate::rules::{ReloadError, Reloaded, RuleSetBuilder, RulesWatcher};
use ringgate::{LiveRules, ManualClock};

use super::{Request, extractors};

type Live = Arc<LiveRules<Request, ManualClock>>;
type Report = Result<Reloaded, ReloadError>;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn live() -> Live {
    let rules = RuleSetBuilder::new()
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect("no rules");
    Arc::new(LiveRules::new(rules))
}

fn watch(live: &Live, path: &Path) -> (RulesWatcher, Receiver<Report>) {
    let (report, reports) = mpsc::channel();
    let report = move |reloaded| {
        // Fails when the test has ended.
        let _ = report.send(reloaded);
    };
    let watcher = RulesWatcher::new(Arc::clone(live), path, extractors(), report).expect("watched");
    (watcher, reports)
}

fn rules(quota: &str) -> String {
    format!("[[rules]]\nname = 'all'\nquota = '{quota}'\n")
}

fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("rules.toml")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn next(reports: &Receiver<Report>) -> Report {
    reports.recv_timeout(PATIENCE).expect("a report")
}

/// The next success. On a slow machine a file may be read, and reported, before it is written completely.
fn next_good(reports: &Receiver<Report>) -> Reloaded {
    loop {
        if let Ok(reloaded) = next(reports) {
            return reloaded;
        }
    }
}

/// The next error of a file with content.
fn next_bad(reports: &Receiver<Report>) -> String {
    loop {
        let error = next(reports).expect_err("a bad file").to_string();
        if !error.ends_with(": missing rules (expected a list of rules)") {
            return error;
        }
    }
}

fn quotas(live: &Live) -> Vec<String> {
    live.load()
        .peek(&Request::default())
        .map(|peek| peek.status().quota.to_string())
        .collect()
}

/// A watched file that limits all requests to three per second, and was reported.
struct Watched {
    folder: tempfile::TempDir,
    path: PathBuf,
    live: Live,
    watcher: RulesWatcher,
    reports: Receiver<Report>,
}

impl Watched {
    fn new() -> Self {
        let (folder, live) = (folder(), live());
        let path = file(&folder);
        fs::write(&path, rules("3/s")).expect("written");
        let (watcher, reports) = watch(&live, &path);
        assert_eq!(next_good(&reports), Reloaded::Done);
        assert_eq!(quotas(&live), ["3/1s"]);
        Self {
            folder,
            path,
            live,
            watcher,
            reports,
        }
    }

    fn write(&self, quota: &str) {
        fs::write(&self.path, rules(quota)).expect("written");
    }

    /// Renames a file with this text over the watched one.
    fn rename(&self, text: &str) {
        let other = self.folder.path().join(".rules.toml.new");
        fs::write(&other, text).expect("written");
        fs::rename(&other, &self.path).expect("renamed");
    }

    /// Waits for a reload after which the rules have this quota.
    fn assert_reloaded(&self, quota: &str) {
        assert_eq!(next_good(&self.reports), Reloaded::Done);
        assert_eq!(quotas(&self.live), [quota]);
    }
}

#[test]
fn a_changed_file_is_reloaded_and_an_invalid_one_is_reported() {
    let file = Watched::new();
    let admits = || file.live.load().check(&Request::default()).is_ok();
    assert!((0..3).all(|_| admits()));

    file.write("4/s");
    file.assert_reloaded("4/1s");
    assert!(admits() && !admits());

    file.write("5/fortnight");
    let error = next_bad(&file.reports);
    let expected = format!("{}:3:9: rule \"all\": invalid quota: ", file.path.display());
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(quotas(&file.live), ["4/1s"]);

    file.write("6/s");
    file.assert_reloaded("6/1s");
}

#[test]
fn a_file_that_is_renamed_over_the_old_one_is_reloaded() {
    let file = Watched::new();
    for limit in 4..8 {
        file.rename(&rules(&format!("{limit}/s")));
        file.assert_reloaded(&format!("{limit}/1s"));
    }
}

#[test]
fn a_file_may_be_created_late_and_removed() {
    let (folder, live) = (folder(), live());
    let path = file(&folder);
    let (_watcher, reports) = watch(&live, &path);
    let error = next_bad(&reports);
    assert!(
        error.starts_with(&format!("{}: cannot be read: ", path.display())),
        "{error}"
    );
    fs::write(&path, rules("3/s")).expect("written");
    assert_eq!(next_good(&reports), Reloaded::Done);
    fs::remove_file(&path).expect("removed");
    assert!(next(&reports).is_err());
    // The rules stay in force.
    assert_eq!(quotas(&live), ["3/1s"]);
}

/// Links that are replaced, and other changes that the directory of the path sends no notification of, except for the first. All files
/// are changed before the first report is awaited.
#[cfg(unix)]
#[test]
fn a_changed_link_is_followed_also_without_a_notification() {
    use std::os::unix::fs::symlink;

    /// Puts a link in the place of another one.
    fn swap(target: &str, link: &Path) {
        let other = link.parent().expect("a folder").join("swapped");
        symlink(target, &other).expect("a link");
        fs::rename(&other, link).expect("renamed");
    }

    /// Makes a folder with a rules file.
    fn version(root: &Path, name: &str, quota: &str) {
        fs::create_dir_all(root.join(name)).expect("a folder");
        fs::write(root.join(name).join("rules.toml"), rules(quota)).expect("written");
    }

    type Step = fn(&Path);
    /// Makes a link in a folder, which may have to be made.
    fn link_in(root: &Path, folder: &str, name: &str, target: &str) {
        fs::create_dir_all(root.join(folder)).expect("a folder");
        swap(target, &root.join(folder).join(name));
    }

    // The change, the preparation, and the watched path.
    let cases: [(&str, Step, &str, Step); 9] = [
        // The configuration of a container is mounted so: the file is a link through a link to a folder.
        (
            "the link beside the file is replaced",
            |root| {
                link_in(root, "etc", "..data", "../old");
                link_in(root, "etc", "rules.toml", "..data/rules.toml");
            },
            "etc/rules.toml",
            |root| swap("../new", &root.join("etc/..data")),
        ),
        (
            "the link to the folder is replaced",
            |root| swap("old", &root.join("link")),
            "link/rules.toml",
            |root| swap("new", &root.join("link")),
        ),
        (
            "a link above the folder is replaced",
            |root| {
                version(root, "old/conf", "1/h");
                version(root, "new/conf", "5/h");
                swap("old", &root.join("link"));
            },
            "link/conf/rules.toml",
            |root| swap("new", &root.join("link")),
        ),
        (
            "the link of a volume elsewhere is replaced",
            |root| {
                link_in(root, "volume", "..data", "../old");
                link_in(root, "volume", "rules.toml", "..data/rules.toml");
                link_in(root, "etc", "rules.toml", "../volume/rules.toml");
            },
            "etc/rules.toml",
            |root| swap("../new", &root.join("volume/..data")),
        ),
        (
            "the target in another folder is edited",
            |root| link_in(root, "etc", "rules.toml", "../old/rules.toml"),
            "etc/rules.toml",
            |root| fs::write(root.join("old/rules.toml"), rules("5/h")).expect("written"),
        ),
        (
            "a file is renamed over the target in another folder",
            |root| link_in(root, "etc", "rules.toml", "../old/rules.toml"),
            "etc/rules.toml",
            |root| fs::rename(root.join("new/rules.toml"), root.join("old/rules.toml")).expect("renamed"),
        ),
        (
            "the middle of three links is replaced",
            |root| {
                link_in(root, "links", "middle", "../old/rules.toml");
                link_in(root, "links", "first", "../links/middle");
                link_in(root, "etc", "rules.toml", "../links/first");
            },
            "etc/rules.toml",
            |root| swap("../new/rules.toml", &root.join("links/middle")),
        ),
        (
            "the folder is renamed, and another takes its name",
            |_| (),
            "old/rules.toml",
            |root| {
                fs::rename(root.join("old"), root.join("older")).expect("renamed");
                fs::rename(root.join("new"), root.join("old")).expect("renamed");
            },
        ),
        (
            "the folder is removed and made again",
            |_| (),
            "old/rules.toml",
            |root| {
                fs::remove_dir_all(root.join("old")).expect("removed");
                version(root, "old", "5/h");
            },
        ),
    ];
    let mut watched = Vec::new();
    for (name, make, path, change) in cases {
        let (folder, live) = (folder(), live());
        version(folder.path(), "old", "1/h");
        version(folder.path(), "new", "5/h");
        make(folder.path());
        let (watcher, reports) = watch(&live, &folder.path().join(path));
        assert_eq!(next_good(&reports), Reloaded::Done, "{name}");
        assert_eq!(quotas(&live), ["1/1h"], "{name}");
        watched.push((name, folder, live, watcher, reports, change));
    }
    for (_, folder, .., change) in &watched {
        change(folder.path());
    }
    for (name, _folder, live, _watcher, reports, _) in watched {
        assert_eq!(next_good(&reports), Reloaded::Done, "{name}");
        assert_eq!(quotas(&live), ["5/1h"], "{name}");
    }
}

/// A decision in progress keeps the old window in force. The watcher removes it after the decision.
#[test]
fn a_pending_reload_is_finished() {
    let file = Watched::new();
    let states = || file.live.load().states();
    let held = file.live.load();
    file.write("3/min");
    assert_eq!(next_good(&file.reports), Reloaded::Pending(1));
    assert_eq!((held.states(), states()), (1, 2));
    drop(held);
    let start = std::time::Instant::now();
    while states() > 1 {
        assert!(start.elapsed() < PATIENCE, "not finished");
        std::thread::yield_now();
    }
    assert_eq!(quotas(&file.live), ["3/1min"]);
}

#[test]
fn nothing_is_reported_once_the_watcher_is_dropped() {
    let file = Watched::new();
    drop(file.watcher);
    fs::write(&file.path, rules("4/s")).expect("written");
    // The thread, which had the other end of the channel, has ended.
    let found = file.reports.recv().map(|report| report.is_ok());
    assert_eq!(found, Err(mpsc::RecvError));
    assert_eq!(quotas(&file.live), ["3/1s"]);
    assert_eq!(Arc::strong_count(&file.live), 1);
}

#[test]
fn drop_waits_for_a_report_in_progress() {
    use core::sync::atomic::{AtomicBool, Ordering};

    let (folder, live) = (folder(), live());
    let (begun, begins) = mpsc::channel();
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    let watcher = RulesWatcher::new(live, file(&folder), extractors(), move |_| {
        let _ = begun.send(());
        // Long enough for a drop that does not wait to return.
        std::thread::sleep(Duration::from_millis(100));
        end.store(true, Ordering::Release);
    });
    begins.recv_timeout(PATIENCE).expect("a report");
    drop(watcher.expect("watched"));
    assert!(ended.load(Ordering::Acquire));
}

#[test]
fn an_unchanged_text_is_not_reported() {
    let file = Watched::new();
    // The same text again, and another file.
    file.rename(&rules("3/s"));
    fs::write(file.folder.path().join("other"), "other").expect("written");
    // No report may arrive in this time. A shorter time cannot make the test fail.
    std::thread::sleep(Duration::from_millis(200));
    file.rename(&rules("4/s"));
    file.assert_reloaded("4/1s");
}

#[test]
fn a_report_may_drop_the_watcher() {
    use std::sync::Mutex;

    let (folder, live) = (folder(), live());
    let path = file(&folder);
    let (report, reports) = mpsc::channel();
    let place = Arc::new(Mutex::new(None::<RulesWatcher>));
    let own = Arc::clone(&place);
    // The first report waits until it can drop the watcher.
    let mut held = place.lock().expect("unpoisoned");
    let watcher = RulesWatcher::new(Arc::clone(&live), &path, extractors(), move |reloaded| {
        drop(own.lock().expect("unpoisoned").take());
        let _ = report.send(reloaded);
    });
    *held = Some(watcher.expect("watched"));
    drop(held);
    assert!(next(&reports).is_err());
    assert!(reports.recv().is_err(), "the thread has ended");
}

#[test]
fn a_missing_folder_cannot_be_watched() {
    let (folder, live) = (folder(), live());
    let path = folder.path().join("missing").join("rules.toml");
    let error = RulesWatcher::new(live, &path, extractors(), |_| ()).expect_err("no folder");
    assert!(
        error.to_string().starts_with("rules file cannot be watched: "),
        "{error}"
    );
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
