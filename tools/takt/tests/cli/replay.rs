//! Recordings and the schedules that are not a plain rate, through the command.

use takt_record::{Completed, Fold, Issued, Record, fold_journal};

use crate::bench::{Bench, Mock};

/// The sends and the ends of a journal.
#[derive(Default)]
struct Life(Vec<Issued>, Vec<Completed>);

impl Fold for Life {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(issued) => self.0.push(*issued),
            Record::Completed(completed) => self.1.push(*completed),
            _ => {}
        }
    }
}

fn life(bench: &Bench) -> Life {
    let mut life = Life::default();
    let journal = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&journal).unwrap(), &mut life).unwrap();
    life
}

/// Offsets of the schedule from its first moment.
fn schedule(life: &Life) -> Vec<u64> {
    let due: Vec<u64> = life.0.iter().map(|one| one.scheduled.unwrap().as_nanos()).collect();
    due.iter().map(|at| at - due[0]).collect()
}

#[test]
fn a_recording_is_sent_row_by_row_with_its_own_lengths_at_its_times() {
    let bench = Bench::new();
    let mut rows = String::new();
    for row in 0..20_u64 {
        let (blocks, ms) = (1 + row % 3, 50_000 + row * row * 10);
        let ids: Vec<u64> = (0..blocks).map(|place| place * (row % 2) + place).collect();
        rows.push_str(&format!(
            "{{\"timestamp\": {ms}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": {ids:?}}}\n",
            blocks * 512 - 7,
            1 + row,
        ));
    }
    bench.file("calls.jsonl", &rows);
    // Of as many tokens as are asked for at the most.
    let mock = Mock::start(&bench, &["--ttft", "1ms", "--tpot", "0", "--tokens", "1000"]);
    let args = ["--dataset", "calls.jsonl", "--dataset-format", "mooncake", "--replay=10"];
    bench.run(&mock.url(), &args).exits(0).says("20 issued, 20 succeeded");

    let mut life = life(&bench);
    let samples: Vec<u32> = life.0.iter().map(|one| one.sample).collect();
    assert_eq!(samples, (0..20).collect::<Vec<u32>>());
    // Ten times as fast: row^2 * 10 ms becomes row^2 ms.
    let expected: Vec<u64> = (0..20).map(|row| row * row * 1_000_000).collect();
    assert_eq!(schedule(&life), expected);
    life.1.sort_by_key(|done| done.sample);
    let output: Vec<u32> = life.1.iter().filter_map(|done| done.tokens.output).collect();
    assert_eq!(output, (1..=20).collect::<Vec<u32>>(), "each row has its own max_tokens");
    let result = bench.result();
    let load = &result["phases"][0]["load"];
    assert_eq!(load["pattern"], "trace");
    // 19 gaps in 361 ms.
    assert!((load["rate"].as_f64().unwrap() - 19.0 / 0.361).abs() < 1e-9, "{load}");
    assert_eq!(result["phases"][0]["ended_by"], "dataset");
}

#[test]
fn a_bad_row_of_a_recording_is_refused_with_file_line_and_reason() {
    let bench = Bench::new();
    bench
        .file("calls.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9,12,x\n");
    let args = ["--dataset", "calls.csv", "--dataset-format", "azure", "--replay"];
    bench
        .run("http://127.0.0.1:9", &args)
        .exits(2)
        .says("calls.csv:2: `GeneratedTokens` must be a whole number from 1 to 10000000, not `x`");
    bench.run("http://127.0.0.1:9", &["--replay"]).exits(2).says("pattern `trace` has no times");
}

#[test]
fn a_file_of_times_sends_the_prompts_of_another_dataset() {
    let bench = Bench::new();
    bench.file("times.txt", "3\n3.01\n3.01\n3.05\n");
    bench.file("prompts.txt", "a\nb\nc\n");
    let mock = Mock::quick(&bench);
    bench.file(
        "run.yaml",
        &format!(
            "endpoint: {{url: '{}', model: m}}\ndataset: {{path: prompts.txt}}\norder: single:2\n\
             phases: [{{name: p, load: {{pattern: trace, path: times.txt, speed: 0.5}}}}]\n",
            mock.url()
        ),
    );
    bench.takt(&["run", "run.yaml", "--out", "out"]).exits(0).says("4 issued, 4 succeeded");
    let life = life(&bench);
    assert!(life.0.iter().all(|one| one.sample == 2));
    assert_eq!(schedule(&life), [0, 20_000_000, 20_000_000, 100_000_000]);
    let out_of_range = ["run", "run.yaml", "--order", "single:3", "--out", "out2"];
    bench.takt(&out_of_range).exits(2).says("phase `p` has 3 samples, counted from 0");
}

#[test]
fn a_ramp_by_flags_has_a_warm_up_at_its_first_rate_and_says_its_rates() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let ramp = ["--rate", "0", "--ramp-to", "200", "--arrivals", "constant", "--duration", "300ms"];
    let done = bench.run(&mock.url(), &[&ramp[..], &["--warmup-requests", "3"]].concat()).exits(0);
    assert!(done.stdout.contains("ramp 0 to 200/s"), "{}", done.stdout);
    // Arrival n comes at 300 ms * sqrt(n/30); the thirtieth when time is up.
    let phases = &bench.result()["phases"];
    assert_eq!(
        (&phases[0]["load"]["pattern"], &phases[0]["load"]["rate"]),
        (&"constant".into(), &200.0.into())
    );
    assert_eq!(phases[1]["load"]["rate"], 100.0);
    assert_eq!(phases[1]["issued"], 29);
    bench.run(&mock.url(), &["--ramp-to", "9"]).exits(2).says("--ramp-to: goes on from --rate");
}

#[test]
fn mt19937_gives_the_orders_and_gaps_of_the_reference() {
    let bench = Bench::new();
    let prompts: String = (0..10).map(|n| format!("prompt {n}\n")).collect();
    bench.file("prompts.txt", &prompts);
    let mock = Mock::quick(&bench);
    let args =
        ["--dataset", "prompts.txt", "--rng", "mt19937", "--rate", "100", "--requests", "10"];
    bench.run(&mock.url(), &args).exits(0);
    let life = life(&bench);
    // CPython with seed 42: shuffle(range(10)), and int(expovariate(100/1e9)) after the first.
    let samples: Vec<u32> = life.0.iter().map(|one| one.sample).collect();
    assert_eq!(samples, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]);
    let schedule = schedule(&life);
    let gaps: Vec<u64> = schedule.windows(2).take(5).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [253_288, 3_216_240, 2_525_861, 13_335_926, 11_291_730]);
}
