//! Records through the recorder and back through the check.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "files are what these tests are about"
)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use takt_opprof::{Ending, FileReport, GraphRun, Part, Scheduled, StepCounter, check_file};
use takt_opprof_recorder::{FileName, Recorder, RecorderConfig, check_folder};
use takt_record::StepRecord;
use takt_time::{Anchor, Nanos};

fn config(folder: &Path) -> RecorderConfig {
    RecorderConfig {
        folder: folder.to_owned(),
        name: FileName { dp_rank: 0, pid: 7 },
        queue: RecorderConfig::QUEUE,
        bytes_max: None,
        compress: false,
    }
}

fn records(n: u64) -> Vec<StepRecord<'static>> {
    let mut counter = StepCounter::new("dp0-pid7");
    (0..n)
        .map(|at| {
            let mut draft =
                counter.begin(Anchor { mono: Nanos::from_nanos(at * 100), wall_ns: at * 100 });
            draft.schedule(Scheduled { tokens: 5, context_after: 5, part: Part::Unsplit });
            draft.schedule(Scheduled { tokens: 1, context_after: 900, part: Part::Decode });
            draft.blocks(10, at % 10);
            draft.complete(
                Nanos::from_nanos(at * 100 + 50),
                Some(GraphRun { mode: "NONE", bucket_tokens: 6 }),
            )
        })
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// All files as one stream.
fn check(folder: &Path) -> Vec<FileReport> {
    let mut reports: Vec<FileReport> = Vec::new();
    for path in files(folder) {
        let file = BufReader::new(File::open(&path).unwrap());
        let input: Box<dyn BufRead> = if path.extension().is_some_and(|e| e == "gz") {
            Box::new(BufReader::new(MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        let before = reports.last().map(|report| &report.stream);
        reports.push(check_file(input, before).unwrap());
    }
    for report in &reports {
        assert_eq!(report.findings, []);
    }
    reports
}

#[test]
fn what_is_put_is_written_and_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::open(&config(folder.path())).unwrap();
    assert_eq!(recorder.engine_id(), "dp0-pid7");
    records(1000).into_iter().for_each(|record| recorder.put(record));
    let written = recorder.close(2).unwrap();
    assert_eq!((written.encoded, written.written, written.dropped), (1000, 1000, 0));
    assert!((1..=1000).contains(&written.queue_high_watermark));
    let [report] = &check(folder.path())[..] else { panic!("one file") };
    assert_eq!((report.records, report.ending), (1000, Ending::Footer));
    let name = files(folder.path())[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("opprof-v1-dp0-pid7-") && name.ends_with(".jsonl"), "{name}");
}

#[test]
fn a_full_queue_drops_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder =
        Recorder::open(&RecorderConfig { queue: 1, ..config(folder.path()) }).unwrap();
    // Faster than any writer: some do not fit a queue of one.
    records(20_000).into_iter().for_each(|record| recorder.put(record));
    let written = recorder.close(0).unwrap();
    assert_eq!(written.encoded, 20_000);
    assert_eq!(written.written + written.dropped, 20_000);
    assert!(written.dropped > 0 && written.queue_high_watermark == 1, "{written:?}");
    let [report] = &check(folder.path())[..] else { panic!("one file") };
    assert_eq!(report.records, written.written);
    assert!(
        report.dropped <= written.dropped,
        "the last ones have no record after them that tells"
    );
}

#[test]
fn files_are_rotated_compressed_and_one_stream() {
    let folder = tempfile::tempdir().unwrap();
    let small = RecorderConfig { bytes_max: Some(20_000), compress: true, ..config(folder.path()) };
    let mut recorder = Recorder::open(&small).unwrap();
    records(200).into_iter().for_each(|record| recorder.put(record));
    recorder.close(0).unwrap();
    let names = files(folder.path());
    let compressed =
        names.iter().filter(|path| path.extension().is_some_and(|e| e == "gz")).count();
    assert!(names.len() > 3 && compressed == names.len() - 1, "{names:?}");
    let reports = check(folder.path());
    assert_eq!(reports.iter().map(|report| report.records).sum::<u64>(), 200);
    assert!(reports.iter().all(|report| report.ending == Ending::Footer), "each has its own");
    assert!(reports[1..].iter().all(|report| report.continues));
}

#[test]
fn a_dropped_recorder_has_its_footer_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::open(&config(folder.path())).unwrap();
    records(3).into_iter().for_each(|record| recorder.put(record));
    drop(recorder);
    assert_eq!(check(folder.path())[0].ending, Ending::Footer);
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let says = |path: &Path| check_folder(path).unwrap_err().to_string();
    assert!(says(Path::new("records")).contains("is relative; give an absolute path"));
    assert!(says(&file.join("below")).contains("file/below"));
    assert!(Recorder::open(&config(&file)).is_err());
}
