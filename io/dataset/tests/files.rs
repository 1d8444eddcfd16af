//! Whole files: the fixture, and the real question set where it is at hand.

use takt_dataset::{Dataset, Format, Options, Prompt};

/// Reads questions with worked answers and gives what stands after `####` in each.
fn final_answers(bytes: &[u8], file: &str) -> (Dataset, Vec<String>) {
    let mut options = Options::default();
    options.columns.truth = Some("answer".to_owned());
    let set = Dataset::read(bytes, file, Format::Jsonl, &options).expect("a good file");
    let after = |truth: &str| truth.rsplit("#### ").next().unwrap_or_default().to_owned();
    let answers = set.samples().iter().filter_map(|s| s.truth.as_deref()).map(after).collect();
    (set, answers)
}

#[test]
fn fixture_reads_with_its_truths() {
    let (set, answers) = final_answers(include_bytes!("fixtures/sums.jsonl"), "a/sums.jsonl");
    assert_eq!(set.name, "sums");
    assert_eq!(answers, ["21", "45", "12.5", "144", "45"]);
    let quoted = set.get(3).expect("five rows");
    let text = "\"A dozen dozens\", said the farmer. How many eggs did he mean?";
    assert_eq!((&quoted.prompt, quoted.row), (&Prompt::Text(text.into()), 4));
    let used = set.columns().expect("JSONL has columns");
    assert_eq!((used.prompt.as_str(), used.truth.as_deref()), ("question", Some("answer")));
}

/// Runs only where the folder of shared data is named; see its README for the number of questions.
#[test]
fn real_questions_read_with_numbers_as_truths() {
    let Some(folder) = std::env::var_os("TAKT_SHARED_DATA") else {
        eprintln!("skipped: TAKT_SHARED_DATA does not name the folder that has gsm8k_test.jsonl");
        return;
    };
    let file = std::path::Path::new(&folder).join("gsm8k_test.jsonl");
    let bytes = std::fs::read(&file).expect("TAKT_SHARED_DATA holds gsm8k_test.jsonl");
    let (set, answers) = final_answers(&bytes, "gsm8k_test.jsonl");
    assert_eq!(set.len(), 1319);
    assert_eq!(answers.len(), set.len());
    assert!(answers.iter().all(|a| a.replace(',', "").parse::<i64>().is_ok()));
}
