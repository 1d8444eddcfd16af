//! What each client says of its run when it ends.
//!
//! A run with a failed request is no measurement, so each reader refuses one.

use anyhow::{Context, ensure};
use serde_json::Value;

/// What a client counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counted {
    /// Requests that succeeded.
    pub(super) requests: f64,
    /// The same a second, as the client counts seconds.
    pub(super) per_s: f64,
}

/// The line of JSON that `floor_client` prints.
pub(super) fn by_floor(said: &str) -> anyhow::Result<Counted> {
    let line: Value = serde_json::from_str(said)?;
    Ok(Counted { requests: number(&line, "requests")?, per_s: number(&line, "requests_per_s")? })
}

/// wrk's closing lines: `  621394 requests in 5.00s, …` and `Requests/sec: 124275.41`.
pub(super) fn by_wrk(said: &str) -> anyhow::Result<Counted> {
    for trouble in ["Non-2xx", "Socket errors"] {
        ensure!(!said.contains(trouble), "wrk had trouble");
    }
    let requests = said
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .and_then(|(n, _)| n.parse().ok())
        .context("no line `N requests in …`")?;
    let per_s = said
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"))
        .and_then(|n| n.trim().parse().ok())
        .context("no line `Requests/sec: …`")?;
    Ok(Counted { requests, per_s })
}

/// The last phase of takt's result.
pub(super) fn by_takt(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    let phase = result["phases"].as_array().and_then(|phases| phases.last()).context("no phase")?;
    for wrong in ["failed", "unanswered"] {
        ensure!(number(phase, wrong)? == 0.0, "takt had requests {wrong}");
    }
    // A run of one request has no rate.
    let per_s = phase["successful_per_s"].as_f64().unwrap_or(0.0);
    Ok(Counted { requests: number(phase, "succeeded")?, per_s })
}

/// What takt's result says of its figures: `valid`, `suspect` or `invalid`.
pub(super) fn verdict(result: &Value) -> &str {
    result["verdict"]["status"].as_str().unwrap_or("none")
}

/// oha's JSON. Requests in flight at the end of a run by time are its only errors.
pub(super) fn by_oha(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    let by_status = result["statusCodeDistribution"].as_object().context("no status codes")?;
    ensure!(by_status.keys().all(|status| status == "200"), "oha had answers other than 200");
    let errors = result["errorDistribution"].as_object().context("no errors, not even none")?;
    let only = "aborted due to deadline";
    ensure!(errors.keys().all(|error| error == only), "oha had errors: {errors:?}");
    let requests = by_status.values().filter_map(Value::as_f64).sum();
    let total_s = number(&result["summary"], "total")?;
    Ok(Counted { requests, per_s: requests / total_s })
}

/// The file that `vllm bench serve --save-result` writes.
pub(super) fn by_vllm(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    ensure!(number(&result, "failed")? == 0.0, "vllm had requests failed");
    let requests = number(&result, "completed")?;
    Ok(Counted { requests, per_s: number(&result, "request_throughput")? })
}

/// aiperf's `profile_export_aiperf.json`.
pub(super) fn by_aiperf(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    // Absent when there was none.
    let failed = result["error_request_count"]["avg"].as_f64().unwrap_or(0.0);
    ensure!(failed == 0.0, "aiperf had requests failed");
    let requests = number(&result["request_count"], "avg")?;
    Ok(Counted { requests, per_s: number(&result["request_throughput"], "avg")? })
}

/// guidellm's report as JSON, of one benchmark.
pub(super) fn by_guidellm(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    let metrics = &result["benchmarks"][0]["metrics"];
    for wrong in ["errored", "incomplete"] {
        ensure!(number(&metrics["request_totals"], wrong)? == 0.0, "guidellm had {wrong} requests");
    }
    let requests = number(&metrics["request_totals"], "successful")?;
    let per_s = number(&metrics["requests_per_second"]["successful"], "mean")?;
    Ok(Counted { requests, per_s })
}

/// Answers with status 200 so far, in the `/metrics` page of `takt mock`; none are not listed.
pub(super) fn by_mock(page: &str) -> anyhow::Result<u64> {
    ensure!(page.contains("takt_mock_requests_total"), "no page of metrics: {page}");
    let line = "takt_mock_requests_total{status=\"200\"} ";
    let count = page.lines().find_map(|text| text.strip_prefix(line));
    count.map_or(Ok(0), |count| count.trim().parse().context("the server's count"))
}

fn number(object: &Value, key: &str) -> anyhow::Result<f64> {
    object[key].as_f64().with_context(|| format!("no number `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(requests: f64, per_s: f64) -> Counted {
        Counted { requests, per_s }
    }

    #[test]
    fn wrk_is_read_from_its_closing_lines() {
        let said = "Running 5s test\n  621394 requests in 5.00s, 118.52MB read\n\
                    Requests/sec: 124275.41\nTransfer/sec:     23.70MB\n";
        assert_eq!(by_wrk(said).unwrap(), counted(621_394.0, 124_275.41));
        assert!(by_wrk(&format!("{said}  Non-2xx or 3xx responses: 1\n")).is_err());
    }

    #[test]
    fn takt_is_read_from_its_last_phase() {
        let phase = |failed: u32| {
            format!(
                "{{\"phases\":[{{}},{{\"succeeded\":10,\"failed\":{failed},\"unanswered\":0,\
                 \"successful_per_s\":5.0}}]}}"
            )
        };
        assert_eq!(by_takt(&phase(0)).unwrap(), counted(10.0, 5.0));
        assert!(by_takt(&phase(1)).is_err());
    }

    #[test]
    fn oha_may_give_up_what_is_in_flight_at_the_end_and_nothing_else() {
        let said = |status: &str, error: &str| {
            format!(
                r#"{{"summary":{{"successRate":1.0,"total":2.0,"requestsPerSec":9.0}},
                "statusCodeDistribution":{{"{status}":16}},"errorDistribution":{{{error}}}}}"#
            )
        };
        assert_eq!(by_oha(&said("200", "")).unwrap(), counted(16.0, 8.0));
        assert!(by_oha(&said("200", r#""aborted due to deadline":2"#)).is_ok());
        assert!(by_oha(&said("200", r#""connection closed":2"#)).is_err());
        assert!(by_oha(&said("404", "")).is_err());
    }

    #[test]
    fn the_python_clients_are_read_from_their_files() {
        let vllm = |failed| {
            format!(r#"{{"completed":200,"failed":{failed},"request_throughput":241.25}}"#)
        };
        assert_eq!(by_vllm(&vllm(0)).unwrap(), counted(200.0, 241.25));
        assert!(by_vllm(&vllm(1)).is_err());

        let aiperf = |more: &str| {
            format!(
                r#"{{"request_count":{{"unit":"requests","avg":200.0}},
                "request_throughput":{{"unit":"requests/sec","avg":86.5}}{more}}}"#
            )
        };
        assert_eq!(by_aiperf(&aiperf("")).unwrap(), counted(200.0, 86.5));
        assert!(by_aiperf(&aiperf(r#","error_request_count":{"avg":1.0}"#)).is_err());

        let guidellm = |errored| {
            format!(
                r#"{{"benchmarks":[{{"metrics":{{"request_totals":{{"successful":200,
                "errored":{errored},"incomplete":0,"total":200}},
                "requests_per_second":{{"successful":{{"mean":63.0}}}}}}}}]}}"#
            )
        };
        assert_eq!(by_guidellm(&guidellm(0)).unwrap(), counted(200.0, 63.0));
        assert!(by_guidellm(&guidellm(3)).is_err());
    }

    #[test]
    fn the_server_counts_what_it_answered_with_200() {
        let page = "# TYPE takt_mock_requests_total counter\n\
                    takt_mock_requests_total{status=\"200\"} 205\n\
                    takt_mock_requests_total{status=\"404\"} 1\n";
        assert_eq!(by_mock(page).unwrap(), 205);
        assert_eq!(by_mock("# TYPE takt_mock_requests_total counter\n").unwrap(), 0);
        assert!(by_mock("nothing of the kind").is_err());
    }
}
