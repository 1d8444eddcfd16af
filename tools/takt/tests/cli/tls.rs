//! TLS as users meet it: certificates that are right and wrong, and what is said about them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bench::{Bench, Done, Mock};

/// A file of the test certificates.
pub(crate) fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
    let path: PathBuf = folder.join(name);
    path.to_str().unwrap().to_owned()
}

/// A server that shows the certificate `name`, and its address under the host `host`.
fn server(bench: &Bench, name: &str, host: &str, more: &[&str]) -> (Mock, String) {
    let (cert, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
    let quick = ["--ttft", "2ms", "--tpot", "1ms", "--tokens", "4"];
    let tls = ["--tls-cert", &cert, "--tls-key", &key];
    let mock = Mock::start(bench, &[&quick[..], &tls, more].concat());
    let url = format!("https://{host}:{}", mock.address.port());
    (mock, url)
}

fn run(bench: &Bench, url: &str, more: &[&str]) -> Done {
    let _ = std::fs::remove_dir_all(bench.path("out"));
    bench.run(url, &[&["--concurrency", "4", "--requests", "40"], more].concat())
}

#[test]
fn a_run_over_tls_is_a_run_and_its_handshakes_are_counted_apart() {
    let bench = Bench::new();
    let (_mock, url) = server(&bench, "server", "localhost", &[]);
    // Nothing is opened beforehand, so that requests wait for connections.
    let done = run(&bench, &url, &["--cacert", &file("ca.pem"), "--set", "connections.warm=0"]);
    let done = done.exits(0);
    let result = bench.result();
    let phase = &result["phases"][0];
    assert_eq!((&phase["succeeded"], &phase["failed"]), (&40.into(), &0.into()));
    let (connect, tls) = (&phase["connect_ms"]["count"], &phase["tls_ms"]["count"]);
    // A request that came when its connection stood already has waited for TLS alone.
    let (connect, tls) = (connect.as_u64().unwrap(), tls.as_u64().unwrap());
    assert!(connect > 0 && connect <= tls, "{connect} {tls}");
    let seen = &phase["instrument"];
    assert_eq!(seen["secured"], seen["connections"], "{seen}");
    let spoken = result["host"]["endpoints"][0]["tls"].as_str().unwrap();
    assert!(spoken.starts_with("TLS 1.3"), "{spoken}");
    for says in ["TLS ms", "TLS handshakes"] {
        assert!(done.stdout.contains(says), "{}", done.stdout);
    }
    assert!(!done.stdout.contains("INSECURE"), "{}", done.stdout);
}

#[test]
fn sessions_are_resumed_where_connections_are_not_kept() {
    let bench = Bench::new();
    let (_mock, url) = server(&bench, "server", "localhost", &["--close-after", "0s"]);
    run(&bench, &url, &["--cacert", &file("ca.pem")]).exits(0);
    let seen = &bench.result()["phases"][0]["instrument"];
    let (all, resumed) = (seen["secured"].as_u64().unwrap(), seen["resumed"].as_u64().unwrap());
    assert!(all >= 20 && resumed > all / 2, "{resumed} of {all}");
}

#[test]
fn c10_a_certificate_that_cannot_be_trusted_is_refused_with_a_way_to_mend_it() {
    let bench = Bench::new();
    let ca = file("ca.pem");
    let trusting: &[&str] = &["--cacert", &ca];
    for (name, host, args, says) in [
        ("server", "localhost", &[][..], ["issuer is not trusted", "--cacert FILE"]),
        ("self", "localhost", &[], ["self-signed", "--cacert FILE"]),
        ("self", "localhost", trusting, ["self-signed", "--cacert FILE"]),
        ("expired", "localhost", trusting, ["has expired", "renew it"]),
        (
            "wrong",
            "localhost",
            trusting,
            ["for elsewhere.example, not for localhost", "in the address"],
        ),
    ] {
        let (_mock, url) = server(&bench, name, host, &[]);
        let done = run(&bench, &url, args).exits(3);
        for part in says.iter().chain(&["TLS: ", "--insecure"]) {
            assert!(done.stderr.contains(part), "{name}: `{part}` is not in:\n{}", done.stderr);
        }
        assert!(!bench.path("out").exists(), "{name}: nothing was begun");
        let probed = bench.takt(&[&["probe", "--url", &url, "--model", "m"], args].concat());
        probed.exits(3).says(says[0]);
    }
}

#[test]
fn c10_any_certificate_will_do_when_that_is_said_and_the_report_says_so_too() {
    let bench = Bench::new();
    for name in ["self", "expired", "wrong"] {
        let (_mock, url) = server(&bench, name, "localhost", &[]);
        let done = run(&bench, &url, &["--insecure"]).exits(0).says("no certificate is checked");
        assert!(
            done.stdout.contains("INSECURE: no TLS certificate was checked"),
            "{}",
            done.stdout
        );
        let result = bench.result();
        assert_eq!(result["phases"][0]["succeeded"], 40);
        let reasons = result["verdict"]["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|r| r["name"] == "certificates_unchecked"), "{reasons:?}");
        let again = bench.takt(&["report", "out"]).exits(0);
        assert!(again.stdout.contains("INSECURE"), "{}", again.stdout);
    }
}

#[test]
fn c10_a_self_signed_certificate_that_is_named_itself_is_trusted_for_its_name() {
    let bench = Bench::new();
    let (_mock, url) = server(&bench, "self", "localhost", &[]);
    let own = file("self.pem");
    run(&bench, &url, &["--cacert", &own]).exits(0);
    let (_mock, url) = server(&bench, "self", "127.0.0.3", &[]);
    // Nobody listens there, but on 127.0.0.1: by that name the certificate is good, too.
    run(&bench, &url.replace("127.0.0.3", "127.0.0.1"), &["--cacert", &own]).exits(0);
}

#[test]
fn a_server_that_wants_a_client_certificate_gets_it_or_says_so() {
    let bench = Bench::new();
    let ca = file("ca.pem");
    let (_mock, url) = server(&bench, "server", "localhost", &["--tls-client-ca", &ca]);
    let (cert, key) = (file("client.pem"), file("client.key"));
    run(&bench, &url, &["--cacert", &ca, "--cert", &cert, "--key", &key]).exits(0);
    assert_eq!(bench.result()["phases"][0]["succeeded"], 40);
    let (other, other_key) = (file("self.pem"), file("self.key"));
    for (args, says) in [
        (&[][..], "wants a client certificate: give --cert and --key"),
        (&["--cert", &other, "--key", &other_key], "does not take the client certificate"),
    ] {
        // With TLS 1.3 a server refuses after the client's side of the handshake is over.
        let args = [&["--cacert", &ca], args].concat();
        run(&bench, &url, &args).exits(3).says("cannot be reached: TLS: ").says(says);
        assert!(!bench.path("out").exists(), "nothing was begun");
        // Without --model the list of models would be the first request.
        let probed = bench.takt(&[&["probe", "--url", &url], &args[..]].concat());
        probed.exits(3).says("cannot be reached: TLS: ").says(says);
    }
}

#[test]
fn plain_where_tls_is_expected_is_told_on_both_sides() {
    let bench = Bench::new();
    let plain = Mock::quick(&bench);
    let url = format!("https://127.0.0.1:{}", plain.address.port());
    run(&bench, &url, &["--insecure"]).exits(3).says("not TLS");
    let (_mock, url) = server(&bench, "server", "localhost", &[]);
    let plain = url.replace("https", "http");
    run(&bench, &plain, &[]).exits(4);
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["succeeded"], &phase["errors"]["bad_framing"]), (&0.into(), &40.into()));
    let said = phase["error_samples"][0]["message"].as_str().unwrap();
    assert!(said.contains("is this an https:// address?"), "{said}");
    bench.takt(&["probe", "--url", &plain]).exits(4).says("is this an https:// address?");
    bench.takt(&["probe", "--url", &plain, "--model", "m"]).exits(4).says("https:// address?");
}

#[test]
fn a_probe_speaks_tls_and_says_which() {
    let bench = Bench::new();
    let (_mock, url) = server(&bench, "server", "localhost", &[]);
    let ca = file("ca.pem");
    let done = bench.takt(&["probe", "--url", &url, "--cacert", &ca]).exits(0);
    assert!(done.stdout.contains("HTTP over TLS 1.3"), "{}", done.stdout);
    assert!(done.stdout.contains("kept, used again"), "{}", done.stdout);
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let bench = Bench::new();
    bench.file("no.pem", "hello\n");
    let url = "https://127.0.0.1:1";
    run(&bench, url, &["--cacert", "no.pem"]).exits(2).says("no.pem: holds no certificate");
    run(&bench, url, &["--cacert", "gone.pem"]).exits(2).says("gone.pem");
    let cert = file("client.pem");
    run(&bench, url, &["--cert", &cert, "--key", "no.pem"]).exits(2).says("no.pem");
    run(&bench, url, &["--cert", &cert]).exits(2).says("--key");
    run(&bench, "http://127.0.0.1:1", &["--insecure"])
        .exits(2)
        .says("no address begins with https");
    let (wrong_key, key) = (file("self.key"), file("server.pem"));
    let args = ["mock", "--listen", "127.0.0.1:0", "--tls-cert", &key, "--tls-key", &wrong_key];
    bench.takt(&args).exits(2).says("certificate and key cannot be used");
}

#[test]
fn paths_of_certificates_are_relative_to_the_file_that_names_them_and_written_whole() {
    let bench = Bench::new();
    let (_mock, url) = server(&bench, "server", "localhost", &[]);
    std::fs::create_dir(bench.path("in")).unwrap();
    std::fs::copy(file("ca.pem"), bench.path("in/ca.pem")).unwrap();
    bench.file(
        "in/run.yaml",
        &format!(
            "endpoint: {{url: '{url}', model: m}}\nconnections: {{tls: {{ca: ca.pem}}}}\n\
             phases: [{{name: p, requests: 4, load: {{pattern: concurrency, target_concurrency: 1}}}}]\n"
        ),
    );
    bench.takt(&["run", "in/run.yaml", "--out", "out"]).exits(0);
    let config: Value = bench.result()["config"].clone();
    let ca = config["connections"]["tls"]["ca"].as_str().unwrap().to_owned();
    assert!(Path::new(&ca).is_absolute(), "{ca}");
    bench.takt(&["run", "out/config.yaml", "--out", "again"]).exits(0);
}
