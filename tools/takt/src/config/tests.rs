//! The configuration as a user meets it: what is read, and what is said to what cannot be.

mod conversations;

use super::*;
use takt_wire::Api;

fn read(yaml: &str) -> Result<Config, String> {
    let mut tree = Node::from_yaml(yaml, "dir/f.yaml").map_err(|e| e.to_string())?;
    let environment = |name: &str| (name == "KEY").then(|| "hunter2".to_owned());
    vars::fill_in(&mut tree, &environment).map_err(|e| e.to_string())?;
    Config::read(&tree, "f").map_err(|e| e.to_string())
}

fn refused(yaml: &str) -> String {
    match read(yaml) {
        Err(error) => error,
        Ok(config) => panic!("taken: {}", config.to_yaml()),
    }
}

#[test]
fn there_are_no_more_addresses_than_records_have_numbers_for() {
    let with = |addresses: usize| {
        let urls = vec!["http://h:1"; addresses].join(", ");
        format!(
            "endpoint: {{url: [{urls}], model: m}}\nphases: {{p: {{load: {{pattern: concurrency, target: 1}}, requests: 1}}}}"
        )
    };
    assert!(refused(&with(65_536)).contains("65535 are the most"), "{}", refused(&with(65_536)));
    assert!(read(&with(65_535)).err().is_none_or(|says| !says.contains("are the most")));
}

/// A whole configuration with one thing in it changed.
fn sweep(from: &str, to: &str) -> String {
    assert!(SWEEP.contains(from), "{from}");
    SWEEP.replacen(from, to, 1)
}

const SWEEP: &str = "\
endpoint:
  url: http://127.0.0.1:8000
  api: openai-chat
  model: m
  api_key: ${KEY}
  headers: {X-Team: [perf, test], X-Auth: hunter2}
  body: {temperature: 0, stop: '$${x} $', password: hunter2}
dataset: {path: q.jsonl, prompt: question}
engine: {wait: spin, core: 1}
connections: {max: 64, retry_stale: false}
limits: {request_timeout: 120s}
phases:
  - {name: warm, type: warmup, load: {pattern: concurrency, target_concurrency: 4}, requests: 32}
  - {name: perf, load: {pattern: poisson, rate: 12.5}, duration: 90s, drain_timeout: 1500ms}
  - {name: burst, load: {pattern: max_throughput, max_in_flight: 9}, dataset: {format: synthetic},
     requests: 7, seed: 5}
";

#[test]
fn max_throughput_is_bounded_when_nobody_says_so_and_the_bound_is_written_down() {
    let text = "endpoint: {url: 'http://h'}\n\
                phases: [{name: p, load: {pattern: max_throughput}, duration: 60s}]\n";
    let config = read(text).unwrap();
    let Load::MaxThroughput { max_in_flight } = config.phases[0].load else { panic!() };
    assert_eq!(config.resolved()["phases"][0]["load"]["max_in_flight"], max_in_flight);
}

#[test]
fn a_whole_configuration_is_read_as_it_stands() {
    let config = read(SWEEP).unwrap();
    assert_eq!(config.endpoint.api, Api::OpenaiChat);
    assert_eq!(config.endpoint.api_key.as_ref().unwrap().value.reveal(), "hunter2");
    assert_eq!(config.endpoint.headers.len(), 3);
    assert_eq!((config.wait, config.core), (WaitMode::Spin, Some(1)));
    assert_eq!((config.connections.max, config.connections.retry_stale), (Some(64), false));
    let [warm, perf, burst] = &config.phases[..] else { panic!() };
    assert_eq!(warm.load, Load::Concurrency { target: 4 });
    assert!(!warm.drain_after && perf.drain_after);
    assert_eq!(perf.drain_timeout, Some(Span::from_millis(1500)));
    assert_eq!((warm.seed, perf.seed, burst.seed), (42, 43, 5));
    let Source::File(file) = &perf.source else { panic!() };
    assert_eq!(file.path, Path::new("dir/q.jsonl"), "relative to the file that names it");
    let Source::Synthetic { prompts, .. } = burst.source else { panic!() };
    assert_eq!(prompts, 7, "a prompt a request");
}

#[test]
fn k3_what_is_written_out_holds_no_secret_and_reads_back_as_the_same() {
    let config = read(SWEEP).unwrap();
    let yaml = config.to_yaml();
    assert!(!yaml.contains("hunter2") && !format!("{config:?}").contains("hunter2"), "{yaml}");
    assert!(refused(&yaml).contains("api_key: is `<redacted>`"), "{}", refused(&yaml));
    let without = SWEEP
        .replace("  api_key: ${KEY}\n", "")
        .replace(", X-Auth: hunter2", "")
        .replace(", password: hunter2", "");
    let config = read(&without).unwrap();
    let again = read(&config.to_yaml()).unwrap();
    assert_eq!(config.resolved(), again.resolved(), "{}", config.to_yaml());
}

#[test]
fn k1_unknown_keys_are_refused_with_line_and_nearest_name() {
    for (from, to, expected) in [
        (
            "  model: m",
            "  modle: m",
            "dir/f.yaml:4: endpoint.modle: is not known; did you mean `model`?",
        ),
        (
            "connections:",
            "conections:",
            "dir/f.yaml:10: conections: is not known; did you mean `connections`?",
        ),
        (
            "rate: 12.5",
            "rat: 12.5",
            "dir/f.yaml:14: phases[1].load.rat: is not known; did you mean `rate`?",
        ),
        ("prompt: question", "colour: x", "dataset.colour: is not known; known here: path, "),
    ] {
        let error = refused(&sweep(from, to));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn k1_a_key_at_the_wrong_level_is_told_where_it_belongs() {
    for (from, to, expected) in [
        ("engine:", "model: m\nengine:", "model: is not known here; it belongs under `endpoint`"),
        ("duration: 90s", "rate: 5", "phases[1].rate: is not known here; it belongs under `load`"),
        (
            "  model: m",
            "  seed: 7",
            "endpoint.seed: is not known here; it belongs at the top level",
        ),
    ] {
        let error = refused(&sweep(from, to));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn k1_what_would_have_no_effect_is_refused() {
    for (from, to, expected) in [
        ("rate: 12.5", "rate: 12.5, target_concurrency: 3", "pattern `poisson` does not use it"),
        ("requests: 32}", "requests: 32, drain_timeout: 1s}", "this phase is not drained"),
        ("duration: 90s", "duration: 90s, min_duration: 2s", "min_duration: has no effect"),
        ("duration: 90s", "duration: 90s, max_duration: 2m", "max_duration: has no effect"),
        ("format: synthetic", "format: synthetic, path: x", "format `synthetic` does not use it"),
        (
            "prompt: question",
            "words: 7",
            "words: has no effect: format `jsonl` does not use it, `synthetic` does",
        ),
        ("openai-chat", "raw", "endpoint.model: has no effect: api `raw`"),
        (
            "openai-chat",
            "sglang-generate",
            "endpoint.model: has no effect: requests of api `sglang-generate` name no model",
        ),
        (
            "api: openai-chat",
            "stream: true\n  api: openai-embeddings",
            "endpoint.stream: has no effect: answers of api `openai-embeddings` are never streamed",
        ),
    ] {
        let error = refused(&sweep(from, to));
        assert!(error.contains(expected), "{error}");
    }
}

/// The load of the one phase of a file, with what else the phase says.
fn load_of(load: &str, rest: &str) -> Result<Load, String> {
    let text =
        format!("endpoint: {{url: 'http://h'}}\nphases: [{{name: p, load: {{{load}}}, {rest}}}]\n");
    read(&text).map(|config| config.phases[0].load.clone())
}

#[test]
fn every_open_loop_is_read_and_written_out_as_it_stands() {
    let ramp = |from, to, spacing| Load::Ramp { from, to, spacing };
    for (load, expected) in [
        ("pattern: gamma, rate: 5, burstiness: 0.25", Load::Gamma { rate: 5.0, burstiness: 0.25 }),
        ("pattern: ramp, rate: 0, rate_to: 50", ramp(0.0, 50.0, Spacing::Poisson)),
        (
            "pattern: ramp, rate: 9, rate_to: 0, arrivals: constant",
            ramp(9.0, 0.0, Spacing::Constant),
        ),
        (
            "pattern: ramp, rate: 1, rate_to: 2, arrivals: gamma, burstiness: 4",
            ramp(1.0, 2.0, Spacing::Gamma { burstiness: 4.0 }),
        ),
    ] {
        assert_eq!(load_of(load, "duration: 9s"), Ok(expected.clone()), "{load}");
        let text = format!(
            "endpoint: {{url: 'http://h'}}\nphases: [{{name: p, load: {{{load}}}, duration: 9s}}]"
        );
        let again = read(&read(&text).unwrap().to_yaml()).unwrap();
        assert_eq!(again.phases[0].load, expected, "{load}");
    }
    let Load::Trace { times: Some(file), speed } =
        load_of("pattern: trace, path: t.txt, speed: 10", "requests: 3").unwrap()
    else {
        panic!()
    };
    assert_eq!((file.path.as_path(), speed), (Path::new("dir/t.txt"), 10.0));
}

#[test]
fn open_loops_that_cannot_be_are_refused() {
    for (load, rest, expected) in [
        ("pattern: gamma, rate: 5", "duration: 9s", "`burstiness` is missing: 1 is as poisson"),
        ("pattern: gamma, rate: 5, burstiness: 0", "duration: 9s", "must be a number above 0"),
        ("pattern: poisson, rate: 5, burstiness: 2", "duration: 9s", "`poisson` does not use it"),
        ("pattern: ramp, rate: 1, rate_to: 2", "requests: 9", "pattern `ramp` needs `duration`"),
        ("pattern: ramp, rate: 0, rate_to: 0", "duration: 9s", "has no arrivals"),
        (
            "pattern: ramp, rate: 1, rate_to: 2, burstiness: 4",
            "duration: 9s",
            "burstiness: has no effect: it is for `arrivals: gamma`",
        ),
        ("pattern: trace", "requests: 9", "pattern `trace` has no times"),
        ("pattern: trace, path: t.parquet", "requests: 9", "times are read from .csv"),
        ("pattern: trace, path: t.txt, speed: -1", "requests: 9", "must be a number above 0"),
        ("pattern: trace, path: t.txt", "min_duration: 9s", "a trace is replayed once"),
    ] {
        let error = load_of(load, rest).unwrap_err();
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn a_recording_is_a_dataset_without_text() {
    let dataset = |rest: &str| sweep("prompt: question", rest);
    let config = read(&dataset("format: mooncake")).unwrap();
    let Source::Recording(recording) = &config.phases[1].source else { panic!() };
    assert_eq!(recording.path, Path::new("dir/q.jsonl"));
    assert_eq!(config.resolved()["phases"][1]["dataset"]["format"], "mooncake");
    let trace = dataset("format: azure").replace("pattern: poisson, rate: 12.5", "pattern: trace");
    assert!(read(&trace).unwrap().phases[1].load.replays_rows());
    let error = refused(&dataset("format: azure, prompt: x"));
    assert!(error.contains("prompt: has no effect: format `azure` does not use it"), "{error}");
    let error = refused(&dataset("format: azur"));
    assert!(error.contains("did you mean `azure`?"), "{error}");
}

#[test]
fn orders_and_their_generator_are_read_and_refused_where_they_mean_nothing() {
    let with = |keys: &str| sweep("engine:", &format!("{keys}\nengine:"));
    let config = read(&with("order: single:3\nrng: mt19937")).unwrap();
    assert_eq!((config.order, config.rng), (OrderKind::Single(3), Generator::Mt19937));
    assert_eq!(config.resolved()["order"], "single:3");
    for (keys, from, to, expected) in [
        ("order: single", "", "", "order: must say which one: write single:INDEX"),
        ("order: singel:0", "", "", "order: `singel:0` is not known"),
        ("rng: mt1997", "", "", "rng: `mt1997` is not known; did you mean `mt19937`?"),
        (
            "rng: mt19937",
            "pattern: poisson, rate: 12.5",
            "pattern: gamma, rate: 12.5, burstiness: 2",
            "has no such arrivals (phase `perf`, pattern `gamma`)",
        ),
        (
            "rng: mt19937\norder: sequential",
            "pattern: poisson",
            "pattern: constant",
            "rng: has no effect: no phase draws",
        ),
    ] {
        let error = refused(&with(keys).replace(from, to));
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn values_of_the_wrong_kind_say_what_is_wanted() {
    for (from, to, expected) in [
        ("rate: 12.5", "rate: fast", "load.rate: must be a number, not text"),
        ("rate: 12.5", "rate: 0", "load.rate: must be a number above 0"),
        ("requests: 32", "requests: 3.5", "requests: must be a whole number, 1 or more"),
        ("duration: 90s", "duration: 90", "duration: needs a unit: write 60s"),
        (
            "model: m",
            "model: 4",
            "endpoint.model: must be text, not a number; put the value in quotes",
        ),
        ("retry_stale: false", "retry_stale: no", "must be true or false, not text"),
        ("wait: spin", "wait: spni", "did you mean `spin`"),
        ("pattern: poisson", "pattern: poison", "did you mean `poisson`?"),
        ("name: perf", "name: warm", "another phase is called `warm`"),
        ("q.jsonl", "q.jsnol", "did you mean `jsonl`?"),
        ("http://", "htp://", "scheme that is not known"),
        ("body: {", "body: [{", "did not find"),
    ] {
        let error = refused(&sweep(from, to));
        assert!(error.contains(expected) || expected == "did not find", "{error}");
    }
}

/// The last phase of the sweep, with this written into it.
fn scored(keys: &str) -> String {
    let phase = "  - {name: burst, load: {pattern: max_throughput, max_in_flight: 9}, dataset: {format: synthetic},\n     requests: 7, seed: 5}\n";
    assert!(SWEEP.contains(phase));
    let own = format!(
        "  - {{name: math, load: {{pattern: concurrency, target_concurrency: 8}}, {keys}}}\n"
    );
    let text = SWEEP.replace(phase, &own);
    text.replace("  api_key: ${KEY}\n", "")
        .replace(", X-Auth: hunter2", "")
        .replace(", password: hunter2", "")
}

#[test]
fn an_accuracy_phase_is_read_and_written_back_by_every_scorer() {
    for score in [
        "{by: exact, truth: answer, ignore_case: true}",
        "{by: contains, truth: answer, of: reasoning+content}",
        "{by: regex, truth: answer, pattern: 'is (\\d+)$', take: first, after: '####'}",
        "{by: multiple_choice, truth: answer, choices: 10}",
        "{by: numeric, truth: answer, after: '####', of: reasoning+content+tool_calls}",
        "{by: command, command: [python3, judge.py, '-v'], timeout: 90s}",
        "{by: command, truth: answer, command: judge}",
    ] {
        let config = read(&scored(&format!("type: accuracy, repeats: 3, score: {score}"))).unwrap();
        let phase = &config.phases[2];
        assert!(phase.keeps_text() && phase.repeats == 3);
        let again = read(&config.to_yaml()).unwrap();
        assert_eq!(config.resolved(), again.resolved(), "{}", config.to_yaml());
        let of_phase = Scoring::of_phase(&config.resolved(), 2).unwrap().unwrap();
        assert_eq!(
            format!("{of_phase:?}"),
            format!("{:?}", again.phases[2].score.as_ref().unwrap())
        );
    }
    let config = read(&scored("type: accuracy")).unwrap();
    assert!(config.phases[2].keeps_text() && config.phases[2].score.is_none());
    assert!(!config.phases[1].keeps_text());
    let config = read(&scored("score: {by: command, command: judge.py}")).unwrap();
    let Some(Scoring { by: By::Command(program), .. }) = &config.phases[2].score else { panic!() };
    assert_eq!(program.folder, Path::new("dir"), "where the file is");
}

#[test]
fn k1_what_cannot_be_scored_is_refused() {
    for (keys, expected) in [
        ("type: warmup, score: {by: exact, truth: a}", "type `warmup` does not use it"),
        ("repeats: 2", "type `performance` does not use it, `accuracy` does"),
        ("type: accuracy, repeats: 2, requests: 5", "repeats: has no effect: `requests` says"),
        ("type: accuracy, drain_after: false", "its answers are kept, so they are waited for"),
        ("type: accuracy, score: {truth: a}", "`by` is missing: exact, contains"),
        ("type: accuracy, score: {by: numeric}", "`truth` is missing"),
        ("type: accuracy, score: {by: nummeric, truth: a}", "did you mean `numeric`?"),
        ("type: accuracy, score: {by: numeric, truth: a, choices: 3}", "does not use it"),
        ("type: accuracy, score: {by: regex, truth: a}", "`pattern` is missing"),
        (
            "type: accuracy, score: {by: regex, truth: a, pattern: '(a'}",
            "no regular expression: unclosed",
        ),
        ("type: accuracy, score: {by: multiple_choice, truth: a, choices: 27}", "from 2 to 26"),
        ("type: accuracy, score: {by: command, truth: a}", "`command` is missing"),
        (
            "type: accuracy, dataset: {format: synthetic, prompts: 3}, score: {by: exact, truth: a}",
            "these prompts come from none",
        ),
    ] {
        let error = refused(&scored(keys));
        assert!(error.contains(expected), "{error}");
    }
    for (key, less) in [("journal", "off"), ("journal", "sampled 10"), ("journal_size_cap", "1GB")]
    {
        let error = refused(&(scored("type: accuracy") + &format!("{key}: {less}\n")));
        let expected = format!("{key}: phase `math` keeps its answers in the journal");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_phase_without_rows_must_say_when_it_stops() {
    let error = refused(&sweep("     requests: 7, seed: 5}", "     seed: 5}"));
    assert!(error.contains("says not when to stop") && error.contains("--requests"), "{error}");
    let once = read(&sweep(", duration: 90s, drain_timeout: 1500ms", "")).unwrap();
    assert_eq!(once.phases[1].stop.requests, None, "a file is sent once");
}

#[test]
fn numbers_may_come_from_variables_and_an_empty_key_is_none() {
    let config = read(&sweep("rate: 12.5", "rate: '${RATE:-3}'")).unwrap();
    assert_eq!(config.phases[1].load.rate(), Some(3.0));
    let config = read(&sweep("${KEY}", "${NO_KEY:-}")).unwrap();
    assert_eq!(config.endpoint.api_key, None);
}

#[test]
fn objectives_are_read_and_written_out_as_they_stand() {
    let slo = "slo: {ttft_ms: {p50: 100, p99.9: 500}, latency_ms: 2000}\nengine:";
    let config = read(&sweep("engine:", slo)).unwrap();
    let resolved = config.resolved();
    let given =
        serde_json::json!({"ttft_ms": {"p50": 100.0, "p99.9": 500.0}, "latency_ms": 2000.0});
    assert_eq!(resolved["slo"], given);
    for (slo, expected) in [
        ("{ttft_ms: {p99: 5, p50: 9}}", "slo.ttft_ms: asks p99 to be at most 5 and p50 at most 9"),
        ("{ttft_ms: {p98: 5}}", "slo.ttft_ms.p98: is not known; did you mean `p9"),
        ("{ttft: 5}", "slo.ttft: is not known; did you mean `ttft_ms`?"),
        ("{ttft_ms: 0}", "must be a number above 0"),
        ("{ttft_ms: {}}", "slo.ttft_ms: holds no percentile"),
        ("{}", "slo: holds no objective"),
    ] {
        let error = refused(&sweep("engine:", &format!("slo: {slo}\nengine:")));
        assert!(error.contains(expected), "{error}");
    }
    let whole = sweep("engine:", "slo: {tpot_ms: 5}\nengine:");
    let error = refused(&whole.replace("  model: m", "  model: m\n  stream: false"));
    assert!(error.contains("slo.tpot_ms: has no effect: answers are not streamed"), "{error}");
}

#[test]
fn k3_a_header_from_a_file_is_written_out_as_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.txt");
    let given = |contents: &str| {
        std::fs::write(&file, contents).unwrap();
        let from = format!("{{file: '{}'}}", file.display());
        read(&sweep("X-Auth: hunter2", &format!("X-Any: {from}")).replace("${KEY}", &from))
    };
    let config = given(" hunter2 \n").unwrap();
    assert_eq!(config.endpoint.headers[2].1.value.reveal(), "hunter2");
    assert!(config.secrets.iter().any(|secret| secret.reveal() == "hunter2"));
    let shown = config.resolved()["endpoint"].clone();
    assert_eq!(shown["api_key"]["file"], file.display().to_string());
    assert_eq!(shown["headers"]["X-Any"][0]["file"], file.display().to_string());
    for contents in ["", "hunter2\nhunter3\n"] {
        let error = given(contents).unwrap_err();
        assert!(error.contains("must hold one line") && !error.contains("hunter"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let from = format!("{{file: '{}'}}", file.display());
    let error = refused(&SWEEP.replace("${KEY}", &from));
    assert!(error.contains("api_key.file: ") && error.contains("cannot be read"), "{error}");
}

#[test]
fn the_journal_is_full_unless_a_sample_or_none_is_asked_for() {
    let journal =
        |rest: &str| read(&sweep("engine:", &format!("{rest}\nengine:"))).map(|c| c.journal);
    assert_eq!(read(SWEEP).unwrap().journal, Journal { one_in: 1.try_into().ok(), size_cap: None });
    let sampled = journal("journal: sampled 100\njournal_size_cap: 2GB").unwrap();
    assert_eq!(sampled, Journal { one_in: 100.try_into().ok(), size_cap: Some(2_000_000_000) });
    assert_eq!(sampled.word(), "sampled 100");
    assert_eq!(journal("journal: off").unwrap().one_in, None);
    for (wrong, expected) in [
        ("journal: sampled", "write `sampled 100`"),
        ("journal: sampled 0", "write `sampled 100`"),
        ("journal: fll", "did you mean `full`?"),
        ("journal: off\njournal_size_cap: 1GB", "has no effect"),
        ("journal_size_cap: 12", "bytes at least"),
        ("journal_size_cap: huge", "must be a size such as 500MB"),
    ] {
        let error = journal(wrong).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn e6_addresses_to_publish_at_are_checked_before_anything_runs() {
    let with = |publish: &str| sweep("seed: 5}", &format!("seed: 5}}\npublish: {{{publish}}}"));
    let config = read(&with("events: 'ipc:///run/e', snapshots: 'tcp://127.0.0.1:5556'")).unwrap();
    assert_eq!(config.publish.events.as_deref(), Some("ipc:///run/e"));
    assert_eq!(config.publish.aggregator, Aggregator::Off);
    assert_eq!(read(SWEEP).unwrap().publish, Publish::default());
    for (publish, expected) in [
        ("events: /run/e", "publish.events: is no address: write ipc:///run"),
        ("events: 'tcp://127.0.0.1'", "needs a host and a port"),
        ("events: 'tcp://h:0'", "needs a host and a port"),
        ("events: 'ipc://'", "has no path"),
        ("evnts: 'ipc:///e'", "did you mean `events`?"),
        ("events: 'ipc:///e', snapshots: 'ipc:///e'", "is given twice"),
        ("aggregator: yes", "publish.aggregator: is no address"),
        ("queue: 5", "publish.queue: has no effect"),
    ] {
        let error = refused(&with(publish));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_pacer_that_cannot_see_completions_is_refused_where_they_matter() {
    let open = SWEEP
        .replace("{pattern: concurrency, target_concurrency: 4}", "{pattern: constant, rate: 5}")
        .replace("{pattern: max_throughput, max_in_flight: 9}", "{pattern: poisson, rate: 5}");
    let pacer = |text: &str| open.replacen("core: 1", text, 1);
    let config = read(&pacer("core: 1, pacer: thread, pacer_core: 0")).unwrap();
    assert_eq!((config.pacer, config.pacer_core), (Pacer::Thread, Some(0)));
    for (yaml, expected) in [
        (sweep("core: 1", "pacer: thread"), "`thread` has no effect on phase `warm`"),
        (pacer("pacer_core: 1"), "engine.pacer_core: has no effect"),
        (pacer("core: 1, pacer: thread, pacer_core: 1"), "is the core of the reactor"),
        (pacer("pacer: thraed"), "did you mean `thread`?"),
        (open.replacen("120s", "120s, service_ready_timeout: 5s", 1), "no process to wait for"),
    ] {
        let error = refused(&yaml);
        assert!(error.contains(expected), "{error}");
    }
}

#[cfg(feature = "zmq")]
#[test]
fn k3_a_pacer_is_told_the_phases_and_no_secret() {
    let config = read(SWEEP).unwrap();
    let told = config.for_pacer();
    assert!(!told.contains("hunter2") && !told.contains('\n'), "{told}");
    let again = Config::from_run(&told).unwrap();
    assert_eq!(config.resolved()["phases"], again.resolved()["phases"]);
}
