//! Keys go to the endpoint and nowhere else.

use crate::bench::{Bench, Done, answer, files, serve};

const KEY: &str = "sk-hunter2-0123456789";

/// Nothing that a run left behind or said holds the key.
#[track_caller]
fn nowhere(bench: &Bench, done: &Done) {
    assert!(!done.stdout.contains(KEY), "{}", done.stdout);
    assert!(!done.stderr.contains(KEY), "{}", done.stderr);
    for (path, bytes) in files(&bench.path("out")) {
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "in {}", path.display());
    }
}

#[test]
fn k3_a_key_that_the_server_repeats_is_in_no_output_and_no_file() {
    let bench = Bench::new();
    let url = serve(|request| {
        let key = request.lines().find_map(|line| line.strip_prefix("Authorization: ")).unwrap();
        let body = format!("{{\"error\": {{\"message\": \"bad key {key}\"}}}}");
        answer("401 Unauthorized", "Content-Type: application/json\r\n", &body)
    });
    let args = [
        "run",
        "--url",
        &url,
        "--api-key-env",
        "KEY",
        "--concurrency",
        "1",
        "--requests",
        "3",
        "--out",
        "out",
    ];
    let done = Done::from(bench.command(&args).env("KEY", KEY).output().unwrap()).exits(4);
    let result = bench.result().to_string();
    assert!(result.contains("bad key Bearer <redacted>"), "{result}");
    assert!(bench.read("out/config.yaml").contains("<redacted>"));
    nowhere(&bench, &done);
    let again = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    assert!(again.stdout.contains("bad key Bearer <redacted>"));
    nowhere(&bench, &again);
}

#[test]
fn k3_a_secret_that_a_server_repeats_is_hidden_wherever_it_was_given() {
    // A server that says everything it was sent, and the parameter `key` decoded.
    let echo = || {
        serve(|request| {
            let decoded = request.replace("%2D", "-");
            let body = format!("{request}\n{decoded}").replace('\r', "");
            answer("403 Forbidden", "Content-Type: text/plain\r\n", &body)
        })
    };
    let (cookie, body) = (format!("Cookie: id=1; s={KEY}"), format!("{{\"api_key\": \"{KEY}\"}}"));
    let encoded = KEY.replace('-', "%2D");
    for (query, more) in [
        (String::new(), vec!["--header", &*cookie]),
        (format!("?v=1&key={KEY}"), vec![]),
        (format!("?key={encoded}"), vec![]),
        (String::new(), vec!["--extra-body", &*body]),
    ] {
        let bench = Bench::new();
        let mut args = vec!["--concurrency", "1", "--requests", "2"];
        args.extend(&more);
        let done = bench.run(&format!("{}{query}", echo()), &args).exits(4);
        assert!(bench.result().to_string().contains("HTTP 403"), "{query} {more:?}");
        nowhere(&bench, &done);
    }
}

#[test]
fn k3_keys_in_headers_and_in_the_address_are_written_nowhere() {
    let bench = Bench::new();
    let url = serve(|_| answer("200 OK", "", "ok"));
    let (url, header) = (format!("{url}/x?api_key={KEY}"), format!("X-Api-Key: {KEY}"));
    let args = [
        "run",
        "--url",
        &url,
        "--api",
        "raw",
        "--header",
        &header,
        "--concurrency",
        "1",
        "--requests",
        "3",
        "--out",
        "out",
        "--log-level",
        "debug",
    ];
    let done = bench.takt(&args).exits(0);
    nowhere(&bench, &done);
}

#[test]
fn k3_no_error_shows_a_key() {
    let bench = Bench::new();
    bench.file("a.yaml", &format!("endpoint: {{url: 'http://u:{KEY}@h', api_key: [{KEY}]}}\n"));
    bench.file("b.yaml", &format!("endpoint:\n  api_key: \"{KEY}\n"));
    let broken = format!("X-Key: {KEY}\u{1}");
    let wrong = ["--rate", "1", "--requests", "1", "--api-key-env", KEY];
    let mistaken = [&["run", "--url", "http://h"][..], &wrong].concat();
    let key_is_path = format!("endpoint.api_key={{{KEY}");
    for args in [
        &["run", "a.yaml"][..],
        &["run", "b.yaml"],
        &["run", "--url", "http://h", "--rate", "1", "--requests", "1", "--header", &broken],
        &["run", "--url", "http://h", "--set", &key_is_path],
        &mistaken,
    ] {
        let done = bench.takt(args).exits(2);
        assert!(!done.stderr.contains(KEY), "{}", done.stderr);
    }
}

#[test]
fn k3_secrets_from_files_variables_and_addresses_are_in_no_file_and_no_output() {
    let bench = Bench::new();
    // A server that says everything it was sent, in an error.
    let url = serve(|request| answer("403 Forbidden", "", &request.replace('\r', "")));
    let secrets = [
        ("PATH_TOKEN", "path-0123456789"),
        ("QUERY_KEY", "query-0123456789"),
        ("ANY_SECRET", "plain-0123456789"),
        ("USER_TOKEN", "user-0123456789"),
        ("key.txt", "bearer-0123456789"),
        ("header.txt", "file-0123456789"),
        ("cookie", "cookie-0123456789"),
        ("body", "body-0123456789"),
    ];
    let of = |name: &str| secrets.iter().find(|(other, _)| *other == name).unwrap().1;
    for file in ["key.txt", "header.txt"] {
        bench.file(file, &format!("{}\n", of(file)));
    }
    bench.file(
        "a.yaml",
        &format!(
            "endpoint:\n  url: '{url}/${{PATH_TOKEN}}?v=1&sig=${{QUERY_KEY}}'\n  model: m\n  \
             api_key: {{file: key.txt}}\n  headers:\n    X-Plain: ['${{ANY_SECRET}}', perf]\n    \
             X-File: {{file: header.txt}}\n    Cookie: id=1; s={}\n  body: {{password: {}, user: \
             '${{USER_TOKEN}}'}}\nphases:\n  - {{name: p, requests: 3, load: {{pattern: \
             concurrency, target_concurrency: 1}}}}\n",
            of("cookie"),
            of("body")
        ),
    );
    let takt = |args: &[&str]| {
        let environment = secrets.iter().filter(|(name, _)| name.contains('_'));
        Done::from(bench.command(args).envs(environment.copied()).output().unwrap())
    };
    let run = takt(&["run", "a.yaml", "--out", "out", "--log-level", "debug"]).exits(4);
    let result = bench.result().to_string();
    // It did come back, and was taken out.
    assert!(result.contains("HTTP 403") && result.contains("perf"), "{result}");
    let valid = takt(&["validate", "a.yaml", "--format", "json"]).exits(0);
    let report = takt(&["report", "out", "--format", "json"]).exits(0);
    let wrong = takt(&["run", "a.yaml", "--set", "endpoint.api=${ANY_SECRET}"]).exits(2);
    for (name, secret) in secrets {
        for done in [&run, &valid, &report, &wrong] {
            assert!(!done.stdout.contains(secret), "{name} in stdout: {}", done.stdout);
            assert!(!done.stderr.contains(secret), "{name} in stderr: {}", done.stderr);
        }
        for (path, bytes) in files(&bench.path("out")) {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{name} in {}", path.display());
        }
    }
    // What came from files can be read from them again.
    let config = bench.read("out/config.yaml");
    assert!(config.contains("key.txt") && config.contains("header.txt"), "{config}");
}
