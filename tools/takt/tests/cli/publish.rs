//! What a run tells others over ZMQ: subscribers that read and some that do not, aggregators that stay and
//! some that are killed.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;

use serde_json::Value;
use zmq::{Context, Socket, SocketType};

use crate::bench::{Bench, Mock, Running};

/// A subscriber to what begins with `topic`, that waits long for each message.
fn subscriber(address: &str, topic: &str) -> Socket {
    let socket = Context::new().socket(SocketType::SUB).unwrap();
    // Least room of its own: what it does not read is the publisher's to keep or to drop.
    socket.set_rcvhwm(1).unwrap();
    socket.set_reconnect_ivl(10).unwrap();
    socket.set_rcvtimeo(60_000).unwrap();
    socket.set_subscribe(topic.as_bytes()).unwrap();
    socket.connect(address).unwrap();
    socket
}

/// One message: topic, number, events.
fn message(socket: &Socket) -> (String, u64, Vec<Value>) {
    let frames = socket.recv_multipart(0).unwrap();
    let text: Vec<_> = frames.into_iter().map(|f| String::from_utf8(f).unwrap()).collect();
    let [topic, number, lines] = &text[..] else { panic!("{text:?}") };
    let events: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    (topic.clone(), number.parse().unwrap(), events)
}

/// The events that `takt events` prints of the run in `out`.
fn journal(bench: &Bench) -> Vec<Value> {
    let printed = bench.takt(&["events", "out"]).exits(0).stdout;
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Ids of requests that ended, in order.
fn completed(events: &[Value]) -> Vec<&str> {
    let completed = events.iter().filter(|event| event["event_type"] == "sample.complete");
    completed.map(|event| event["sample_uuid"].as_str().unwrap()).collect()
}

fn ipc(bench: &Bench, name: &str) -> String {
    format!("ipc://{}", bench.path(name).display())
}

/// A run that publishes events.
fn publishing(bench: &Bench, mock: &Mock, address: &str, more: &[&str]) -> Running {
    let (url, set) = (mock.url(), format!("publish.events={address}"));
    let args = ["run", "--url", &url, "--model", "m", "--out", "out", "--set", &set];
    Running::start(bench, &[&args[..], more].concat())
}

#[test]
fn e6_a_subscriber_that_reads_gets_what_the_journal_has() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let address = ipc(&bench, "events");
    let socket = subscriber(&address, "");
    // Two seconds: a subscriber that gets no processor for a while still comes in time.
    let running = publishing(&bench, &mock, &address, &["--rate", "300", "--requests", "600"]);
    let (mut told, mut numbers) = (Vec::new(), BTreeMap::new());
    loop {
        let (topic, number, events) = message(&socket);
        let expected = numbers.insert(topic.clone(), number + 1).unwrap_or(number);
        assert_eq!(number, expected, "{topic}: nothing is missing");
        assert!(events.iter().all(|event| event["event_type"] == *topic));
        told.extend(events);
        if topic == "session.ended" {
            break;
        }
    }
    running.done().exits(0);
    let journal = journal(&bench);
    let (told, all) = (completed(&told), completed(&journal));
    assert!(!told.is_empty(), "it came too late for everything");
    // What came before the subscriber did is not told.
    assert_eq!(told, all[all.len() - told.len()..]);
}

#[test]
fn e6_a_subscriber_that_stops_reading_loses_messages_and_disturbs_nothing() {
    const REQUESTS: u64 = 30_000;
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let address = ipc(&bench, "events");
    let socket = subscriber(&address, "s");
    let control = bench.path("control");
    let control = control.to_str().unwrap();
    let requests = REQUESTS.to_string();
    let set = format!("control={control}");
    // Slow enough for half of it to be still to come when half is seen to be over.
    let more = ["--api", "raw", "--rate", "10000", "--requests", &requests, "--set", &set];
    let queue = ["--set", "publish.queue=2"];
    let (url, events) = (mock.url(), format!("publish.events={address}"));
    let args = ["run", "--url", &url, "--out", "out", "--set", &events];
    let running = Running::start(&bench, &[&args[..], &more, &queue].concat());
    message(&socket);
    // It reads no more until half of the run is over.
    loop {
        let status = bench.takt(&["stop", control, "--status"]).exits(0).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        if status["over"] == true || status["issued"].as_u64() > Some(REQUESTS / 2) {
            break;
        }
    }
    let reader = std::thread::spawn(move || {
        let (mut next, mut missed, mut read) = (BTreeMap::new(), 0, 0);
        socket.set_rcvtimeo(5_000).unwrap();
        while let Ok(frames) = socket.recv_multipart(0) {
            let number: u64 = std::str::from_utf8(&frames[1]).unwrap().parse().unwrap();
            let expected = next.insert(frames[0].clone(), number + 1).unwrap_or(number);
            missed += number - expected;
            read += 1;
            if frames[0] == b"session.ended" {
                break;
            }
        }
        (missed, read)
    });
    running.done().exits(0);
    let (missed, read) = reader.join().unwrap();
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["succeeded"], &phase["instrument"]["lost"]), (&REQUESTS.into(), &0.into()));
    assert_eq!(completed(&journal(&bench)).len() as u64, REQUESTS, "the journal has them all");
    assert!(missed > 0, "{read} messages read, none missed");
}

#[test]
fn snapshots_come_while_the_run_goes_on_and_end_complete() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let address = ipc(&bench, "snapshots");
    let socket = subscriber(&address, "snapshot");
    let (url, set) = (mock.url(), format!("publish.snapshots={address}"));
    let args = ["run", "--url", &url, "--out", "out", "--concurrency", "2", "--set", &set];
    let running = Running::start(&bench, &[&args[..], &["--duration", "1500ms"]].concat());
    let (mut seen, mut counter) = (0, None);
    let last = loop {
        let frames = socket.recv_multipart(0).unwrap();
        let snapshot: Value = serde_json::from_slice(&frames[2]).unwrap();
        let number = snapshot["counter"].as_u64();
        assert!(number > counter);
        (seen, counter) = (seen + 1, number);
        if snapshot["state"] != "live" {
            break snapshot;
        }
    };
    running.done().exits(0);
    assert!(seen > 1 && last["state"] == "complete", "{seen}: {last}");
}

#[test]
fn an_aggregator_elsewhere_computes_what_the_run_does() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "2ms", "--tpot", "1ms", "--errors", "429:0.2"]);
    let address = ipc(&bench, "feed");
    let aggregator = ["aggregate", "--events", &address, "--out", "elsewhere"];
    let aggregator = Running::start(&bench, &aggregator);
    let set = format!("publish.aggregator={address}");
    bench.run(&mock.url(), &["--concurrency", "4", "--requests", "200", "--set", &set]).exits(0);
    aggregator.done().exits(0);
    let ours = bench.read("out/metrics/final_snapshot.json");
    assert_eq!(bench.read("elsewhere/metrics/final_snapshot.json"), ours);
    assert!(ours.contains("\"complete\""));
}

#[test]
fn an_aggregator_of_its_own_writes_the_final_snapshot_of_the_run() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--requests", "50", "--concurrency", "2", "--set", "publish.aggregator=true"];
    let done = bench.run(&mock.url(), &args).exits(0).says("listening").says("wrote");
    assert!(!done.stdout.contains("aggregator was lost"), "{}", done.stdout);
    let snapshot: Value =
        serde_json::from_str(&bench.read("out/metrics/final_snapshot.json")).unwrap();
    assert_eq!(snapshot["state"], "complete");
    assert_eq!(snapshot["session_id"], bench.result()["session_id"]);
}

#[test]
fn a_run_whose_aggregator_is_killed_has_its_figures_from_its_own_records_and_says_so() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let mut running = Running::start(
        &bench,
        &[
            "run",
            "--url",
            &mock.url(),
            "--out",
            "out",
            "--concurrency",
            "2",
            "--duration",
            "3s",
            "--set",
            "publish.aggregator=true",
        ],
    );
    running.wait_for("phase performance");
    let [aggregator] = running.children()[..] else { panic!("one process of its own") };
    crate::bench::kill(aggregator);
    let done = running.done().exits(0).says("The aggregator was lost");
    assert!(done.stdout.contains("aggregator_lost"), "{}", done.stdout);
    let result = bench.result();
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["name"] == "aggregator_lost"), "{reasons:?}");
    let snapshot: Value =
        serde_json::from_str(&bench.read("out/metrics/final_snapshot.json")).unwrap();
    assert_eq!(snapshot["state"], "complete");
    assert_eq!(result["phases"][0]["issued"], result["phases"][0]["succeeded"]);
}

#[test]
fn an_aggregator_that_is_not_ready_in_time_is_a_failed_set_up() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let set = format!("publish.aggregator={}", ipc(&bench, "feed"));
    let timeout = "limits.service_ready_timeout=100ms";
    let args = ["--rate", "5", "--requests", "5", "--set", &set, "--set", timeout];
    bench.run(&mock.url(), &args).exits(3).says("not ready after 100ms");
}

#[test]
fn an_address_that_is_taken_is_a_failed_set_up() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let socket = Context::new().socket(SocketType::PUB).unwrap();
    socket.bind("tcp://127.0.0.1:*").unwrap();
    let taken = socket.get_last_endpoint().unwrap().unwrap();
    let set = format!("publish.events={taken}");
    let args = ["--rate", "5", "--requests", "5", "--set", &set];
    bench.run(&mock.url(), &args).exits(3).says("publish.events").says("in use");
}

#[test]
fn a_file_and_a_socket_in_use_are_left_alone_and_one_of_a_killed_run_is_taken_over() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    std::fs::write(bench.path("notes"), "mine").unwrap();
    let living = UnixListener::bind(bench.path("living")).unwrap();
    for key in ["publish.events", "publish.snapshots", "publish.aggregator"] {
        for name in ["notes", "living"] {
            let set = format!("{key}={}", ipc(&bench, name));
            let args = ["--rate", "50", "--requests", "2", "--set", &set];
            let done = bench.run(&mock.url(), &args);
            done.exits(3).says(name).says("in use");
            std::fs::remove_dir_all(bench.path("out")).unwrap();
        }
    }
    assert_eq!(bench.read("notes"), "mine");
    drop(living);
    let set = format!("publish.events={}", ipc(&bench, "living"));
    bench.run(&mock.url(), &["--rate", "50", "--requests", "2", "--set", &set]).exits(0);
}

#[test]
fn sockets_are_gone_when_the_run_is_over_however_it_ended() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let events = format!("publish.events={}", ipc(&bench, "events"));
    let snapshots = format!("publish.snapshots={}", ipc(&bench, "snapshots"));
    let both = ["--rate", "50", "--requests", "2", "--set", &events, "--set", &snapshots];
    let gone = || ["events", "snapshots", "feed"].iter().all(|name| !bench.path(name).exists());
    bench.run(&mock.url(), &both).exits(0);
    assert!(gone());
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let feed = format!("publish.aggregator={}", ipc(&bench, "feed"));
    let timeout = "limits.service_ready_timeout=100ms";
    let more = ["--set", &feed, "--set", timeout];
    bench.run(&mock.url(), &[&both[..], &more].concat()).exits(3);
    assert!(gone());
}

#[test]
fn sockets_of_a_killed_run_are_removed_by_the_next_one() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    std::fs::create_dir(bench.path("tmp")).unwrap();
    let start = |out: &str, more: &[&str]| {
        let url = mock.url();
        let args = ["run", "--url", &url, "--model", "m", "--out", out, "--rate", "50"];
        Running::start_after(&bench, "export TMPDIR=\"$PWD/tmp\"", &[&args[..], more].concat())
    };
    let services = ["--set", "publish.aggregator=true", "--set", "engine.pacer=process"];
    let mut killed = start("killed", &[&["--duration", "600s"][..], &services].concat());
    killed.wait_for("phase performance");
    killed.kill();
    let left = || -> Vec<_> {
        let entries = std::fs::read_dir(bench.path("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    assert_eq!(left().len(), 2, "{:?}", left());
    // As if it had been killed a while ago.
    let touch =
        |path| std::process::Command::new("touch").args(["-d", "1 minute ago"]).arg(path).status();
    assert!(left().iter().all(|path| touch(path).unwrap().success()));
    start("next", &["--requests", "2"]).done().exits(0);
    assert_eq!(left().len(), 0, "{:?}", left());
}
