//! Whole runs: APIs, datasets, addresses, folders.

use crate::bench::{Bench, Mock, answer, serve};

#[test]
fn raw_posts_rows_byte_for_byte_and_a_small_body_without_a_dataset() {
    let bench = Bench::new();
    bench.file("rows.txt", "{\"a\": 1}\nplain\n");
    let url = serve(|request| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let fits = head.starts_with("POST /echo HTTP/1.1")
            && (["{\"a\": 1}", "plain"].contains(&body) || body.len() == 110);
        answer(if fits { "200 OK" } else { "400 Bad Request" }, "", "x")
    });
    let url = format!("{url}/echo");
    let raw = ["run", "--url", &url, "--api", "raw", "--max-throughput"];
    let rows = ["--dataset", "rows.txt", "--out", "rows"];
    bench.takt(&[&raw[..], &rows].concat()).exits(0).says("2 succeeded");
    let none = ["--requests", "3", "--out", "none"];
    bench.takt(&[&raw[..], &none].concat()).exits(0).says("3 succeeded");
}

#[test]
fn every_kind_of_dataset_and_api_succeeds_streamed_and_not() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    bench.file("a.jsonl", "{\"question\": \"00123\", \"max_tokens\": 2}\n{\"question\": \"b\"}\n");
    bench.file("b.csv", "\u{feff}text,other\r\n00123,1\r\n\"a\r\nb\",2\r\n");
    bench.file("c.txt", "one\ntwo\n");
    bench.file("d.json", "[{\"q\": \"x\"}, {\"q\": \"y\"}]");
    for (place, (file, api, stream)) in [
        ("a.jsonl", "openai-chat", "--stream"),
        ("b.csv", "openai-chat", "--no-stream"),
        ("c.txt", "openai-completions", "--stream"),
        ("d.json", "openai-completions", "--no-stream"),
    ]
    .into_iter()
    .enumerate()
    {
        let (url, out) = (mock.url(), format!("out{place}"));
        let mut args = vec![
            "run",
            "--url",
            &url,
            "--model",
            "m",
            "--api",
            api,
            "--dataset",
            file,
            stream,
            "--concurrency",
            "2",
            "--out",
            &out,
        ];
        if file == "d.json" {
            args.extend(["--prompt-column", "q"]);
        }
        bench.takt(&args).exits(0).says("2 issued, 2 succeeded");
    }
}

#[test]
fn k2_c5_addresses_in_all_their_forms_reach_the_server() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let port = mock.address.port();
    for (place, url) in
        ["127.0.0.1:PORT/", "127.0.0.1:PORT/v1", "127.0.0.1:PORT/v1/?k=v", "localhost:PORT"]
            .iter()
            .enumerate()
    {
        let url = format!("http://{}", url.replace("PORT", &port.to_string()));
        let out = format!("out{place}");
        bench
            .takt(&["run", "--url", &url, "--concurrency", "1", "--requests", "3", "--out", &out])
            .exits(0)
            .says("3 succeeded");
    }
}

#[test]
fn c9_a_redirect_is_reported_and_not_followed() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let to = format!("Location: {}/v1/chat/completions\r\n", mock.url());
    let url = serve(move |_| answer("307 Temporary Redirect", &to, ""));
    bench.run(&url, &["--concurrency", "1", "--requests", "2"]).exits(4).says("http_status");
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["failed"], &phase["error_samples"][0]["status"]), (&2.into(), &307.into()));
}

#[test]
fn several_addresses_are_used_in_turn() {
    let bench = Bench::new();
    let truths = ["first.jsonl", "second.jsonl"];
    let mocks = truths
        .map(|truth| Mock::start(&bench, &["--ttft", "1ms", "--tokens", "1", "--truth", truth]));
    let urls = mocks.each_ref().map(Mock::url);
    let args = ["--url", &urls[1], "--concurrency", "2", "--requests", "20"];
    bench.run(&urls[0], &args).exits(0);
    assert_eq!(bench.result()["host"]["endpoints"].as_array().unwrap().len(), 2);
    for (mock, truth) in mocks.into_iter().zip(truths) {
        assert_eq!(mock.stop(), 0);
        assert_eq!(bench.read(truth).lines().count(), 10, "{truth}");
    }
}

#[test]
fn an_open_loop_sends_the_schedule_that_its_seed_draws() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let issued = ["7", "7", "8"].map(|seed| {
        let (url, out) = (mock.url(), tempfile::tempdir_in(bench.path("")).unwrap());
        let folder = out.path().join("run").display().to_string();
        let args = [
            "run",
            "--url",
            &url,
            "--rate",
            "300",
            "--duration",
            "500ms",
            "--seed",
            seed,
            "--out",
            &folder,
            "--format",
            "json",
        ];
        let done = bench.takt(&args).exits(0);
        let result: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        result["phases"][0]["issued"].as_u64().unwrap()
    });
    assert_eq!(issued[0], issued[1], "the same seed, the same number of arrivals");
    // 150 expected, standard deviation 12.
    assert!(issued.iter().all(|n| (80..220).contains(n)), "{issued:?}");
}

#[test]
fn e5_a_folder_in_use_is_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--concurrency", "1", "--requests", "2"];
    bench.run(&mock.url(), &args).exits(0);
    let before = bench.read("out/result.json");
    bench.run(&mock.url(), &args).exits(2).says("holds a run already");
    assert_eq!(bench.read("out/result.json"), before);
    bench.file("file", "");
    let url = mock.url();
    let run = ["run", "--url", &url, "--concurrency", "1", "--requests", "2", "--out"];
    bench.takt(&[&run[..], &["file"]].concat()).exits(2).says("is a file");
    bench.takt(&[&run[..], &["/proc/takt"]].concat()).exits(3).says("cannot be made");
}

#[test]
fn without_out_a_folder_is_made_by_time_and_name() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "1", "--requests", "2", "--name", "a b"];
    bench.takt(&args).exits(0).says("run folder: runs/");
    let folder = std::fs::read_dir(bench.path("runs")).unwrap().next().unwrap().unwrap();
    assert!(folder.file_name().to_string_lossy().ends_with("Z-a-b"));
    for file in [
        "config.yaml",
        "result.json",
        "report.txt",
        "metrics/final_snapshot.json",
        "journal/000000.takt",
    ] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}

#[test]
fn quickstart_measures_two_phases_and_leaves_a_folder() {
    let bench = Bench::new();
    let done = bench.takt(&["quickstart", "--out", "out"]).exits(0).says("run folder: out");
    assert!(done.stdout.contains("poisson_40") && done.stdout.contains("concurrency_8"));
    let result = bench.result();
    assert_eq!(result["state"], "complete");
    for phase in result["phases"].as_array().unwrap() {
        assert_eq!((&phase["failed"], &phase["unanswered"]), (&0.into(), &0.into()), "{phase}");
    }
}

#[test]
fn max_throughput_does_not_pile_up_requests_before_a_slow_server() {
    let bench = Bench::new();
    // Nothing is answered while requests are issued.
    let url = serve(|_| {
        std::thread::sleep(std::time::Duration::from_secs(60));
        String::new()
    });
    let load = "{pattern: max_throughput, max_in_flight: 3}";
    bench.file(
        "a.yaml",
        &format!(
            "endpoint: {{url: '{url}'}}\nphases: [{{name: p, duration: 200ms, drain_timeout: 100ms, \
             load: {load}}}]\n"
        ),
    );
    bench.takt(&["run", "a.yaml", "--out", "out"]).exits(4);
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["issued"], &phase["unanswered"]), (&3.into(), &3.into()));
}
