//! The flags of `takt run` put into the tree of the configuration, each at the key that it stands for.

use std::path::Path;

use anyhow::bail;
use takt_dataset::ConversationFormat;

use crate::cli::{Arrivals, EndpointArgs, RunArgs};
use crate::config::{self, Config, ConfigError, Key, Node, Origin, Value};

/// The configuration that file, flags and `--set` add up to, in this order of precedence from low to
/// high.
pub(crate) fn configuration(args: &RunArgs) -> anyhow::Result<Config> {
    let mut tree = match &args.config {
        Some(path) => config::read_file(path)?,
        None => Node::map(),
    };
    put_endpoint(&mut tree, &args.endpoint)?;
    put_flags(&mut tree, args)?;
    put_phases(&mut tree, args)?;
    for argument in &args.set {
        config::apply_set(&mut tree, argument)?;
    }
    let name = args.config.as_ref().map_or("run".to_owned(), |path| stem(path));
    Ok(Config::read(&tree, &name)?)
}

/// The configuration that a file and `--set` add up to.
pub(crate) fn from_file(path: &Path, set: &[String]) -> anyhow::Result<Config> {
    let mut tree = config::read_file(path)?;
    for argument in set {
        config::apply_set(&mut tree, argument)?;
    }
    Ok(Config::read(&tree, &stem(path))?)
}

/// The name of a run whose file gives none.
fn stem(path: &Path) -> String {
    path.file_stem().map_or("run".into(), |stem| stem.to_string_lossy()).into_owned()
}

fn put_flags(tree: &mut Node, args: &RunArgs) -> anyhow::Result<()> {
    let mut text = |flag: &'static str, path: &[&str], value: Option<&str>| match value {
        Some(value) => config::put(tree, path, Node::text(value, Origin::Flag(flag))),
        None => Ok(()),
    };
    text("--wait", &["engine", "wait"], args.wait.as_deref())?;
    text("--order", &["order"], args.order.as_deref())?;
    text("--rng", &["rng"], args.rng.as_deref())?;
    text("--dataset-format", &["dataset", "format"], args.dataset_format.as_deref())?;
    text("--name", &["name"], args.name.as_deref())?;
    text("--request-timeout", &["limits", "request_timeout"], args.request_timeout.as_deref())?;
    text("--prompt-column", &["dataset", "prompt"], args.prompt_column.as_deref())?;
    if let Some(path) = &args.dataset {
        let Some(path) = path.to_str() else { bail!("--dataset: the path is not UTF-8") };
        text("--dataset", &["dataset", "path"], Some(path))?;
    }
    for (flag, key, path) in
        [("--opprof", "records", &args.opprof), ("--opprof-traces", "traces", &args.opprof_traces)]
    {
        let Some(path) = path else { continue };
        let Some(path) = path.to_str() else { bail!("{flag}: the path is not UTF-8") };
        text(flag, &["opprof", key], Some(path))?;
    }
    let mut put = |flag: &'static str, path: &[&str], value: Value| {
        config::put(tree, path, Node::new(value, Origin::Flag(flag)))
    };
    if let Some(windows) = args.opprof_windows {
        put("--opprof-windows", &["opprof", "windows"], Value::Number(windows.into()))?;
    }
    if args.stream || args.no_stream {
        let flag = if args.stream { "--stream" } else { "--no-stream" };
        put(flag, &["endpoint", "stream"], Value::Bool(args.stream))?;
    }
    if let Some(max) = args.max_connections {
        put("--max-connections", &["connections", "max"], Value::Number(max.into()))?;
    }
    if let Some(seed) = args.seed {
        put("--seed", &["seed"], Value::Number(seed.into()))?;
    }
    if let Some(core) = args.core {
        put("--core", &["engine", "core"], Value::Number(core.into()))?;
    }
    put_slo(tree, &args.slo)
}

/// The flags about the endpoint, which several commands have.
pub(crate) fn put_endpoint(tree: &mut Node, args: &EndpointArgs) -> anyhow::Result<()> {
    let mut text = |flag: &'static str, path: &[&str], value: Option<&str>| match value {
        Some(value) => config::put(tree, path, Node::text(value, Origin::Flag(flag))),
        None => Ok(()),
    };
    text("--api", &["endpoint", "api"], args.api.as_deref())?;
    text("--model", &["endpoint", "model"], args.model.as_deref())?;
    if let Some(path) = &args.api_key_file {
        let Some(path) = path.to_str() else { bail!("--api-key-file: the path is not UTF-8") };
        let at = Origin::Flag("--api-key-file");
        let file = map(vec![("file", Node::text(path, at.clone()))], &at);
        config::put(tree, &["endpoint", "api_key"], file)?;
    }
    let mut put = |flag: &'static str, path: &[&str], value: Value| {
        config::put(tree, path, Node::new(value, Origin::Flag(flag)))
    };
    if !args.url.is_empty() {
        let at = Origin::Flag("--url");
        let urls = args.url.iter().map(|url| Node::text(url, at.clone())).collect();
        put("--url", &["endpoint", "url"], Value::List(urls))?;
    }
    for (flag, key, file) in [
        ("--cacert", "ca", &args.cacert),
        ("--cert", "cert", &args.cert),
        ("--key", "key", &args.key),
    ] {
        let Some(path) = file else { continue };
        let Some(path) = path.to_str() else { bail!("{flag}: the path is not UTF-8") };
        put(flag, &["connections", "tls", key], Value::Text(path.to_owned()))?;
    }
    if args.insecure {
        put("--insecure", &["connections", "tls", "insecure"], Value::Bool(true))?;
    }
    if let Some(variable) = &args.api_key_env {
        let Some(key) = config::environment(variable) else {
            // People give the key itself, which is not to be shown then.
            if is_plain_name(variable) {
                bail!("--api-key-env: the variable {variable} is not set");
            }
            bail!("--api-key-env: takes the name of a variable, such as OPENAI_API_KEY, not a key");
        };
        put("--api-key-env", &["endpoint", "api_key"], Value::Text(key))?;
    }
    if let Some(json) = &args.extra_body {
        // The text is not shown: it may hold anything.
        let Ok(body @ serde_json::Value::Object(_)) = serde_json::from_str(json) else {
            bail!("--extra-body: is no JSON object; write '{{\"max_tokens\": 128}}'");
        };
        let at = Origin::Flag("--extra-body");
        config::put(tree, &["endpoint", "extra_body"], Node::from_json(body, &at))?;
    }
    put_headers(tree, &args.header)
}

/// Whether this is how variables are called, rather than a secret.
fn is_plain_name(text: &str) -> bool {
    let usual = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.contains('_') && text.chars().all(usual)
}

/// `METRIC=MS` is for each request, `METRIC.pN=MS` for a percentile of a phase.
fn put_slo(tree: &mut Node, objectives: &[String]) -> anyhow::Result<()> {
    for objective in objectives {
        let at = Origin::Flag("--slo");
        let Some((name, limit)) = objective.split_once('=') else {
            bail!("--slo: write METRIC=MS, such as ttft_ms.p99=500");
        };
        let limit = Node::from_argument(limit, &at)?;
        match name.trim().split_once('.') {
            Some((metric, percentile)) => config::put(tree, &["slo", metric, percentile], limit)?,
            None => config::put(tree, &["slo", name.trim()], limit)?,
        }
    }
    Ok(())
}

/// Headers given as flags take the place of those of the same name in the file.
fn put_headers(tree: &mut Node, headers: &[String]) -> anyhow::Result<()> {
    let at = Origin::Flag("--header");
    let mut given: Vec<(String, Vec<Node>)> = Vec::new();
    for header in headers {
        let Some((name, value)) = header.split_once(':') else {
            bail!("--header: write NAME: VALUE, such as 'X-Team: perf'");
        };
        let value = Node::text(value.trim(), at.clone());
        match given.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name.trim())) {
            Some((_, values)) => values.push(value),
            None => given.push((name.trim().to_owned(), vec![value])),
        }
    }
    for (name, values) in given {
        let values = Node::new(Value::List(values), at.clone());
        let name = in_file(tree, &name).unwrap_or(name);
        config::put(tree, &["endpoint", "headers", &name], values)?;
    }
    Ok(())
}

/// The header of this name as the file spells it.
fn in_file(tree: &Node, name: &str) -> Option<String> {
    let Value::Map(headers) = &tree.get("endpoint")?.get("headers")?.value else { return None };
    let found = headers.iter().find(|(key, _)| key.name.eq_ignore_ascii_case(name));
    found.map(|(key, _)| key.name.clone())
}

/// The phases that the load flags stand for: one that is measured, and before it a warm-up if asked for.
fn put_phases(tree: &mut Node, args: &RunArgs) -> anyhow::Result<()> {
    let of_rate = [
        ("--arrivals", args.arrivals.is_some(), "spaces the sends of --rate, which is not given"),
        ("--ramp-to", args.ramp_to.is_some(), "goes on from --rate, which is not given"),
        ("--burstiness", args.burstiness.is_some(), "is for --rate with --arrivals gamma"),
    ];
    let stray = of_rate.iter().find(|(_, given, _)| *given && args.rate.is_none());
    if let Some((flag, _, why)) = stray {
        return Err(ConfigError::new(Origin::Flag(flag), "", *why).into());
    }
    if args.history.is_some()
        && args.concurrency.is_none()
        && (args.rate.is_none() || args.ramp_to.is_some())
    {
        let why = "is for conversations, which --concurrency keeps active or --rate has arrive";
        return Err(ConfigError::new(Origin::Flag("--history"), "", why).into());
    }
    let Some((flag, load)) = load(tree, args) else {
        let stray = [
            ("--requests", args.requests.is_some()),
            ("--duration", args.duration.is_some()),
            ("--warmup-requests", args.warmup_requests.is_some()),
        ];
        if let Some((flag, _)) = stray.iter().find(|(_, given)| *given) {
            let why = if tree.get("phases").is_some() {
                "the file has phases of its own; use --set phases.NAME.requests=N"
            } else {
                "goes with --rate, --replay, --concurrency or --max-throughput, and one of them is \
                 required"
            };
            return Err(ConfigError::new(Origin::Flag(flag), "", why).into());
        }
        return Ok(());
    };
    if tree.get("phases").is_some_and(|phases| !phases.is_null()) {
        let why = "the file has phases of its own; change one with --set phases.NAME.load.rate=50";
        return Err(ConfigError::new(Origin::Flag(flag), "", why).into());
    }
    let mut phases = Vec::new();
    if let Some(requests) = args.warmup_requests {
        let at = Origin::Flag("--warmup-requests");
        let requests = Node::new(Value::Number(requests.into()), at.clone());
        phases.push(phase("warmup", &warmup(args, &load), vec![("requests", requests)], &at));
    }
    let at = Origin::Flag(flag);
    let mut stop = Vec::new();
    if let Some(requests) = args.requests {
        let at = Origin::Flag("--requests");
        stop.push(("requests", Node::new(Value::Number(requests.into()), at)));
    }
    if let Some(duration) = &args.duration {
        stop.push(("duration", Node::text(duration, Origin::Flag("--duration"))));
    }
    phases.push(phase("performance", &load, stop, &at));
    Ok(config::put(tree, &["phases"], Node::new(Value::List(phases), at))?)
}

/// The load before the one that is measured: the same, but a ramp's rate stays where it begins (or, when
/// that is nothing, where it ends).
fn warmup(args: &RunArgs, load: &Node) -> Node {
    match (args.rate, args.ramp_to) {
        (Some(rate), Some(to)) => open_loop(args, if rate == 0.0 { to } else { rate }),
        _ => load.clone(),
    }
}

/// The load of --rate and --arrivals.
fn open_loop(args: &RunArgs, rate: f64) -> Node {
    let at = Origin::Flag("--rate");
    let pattern = args.arrivals.unwrap_or(Arrivals::Poisson).word();
    let mut keys = vec![
        ("pattern", Node::text(pattern, at.clone())),
        ("rate", Node::new(number(rate), at.clone())),
    ];
    keys.extend(args.burstiness.map(burstiness));
    map(keys, &at)
}

fn ramp(args: &RunArgs, from: f64, to: f64) -> Node {
    let at = Origin::Flag("--ramp-to");
    let mut keys = vec![
        ("pattern", Node::text("ramp", at.clone())),
        ("rate", Node::new(number(from), Origin::Flag("--rate"))),
        ("rate_to", Node::new(number(to), at.clone())),
    ];
    keys.extend(args.arrivals.map(arrivals));
    keys.extend(args.burstiness.map(burstiness));
    map(keys, &at)
}

fn arrivals(arrivals: Arrivals) -> (&'static str, Node) {
    ("arrivals", Node::text(arrivals.word(), Origin::Flag("--arrivals")))
}

/// Whether conversations are asked for: by the format of the dataset, or by --history.
fn talks(tree: &Node, args: &RunArgs) -> bool {
    let format = || match &tree.get("dataset")?.get("format")?.value {
        Value::Text(format) => Some(format),
        _ => None,
    };
    let known = |format: &String| ConversationFormat::ALL.iter().any(|of| of.name() == format);
    args.history.is_some() || format().is_some_and(known)
}

/// Conversations: `key` says what begins one.
fn agentic(args: &RunArgs, key: &str, value: Value, at: &Origin) -> Node {
    let mut keys =
        vec![("pattern", Node::text("agentic", at.clone())), (key, Node::new(value, at.clone()))];
    if let Some(history) = args.history {
        keys.push(("history", Node::text(history.word(), Origin::Flag("--history"))));
    }
    map(keys, at)
}

fn burstiness(value: f64) -> (&'static str, Node) {
    ("burstiness", Node::new(number(value), Origin::Flag("--burstiness")))
}

/// A number as the file would have it; one that YAML has not is text, which is refused as such.
fn number(value: f64) -> Value {
    let number = serde_json::Number::from_f64(value);
    number.map_or_else(|| Value::Text(value.to_string()), Value::Number)
}

fn load(tree: &Node, args: &RunArgs) -> Option<(&'static str, Node)> {
    if let Some(rate) = args.rate {
        if talks(tree, args) && args.ramp_to.is_none() {
            let at = Origin::Flag("--rate");
            let mut load = agentic(args, "rate", number(rate), &at);
            if let Value::Map(keys) = &mut load.value {
                let mut more: Vec<(&str, Node)> = Vec::new();
                more.extend(args.arrivals.map(arrivals));
                more.extend(args.burstiness.map(burstiness));
                keys.extend(more.into_iter().map(|(name, node)| {
                    (Key { name: name.to_owned(), at: node.at.clone() }, node)
                }));
            }
            return Some(("--rate", load));
        }
        return Some(match args.ramp_to {
            Some(to) => ("--rate", ramp(args, rate, to)),
            None => ("--rate", open_loop(args, rate)),
        });
    }
    let (flag, pattern, value) = if let Some(speed) = args.replay {
        ("--replay", "trace", Some(("speed", number(speed))))
    } else if let Some(target) = args.concurrency {
        let target = Value::Number(target.into());
        ("--concurrency", "concurrency", Some(("target_concurrency", target)))
    } else if args.max_throughput {
        ("--max-throughput", "max_throughput", None)
    } else {
        return None;
    };
    let at = Origin::Flag(flag);
    if pattern == "concurrency" && talks(tree, args) {
        let value = value.map(|(_, value)| value);
        return Some((flag, agentic(args, "target_concurrency", value?, &at)));
    }
    let mut keys = vec![("pattern", Node::text(pattern, at.clone()))];
    keys.extend(value.map(|(key, value)| (key, Node::new(value, at.clone()))));
    Some((flag, map(keys, &at)))
}

/// A phase that is called what it is.
fn phase(kind: &str, load: &Node, rest: Vec<(&str, Node)>, at: &Origin) -> Node {
    let mut keys = vec![
        ("name", Node::text(kind, at.clone())),
        ("type", Node::text(kind, at.clone())),
        ("load", load.clone()),
    ];
    keys.extend(rest);
    map(keys, at)
}

fn map(keys: Vec<(&str, Node)>, at: &Origin) -> Node {
    let entries =
        keys.into_iter().map(|(name, node)| (Key { name: name.to_owned(), at: at.clone() }, node));
    Node::new(Value::Map(entries.collect()), at.clone())
}
