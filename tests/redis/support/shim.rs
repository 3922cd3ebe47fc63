//! Clocks of processes that differ by hours: by a preloaded library, and by clocks that the system shifts for a
//! process.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::skipped::skipped;

/// The environment of a process with shifted clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// The command before the program.
    pub(crate) words: Vec<String>,
    /// The environment variables.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// The library, and a file for each process that states the shift of its clocks.
pub(crate) struct Shim {
    folder: TempDir,
}

impl Shim {
    /// Without a compiler or such a library, reports that the test is skipped and returns `None`.
    pub(crate) fn build() -> Option<Self> {
        if cfg!(not(target_os = "linux")) {
            skipped("Linux, whose clocks can be shifted");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("shim.c");
        std::fs::write(&source, include_str!("shim.c")).expect("a file");
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-shared", "-fPIC", "-o"])
            .args([&folder.path().join("shim.so"), &source])
            .arg("-ldl")
            .stdin(Stdio::null())
            .status();
        if built.is_ok_and(|status| status.success()) {
            return Some(Self { folder });
        }
        skipped("cc that builds a library to shift clocks with");
        None
    }

    fn file(&self, process: usize) -> PathBuf {
        self.folder.path().join(format!("{process}"))
    }

    /// Shifts the wall clock and the monotonic clock of a process by this number of nanoseconds.
    pub(crate) fn shift(&self, process: usize, wall: i64, monotonic: i64) {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.file(process));
        let write = |file: File| {
            file.write_all_at(&wall.to_ne_bytes(), 0)?;
            file.write_all_at(&monotonic.to_ne_bytes(), 8)
        };
        file.and_then(write).expect("a file");
    }

    /// The environment that shifts the clocks of a process.
    pub(crate) fn clocks(&self, process: usize) -> Clocks {
        let library = self.folder.path().join("shim.so");
        Clocks {
            words: Vec::new(),
            variables: vec![
                ("LD_PRELOAD", library.display().to_string()),
                ("CLOCK_SHIFT", self.file(process).display().to_string()),
            ],
        }
    }
}

/// The command that starts a program whose monotonic clock and boot-time clock are ahead by this number of seconds.
/// If the system does not support or allow that, reports that the test is skipped and returns `None`.
pub(crate) fn ahead(seconds: u64) -> Option<Clocks> {
    let words = |seconds: u64| -> Vec<String> {
        let (monotonic, boottime) = (format!("--monotonic={seconds}"), format!("--boottime={seconds}"));
        vec!["unshare".into(), "--time".into(), monotonic, boottime]
    };
    let words = words(seconds);
    let works = Command::new(&words[0])
        .args(&words[1..])
        .arg("true")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if works.is_ok_and(|status| status.success()) {
        let variables = Vec::new();
        return Some(Clocks { words, variables });
    }
    skipped("right to start processes with clocks of their own");
    None
}
