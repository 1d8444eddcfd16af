//! Connections as users meet them: several endpoints, source addresses, unix sockets, limits, big bodies.

use crate::bench::{Bench, Mock};

const QUICK: [&str; 6] = ["--ttft", "2ms", "--tpot", "1ms", "--tokens", "4"];

#[test]
fn requests_are_counted_under_each_of_several_endpoints() {
    let bench = Bench::new();
    let mocks = [Mock::quick(&bench), Mock::quick(&bench), Mock::quick(&bench)];
    let urls = mocks.each_ref().map(Mock::url);
    for (balance, what) in [("round_robin", "in turn"), ("least_in_flight", "to the least busy")] {
        let balance = format!("connections.balance={balance}");
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let args = ["--url", &urls[1], "--url", &urls[2], "--concurrency", "6"];
        let done =
            bench.run(&urls[0], &[&args[..], &["--requests", "60", "--set", &balance]].concat());
        let done = done.exits(0);
        let result = bench.result();
        let endpoints = result["phases"][0]["endpoints"].as_array().unwrap();
        for (endpoint, url) in endpoints.iter().zip(&urls) {
            assert_eq!(endpoint["url"], **url);
            let ended = endpoint["ended"].as_u64().unwrap();
            assert!(ended >= 10, "{what}: {endpoints:?}");
            assert_eq!(endpoint["succeeded"], ended);
            assert!(done.stdout.contains(&format!("{url}: {ended} ended")), "{}", done.stdout);
        }
        let sum: u64 = endpoints.iter().map(|e| e["ended"].as_u64().unwrap()).sum();
        assert_eq!(sum, 60);
    }
    bench
        .run(&urls[0], &["--concurrency", "1", "--set", "connections.balance=round_robin"])
        .exits(2);
}

#[test]
fn connections_come_from_the_addresses_that_are_given_and_from_no_others() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let peers = std::thread::spawn(move || {
        // The first is the look whether anybody is there.
        let streams = listener.incoming().flatten().skip(1).take(6);
        let peers = streams.map(|stream| (stream.peer_addr().unwrap().ip().to_string(), stream));
        let peers: Vec<_> = peers.collect();
        peers.into_iter().map(|(peer, _)| peer).collect::<Vec<_>>()
    });
    let sources = "connections.source_addresses=[127.0.0.2, 127.0.0.3, 127.0.0.4]";
    let args = ["--concurrency", "6", "--requests", "6", "--request-timeout", "2s"];
    // Nobody answers, and nobody needs to.
    bench.run(&url, &[&args[..], &["--set", sources]].concat()).exits(4);
    let mut peers = peers.join().unwrap();
    peers.sort_unstable();
    let twice = ["127.0.0.2", "127.0.0.3", "127.0.0.4"].map(|source| [source; 2]);
    assert_eq!(peers, twice.concat());
    for (wrong, says) in [
        ("[192.0.2.1]", "is no address of this machine"),
        ("['::1']", "one is IPv4, the other IPv6"),
        ("[127.0.0.2, 127.0.0.2]", "stands there twice"),
        ("[here]", "is no address of this machine"),
    ] {
        let mock = Mock::quick(&bench);
        let wrong = format!("connections.source_addresses={wrong}");
        let args = ["--concurrency", "1", "--requests", "1", "--set", &wrong];
        let done = bench.run(&mock.url(), &args);
        // A machine without IPv6 does not have `::1` at all.
        let none = wrong.contains("::1") && done.stderr.contains("is no address of this machine");
        let done = done.exits(2);
        assert!(none || done.stderr.contains(says), "{wrong}: {}", done.stderr);
    }
}

#[test]
fn a_unix_socket_serves_a_run_and_a_probe_from_end_to_end() {
    let bench = Bench::new();
    let path = bench.path("server.sock");
    let at = format!("unix:{}", path.display());
    let mut command = bench.command(&[&["mock", "--listen", &at][..], &QUICK].concat());
    let mut child = command.stderr(std::process::Stdio::inherit()).spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    assert_eq!(line.trim(), format!("listening on {at}"));
    bench.run(&at, &["--concurrency", "4", "--requests", "40"]).exits(0).says("40 succeeded");
    bench.takt(&["probe", "--url", &at]).exits(0);
    let stamps = ["--set", "engine.rx_timestamps=kernel", "--concurrency", "1"];
    bench.run(&at, &stamps).exits(2).says("no bytes of unix sockets");
    child.kill().unwrap();
    child.wait().unwrap();
    for wrong in ["unix:relative", "nowhere"] {
        bench.takt(&["mock", "--listen", wrong]).exits(2).says("unix:/run/server.sock");
    }
}

#[test]
fn c8_prompts_of_400_kb_go_out_whole_and_their_writing_is_reported() {
    let bench = Bench::new();
    let words = "word ".repeat(80_000);
    let rows: String = (0..8).map(|n| format!("{{\"prompt\": \"{n} {words}\"}}\n")).collect();
    bench.file("big.jsonl", &rows);
    let tls = [file("server.pem"), file("server.key"), file("ca.pem")];
    let over = [
        (vec![], vec![]),
        (vec!["--tls-cert", &tls[0], "--tls-key", &tls[1]], vec!["--cacert", &tls[2]]),
    ];
    for (serve, ask) in over {
        let mock = Mock::start(&bench, &[&QUICK[..], &serve].concat());
        let url = match ask.is_empty() {
            true => mock.url(),
            false => mock.url().replace("http", "https"),
        };
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let args = ["--dataset", "big.jsonl", "--concurrency", "8", "--requests", "32"];
        let done = bench.run(&url, &[&args[..], &ask].concat()).exits(0);
        let phase = &bench.result()["phases"][0];
        assert_eq!((&phase["succeeded"], &phase["write_ms"]["count"]), (&32.into(), &32.into()));
        // A machine that takes them at once has nothing to show of it.
        let notable = phase["write_ms"]["max"].as_f64().unwrap() >= NOTABLE_MS;
        assert_eq!(done.stdout.contains("write ms"), notable, "{}", done.stdout);
        assert_eq!(phase["tokens"]["output_total"], 32 * 4);
    }
}

/// Writing is on the screen when it ever took this long, as takt-report has it.
const NOTABLE_MS: f64 = 0.1;

fn file(name: &str) -> String {
    format!("{}/../../tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn c2_what_open_files_or_ports_do_not_allow_is_said_before_the_start() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["run", "--url", &mock.url(), "--model", "m", "--concurrency", "300"];
    let args = [&args[..], &["--requests", "600", "--out", "out"]].concat();
    let running = crate::bench::Running::start_after(&bench, "ulimit -n 200", &args);
    let done = running.done();
    assert!(
        done.stderr.contains("300 connections are wanted, open files allow"),
        "{}",
        done.stderr
    );
    // What there is serves all, and the verdict knows.
    assert_eq!(done.code, 0, "{}", done.stderr);
    let result = bench.result();
    assert_eq!(result["phases"][0]["succeeded"], 600);
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["name"] == "limited"), "{reasons:?}");
}

#[test]
fn the_kernel_tells_how_long_first_tokens_lay_in_the_socket_plain_and_over_tls() {
    let bench = Bench::new();
    let tls = [file("server.pem"), file("server.key"), file("ca.pem")];
    for secure in [false, true] {
        let serve = ["--tls-cert", &tls[0], "--tls-key", &tls[1]];
        let mock = Mock::start(&bench, &[&QUICK[..], if secure { &serve } else { &[] }].concat());
        let url = if secure { mock.url().replace("http", "https") } else { mock.url() };
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let stamps = ["--set", "engine={rx_timestamps: kernel, ttft_until: arrival}"];
        let ca = ["--cacert", &tls[2]];
        let args = ["--concurrency", "4", "--requests", "200"];
        let more = if secure { &ca[..] } else { &[] };
        let done = bench.run(&url, &[&args[..], &stamps, more].concat()).exits(0);
        let result = bench.result();
        let phase = &result["phases"][0];
        let waits = phase["socket_wait_ms"]["count"].as_u64().unwrap();
        // The kernel begins to stamp a moment after it was asked to.
        assert!((1..=200).contains(&waits), "{waits}");
        assert!(phase["socket_wait_ms"]["min"].as_f64().unwrap() >= 0.0);
        assert_eq!(phase["instrument"]["anomalies"], 0);
        assert!(done.stdout.contains("waited in socket ms"), "{}", done.stdout);
        // The same figures come from the journal.
        std::fs::remove_file(bench.path("out/result.json")).unwrap();
        bench.takt(&["report", "out"]).exits(0);
    }
    let mock = Mock::quick(&bench);
    let args = ["--concurrency", "1", "--set", "engine.ttft_until=arrival"];
    bench.run(&mock.url(), &args).exits(2).says("rx_timestamps: kernel");
}
