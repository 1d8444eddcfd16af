//! What is written is what is read, however the bytes arrive.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use proptest::collection::vec;
use proptest::prelude::*;
use takt_dataset::{Dataset, Format, Limits, Options, Prompt, Sample};

/// Yields at most `step` bytes at a time, and is interrupted before each.
struct Trickle<'a> {
    rest: &'a [u8],
    step: usize,
    interrupt: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let chunk = self.fill_buf()?;
        let n = chunk.len().min(into.len());
        into[..n].copy_from_slice(&chunk[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Trickle<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.interrupt = !self.interrupt;
        if self.interrupt && self.step.is_multiple_of(2) {
            return Err(ErrorKind::Interrupted.into());
        }
        Ok(&self.rest[..self.step.min(self.rest.len())])
    }

    fn consume(&mut self, n: usize) {
        self.rest = &self.rest[n..];
    }
}

type Outcome = Result<Vec<Sample>, String>;

fn outcome(input: impl BufRead, format: Format, limits: Limits) -> Outcome {
    let options = Options { limits, ..Options::default() };
    let read = Dataset::read(input, "f", format, &options);
    read.map(|set| set.samples().to_vec()).map_err(|e| e.to_string())
}

/// Reads whole and in pieces, and wants the same each time.
fn read(bytes: &[u8], format: Format) -> Outcome {
    read_within(bytes, format, Limits::default())
}

fn read_within(bytes: &[u8], format: Format, limits: Limits) -> Outcome {
    let whole = outcome(bytes, format, limits);
    for step in [1, 2, 3, 7] {
        let trickle = Trickle { rest: bytes, step, interrupt: false };
        let pieces = BufReader::with_capacity(step, trickle);
        assert_eq!(outcome(pieces, format, limits), whole, "{step}");
    }
    whole
}

fn prompts(outcome: Outcome) -> Vec<String> {
    let text = |sample: Sample| match sample.prompt {
        Prompt::Text(text) => text.into_string(),
        Prompt::Messages(json) => panic!("text became messages: {json}"),
    };
    outcome.expect("well-formed").into_iter().map(text).collect()
}

/// Text with what upsets parsers in it, and something besides white space.
fn prompt() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9]{1,4}",
        any::<char>().prop_map(String::from),
        proptest::sample::select(vec![
            "\"", "\"\"", ",", "\n", "\r\n", "\r", "\\", "\u{FEFF}", "\0", "{", "}", "[", "]",
            "😀", "\u{2028}", " ", "'", ";", "\t",
        ])
        .prop_map(str::to_owned),
    ];
    vec(piece, 1..12)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("a prompt is not empty", |text| !text.trim().is_empty())
}

/// A CSV file by the well-known library: an oracle that this crate does not read with.
fn csv_of(rows: &[Vec<String>], crlf: bool) -> Vec<u8> {
    let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
    let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
    writer.write_record(["id", "prompt"]).expect("into memory");
    for row in rows {
        writer.write_record(row).expect("into memory");
    }
    writer.into_inner().expect("into memory")
}

proptest! {
    #[test]
    fn jsonl_and_json_give_back_what_was_written(texts in vec(prompt(), 1..6), spaced: bool) {
        let row = |text: &String| serde_json::json!({ "prompt": text, "answer": "x" }).to_string();
        let rows: Vec<_> = texts.iter().map(row).collect();
        let jsonl = rows.join(if spaced { "\r\n\n" } else { "\n" });
        prop_assert_eq!(&prompts(read(jsonl.as_bytes(), Format::Jsonl)), &texts);
        let gap = if spaced { " ,\r\n" } else { "," };
        let json = format!("[{}]", rows.join(gap));
        prop_assert_eq!(&prompts(read(json.as_bytes(), Format::Json)), &texts);
    }

    #[test]
    fn csv_gives_back_what_was_written(texts in vec((any::<u8>(), prompt()), 1..6), crlf: bool) {
        let row = |(id, text): &(u8, String)| vec![id.to_string(), text.clone()];
        let rows: Vec<_> = texts.iter().map(row).collect();
        let got = prompts(read(&csv_of(&rows, crlf), Format::Csv));
        prop_assert_eq!(got, texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>());
    }

    #[test]
    fn csv_that_is_accepted_is_what_the_library_reads(
        body in prop_oneof![1 => "[ab,\"\n]{0,24}", 3 => WELL_FORMED],
    ) {
        let file = format!("id,prompt\n{body}");
        if let Ok(samples) = read(file.as_bytes(), Format::Csv) {
            let mut reader = csv::Reader::from_reader(file.as_bytes());
            let rows = reader.records().map(|row| row.expect("two fields")[1].to_owned());
            prop_assert_eq!(prompts(Ok(samples)), rows.collect::<Vec<_>>());
        }
    }

    #[test]
    fn text_gives_back_what_was_written(texts in vec(prompt(), 1..6), crlf: bool) {
        let line = |text: String| {
            text.replace(['\n', '\r'], " ").trim_start_matches('\u{FEFF}').to_owned()
        };
        let texts: Vec<_> = texts.into_iter().map(line).filter(|t| !t.trim().is_empty()).collect();
        prop_assume!(!texts.is_empty());
        let file = texts.join(if crlf { "\r\n" } else { "\n" });
        prop_assert_eq!(prompts(read(file.as_bytes(), Format::Text)), texts);
    }

    #[test]
    fn any_bytes_end_in_samples_or_in_a_message_and_pieces_change_nothing(
        bytes in vec(prop_oneof![any::<u8>(), proptest::sample::select(TELLING)], 0..80),
    ) {
        let small = Limits { row_bytes_max: 16, rows_max: 2 };
        for format in [Format::Jsonl, Format::Json, Format::Csv, Format::Text] {
            let _either = read(&bytes, format);
            let _within_limits = read_within(&[b"[{\"prompt\"", &bytes[..]].concat(), format, small);
            let _with_a_header = read(&[b"prompt\n", &bytes[..]].concat(), format);
            let _in_an_array = read(&[b"[{\"prompt\":", &bytes[..]].concat(), format);
        }
    }
}

#[test]
fn failure_to_read_is_named_with_its_line() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("disk gone"));
            }
            into[..4].copy_from_slice(b"a\nb\n");
            Ok(4)
        }
    }
    let broken = BufReader::new(Broken(false));
    let error = outcome(broken, Format::Text, Limits::default()).expect_err("it breaks");
    assert_eq!(error, "f:3: cannot be read: disk gone; check the file and its permissions");
}

/// The bytes that mean something to some format.
const TELLING: &[u8] = b"\n\r\",{}[]:\\\xEF\xBB\xBFprompt1";

/// Rows of two fields, quoted or not.
const WELL_FORMED: &str =
    "(([ab]{0,2}|\"([ab,\n]|\"\"){0,3}\"),([ab]{1,2}|\"([ab,\n]|\"\"){1,3}\")\n){1,4}";
