//! Compressed and mixed inputs.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use crate::agreement::{assert_report, models};
use crate::brute_force::{self, Request, SECOND};
use crate::formats::{combined, common, csv, free, json_lines, requests, rfc3339};
use crate::tool::{json, on_pipe, run, stderr, tool};

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// Writes files with these names into a directory.
fn files(contents: &[(&str, Vec<u8>)]) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let paths = contents.iter().map(|(name, content)| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    });
    let paths = paths.collect();
    (directory, paths)
}

fn with_paths(args: &str, paths: &[PathBuf]) -> std::process::Output {
    let args = args.split_whitespace().map(Into::into);
    let paths = paths.iter().map(|path| path.clone().into_os_string());
    run(args.chain(paths))
}

#[test]
fn files_of_several_formats_are_one_input() {
    let requests = requests(3_000, 36, SECOND);
    let free = free(&requests);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|part| &requests[part * 750..][..750]);
    let members = [
        gzip(common(&second[..300]).as_bytes()),
        gzip(common(&second[300..]).as_bytes()),
    ];
    // A skippable frame between two others.
    let skipped = [
        &b"\x53\x2a\x4d\x18\x03\0\0\0abc"[..],
        &zstd(json_lines(&third[300..], rfc3339).as_bytes()),
    ];
    let frames = [
        zstd(json_lines(&third[..300], rfc3339).as_bytes()),
        skipped.concat(),
    ];
    let (_directory, paths) = files(&[
        ("access.log", combined(first).into_bytes()),
        ("access.log.1.gz", members.concat()),
        ("empty.log", Vec::new()),
        (
            "fourth.csv.gz",
            gzip(csv(fourth, rfc3339, ',').replace("from", "client").as_bytes()),
        ),
        ("third.json.zst", frames.concat()),
    ]);
    // Files in any order, with a name for the client that all formats have.
    let object = json(&with_paths(
        "replay --json --rule 20/60s --algorithm log",
        &[
            paths[3].clone(),
            paths[0].clone(),
            paths[2].clone(),
            paths[1].clone(),
        ],
    ));
    let without_third: Vec<Request> = [&free[..1_500], &free[2_250..]].concat();
    let expected = brute_force::replay(&without_third, 20, 60 * SECOND, brute_force::Model::Log);
    assert_report(&object, &expected, "three files");
    assert_eq!(object["sources"].as_array().unwrap().len(), 4);
    let object = json(&with_paths(
        "replay --json --rule 20/60s --algorithm log --key http.from",
        &paths[4..],
    ));
    let expected = brute_force::replay(&free[1_500..2_250], 20, 60 * SECOND, brute_force::Model::Log);
    assert_report(&object, &expected, "two frames");
    // From a pipe, too.
    let output = on_pipe(
        &mut tool("--json --rule 20/60s --algorithm log --key http.from", None),
        frames.concat(),
    );
    assert_report(&json(&output), &expected, "a pipe");
}

/// The lines before the cut are read exactly, and the exit status is 1. A damaged file is an error.
#[test]
fn files_that_were_cut_give_the_result_so_far() {
    let whole = combined(&requests(3_000, 37, SECOND));
    for (name, packed) in [
        ("log.gz", gzip(whole.as_bytes())),
        ("log.zst", zstd(whole.as_bytes())),
    ] {
        for (cut, least) in [
            (packed[..packed.len() / 2].to_vec(), 500),
            (packed[..packed.len() - 1].to_vec(), 2_999),
            ([&packed[..], &packed[..9]].concat(), 2_999),
        ] {
            let (_directory, paths) = files(&[(name, cut)]);
            let output = with_paths("replay --json --rule 20/60s", &paths);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{name}: {message}");
            assert!(
                message.contains("warning: ") && message.contains("ends within compressed data"),
                "{message}"
            );
            let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let requests = object["requests"].as_u64().unwrap();
            // The rest of a line that was cut is not read as a shorter request.
            let log: String = whole
                .lines()
                .take(requests as usize)
                .flat_map(|line| [line, "\n"])
                .collect();
            let prefix =
                brute_force::replay(&brute_force::requests(&log), 20, 60 * SECOND, models(20, 60)[1].1);
            assert!(requests >= least && requests <= 3_000, "{requests}");
            assert_eq!(object["denied"], prefix.denied, "{name}");
            assert_eq!(
                (&object["truncated"], &object["unreadable"]),
                (&true.into(), &0.into())
            );
        }
        for damaged in [
            packed[..20].to_vec(),
            packed[..7].to_vec(),
            [
                &packed[..packed.len() / 2],
                &[0x55; 64],
                &packed[packed.len() / 2 + 64..],
            ]
            .concat(),
        ] {
            let (_directory, paths) = files(&[(name, damaged)]);
            let output = with_paths("replay --rule 20/60s", &paths);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{name}: {message}");
            assert!(output.stdout.is_empty());
            assert!(
                message.starts_with("error: ") && message.contains(name) && message.contains("cannot read"),
                "{message}"
            );
        }
    }
    let (_directory, paths) = files(&[("log.xz", b"\xfd7zXZ\0\0\x04".to_vec())]);
    let message = stderr(&with_paths("replay --rule 20/60s", &paths));
    assert!(
        message.contains("compression: xz (expected gzip, zstd"),
        "{message}"
    );
}

#[test]
fn zeros_behind_compressed_data_are_skipped() {
    let requests = requests(300, 41, SECOND);
    let text = combined(&requests);
    for compress in [gzip, zstd] {
        let part = compress(text.as_bytes());
        for zeros in [1, 17, 300_000] {
            let zeros = vec![0; zeros];
            let whole = [&part[..], &zeros].concat();
            let two = [&part[..], &zeros, &part, &zeros].concat();
            for (input, times) in [(whole, 1), (two, 2)] {
                let output = on_pipe(&mut tool("--json --quiet --rule 20/60s", None), input);
                assert_eq!(json(&output)["requests"], 300 * times);
            }
        }
        let rest = [&part[..], &[0; 5], b"the rest of a file"].concat();
        let output = on_pipe(&mut tool("--json --quiet --rule 20/60s", None), rest);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output).trim_end().to_owned();
        let reasons = ["invalid gzip header", "no zstd frame where the last one ends"];
        assert!(reasons.iter().any(|reason| said.ends_with(reason)), "{said}");
    }
}
