//! What a server says of itself: version, models, configuration, and its log's lines about back ends.

use std::path::Path;

use anyhow::Context as _;
use regex::Regex;
use serde_json::{Map, Value};
use takt_wire::PreparedRequest;

use super::super::files;
use crate::config::without_secrets;
use crate::exit::Failure;
use crate::probe::Line;

/// Asks; what is not answered is null.
pub(super) fn describe(
    line: &mut Line,
    request: impl Fn(&str) -> Result<PreparedRequest, Failure>,
) -> Result<Value, Failure> {
    let mut found = Map::new();
    for (name, path) in [
        ("version", "version"),
        ("models", "v1/models"),
        ("info", "server_info?config_format=json"),
    ] {
        let answer = line.fetch(&request(path)?);
        let body = answer.ok().filter(|(status, _)| *status == 200).map(|(_, body)| body);
        let value = body.and_then(|body| serde_json::from_slice(&body).ok());
        found.insert(name.to_owned(), value.unwrap_or(Value::Null));
    }
    // Of the metrics only what describes: vLLM tells its cache there.
    let metrics = line.fetch(&request("metrics")?).ok().map(|(_, body)| body).unwrap_or_default();
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let info = metrics.lines().filter(|line| !line.starts_with('#') && line.contains("_info{"));
    found.insert("metrics".to_owned(), info.map(Value::from).collect());
    // A server tells its environment, and with it its keys.
    Ok(without_secrets(&found))
}

/// Adds the lines of a log that tell which back ends were chosen. Lines with a key in them are left out.
pub(super) fn add_log(server: &mut Value, path: &Path) -> anyhow::Result<()> {
    let text = files::read(path, LOG_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let wanted = Regex::new(WANTED).context("a fixed pattern")?;
    let secret = Regex::new(SECRET).context("a fixed pattern")?;
    let lines = text.lines().filter(|line| wanted.is_match(line) && !secret.is_match(line));
    server["log"] = lines.take(LOG_LINES_MAX).map(Value::from).collect();
    Ok(())
}

/// Ranks, where the server tells.
pub(super) fn ranks(server: &Value) -> Option<usize> {
    let tensor = number(server, "tensor_parallel_size")?;
    let pipeline = number(server, "pipeline_parallel_size").unwrap_or(1);
    usize::try_from(tensor.checked_mul(pipeline)?).ok().filter(|ranks| *ranks > 0)
}

/// What of its profiler's configuration does not work, where the server tells.
pub(super) fn remarks(server: &Value) -> Vec<String> {
    let mut remarks = Vec::new();
    for key in ["warmup_iterations", "wait_iterations"] {
        if number(server, key).is_some_and(|value| value > 0) {
            remarks.push(format!(
                "the server's profiler has {key} above 0: all windows but the first write nothing; restart it \
                 with 0"
            ));
        }
    }
    remarks
}

/// The first number under this key, at any depth.
fn number(value: &Value, key: &str) -> Option<u64> {
    match value {
        Value::Object(map) => map
            .get(key)
            .and_then(Value::as_u64)
            .or_else(|| map.values().find_map(|inner| number(inner, key))),
        Value::Array(list) => list.iter().find_map(|inner| number(inner, key)),
        _ => None,
    }
}

const WANTED: &str = "(?i)backend|attention|moe|quanti[sz]|cudagraph|parallel|non-default args";
const SECRET: &str = "(?i)api_?key|token=|password|secret";
const LOG_BYTES_MAX: u64 = 64 << 20;
const LOG_LINES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(info: &Value) -> Value {
        json!({"version": null, "info": info})
    }

    #[test]
    fn ranks_and_bad_settings_are_found_at_any_depth() {
        let server = told(&json!({"vllm_config": {
            "parallel_config": {"tensor_parallel_size": 2, "pipeline_parallel_size": 3},
            "profiler_config": {"warmup_iterations": 2, "wait_iterations": 0},
        }}));
        assert_eq!(ranks(&server), Some(6));
        assert!(remarks(&server)[0].contains("warmup_iterations above 0"));
        assert_eq!((ranks(&told(&Value::Null)), remarks(&told(&Value::Null)).len()), (None, 0));
    }

    #[test]
    fn keys_in_a_servers_environment_are_not_kept() {
        let told = json!({"info": {"vllm_env": {"VLLM_API_KEY": "hunter2", "VLLM_PORT": 1}}});
        let kept = without_secrets(told.as_object().unwrap());
        assert_eq!(kept["info"]["vllm_env"], json!({"VLLM_API_KEY": "<redacted>", "VLLM_PORT": 1}));
    }

    #[test]
    fn a_log_gives_its_back_ends_and_no_keys() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "INFO Using FlashAttention backend.\nINFO hello\nnon-default args: {'api_key': 'x', 'moe': 1}\n";
        std::fs::write(file.path(), text).unwrap();
        let mut server = told(&Value::Null);
        add_log(&mut server, file.path()).unwrap();
        assert_eq!(server["log"], json!(["INFO Using FlashAttention backend."]));
    }
}
