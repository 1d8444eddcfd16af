//! The real recordings, where they are at hand; see the README of the shared data for the counts.

use std::io::BufReader;

use takt_dataset::{Limits, Recording, RecordingFormat, Texts};

/// Reads a file of the shared folder, or says that there is none.
fn real(file: &str, format: RecordingFormat) -> Option<Recording> {
    let Some(folder) = std::env::var_os("TAKT_SHARED_DATA") else {
        eprintln!("skipped: TAKT_SHARED_DATA does not name the folder that has {file}");
        return None;
    };
    #[allow(clippy::disallowed_types, reason = "a test at the edge")]
    let input = std::fs::File::open(std::path::Path::new(&folder).join(file)).expect("it is there");
    let input = BufReader::new(input);
    Some(Recording::read(input, file, format, &Limits::default()).expect("a good file"))
}

fn totals(recording: &Recording) -> (usize, u64, u64) {
    let input = recording.calls().iter().map(|call| u64::from(call.input_tokens)).sum();
    let last = recording.times().last().expect("at least one").as_nanos();
    (recording.len(), input, last)
}

#[test]
fn azure_files_read_whole() {
    for (file, expected) in [
        // 18:17:03.9799600 to 19:14:19.9280160, 18:15:46.6805900 to 19:14:08.4025270.
        ("azure_code_2023.csv", (8_819, 18_059_974, 3_435_948_056_000)),
        ("azure_conv_2023.csv", (19_366, 22_361_870, 3_501_721_937_000)),
    ] {
        let Some(recording) = real(file, RecordingFormat::Azure) else { return };
        assert_eq!(totals(&recording), expected, "{file}");
    }
}

#[test]
fn mooncake_files_read_whole_and_give_prompts_of_their_lengths() {
    for (file, expected) in [
        ("mooncake_conversation.jsonl", (12_031, 144_793_823, 3_536_999_000_000)),
        ("mooncake_synthetic.jsonl", (3_993, 61_194_628, 1_022_025_000_000)),
    ] {
        let Some(recording) = real(file, RecordingFormat::Mooncake) else { return };
        assert_eq!(totals(&recording), expected, "{file}");
        let texts = Texts::new(&recording, 42);
        let mut prompt = String::new();
        for index in (0..recording.len()).step_by(100) {
            texts.write(&recording, index, &mut prompt);
            let words = prompt.split(' ').count();
            assert_eq!(words, recording.calls()[index].input_tokens as usize, "{file}, {index}");
        }
    }
}
