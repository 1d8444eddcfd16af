//! The flags of the side-by-side runs.

use anyhow::bail;

use super::client::ClientKind;
use super::flags;
use super::server::ServerKind;

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench wrk|server [flags] [-- further flags of `takt run`]

  --rounds N        rounds that must count; disturbed ones are repeated (5)
  --seconds S       how long each program runs (5)
  --connections N   connections of each client (64)
  --clients LIST    of wrk, oha, takt; in this order in each round (wrk,oha,takt);
                    one that is not installed is left out, and said so
  --server KIND     mock (`takt mock --mode instant`) or floor (mock)
  --oha FILE        or TAKT_BENCH_OHA: where oha is (oha on the path)
  --api API         what takt speaks (openai-chat)
  --wait MODE       takt's wait mode (guard)
  --port PORT       where the server listens on 127.0.0.1 (18800)
  --patience S      how long to wait for the machine to be quiet (60)
  --no-build        measure what is in target/release";

/// What to run, how long, and against what.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) rounds: usize,
    pub(super) seconds: u32,
    pub(super) connections: u32,
    pub(super) clients: Vec<ClientKind>,
    pub(super) oha: Option<String>,
    pub(super) server: ServerKind,
    pub(super) api: String,
    pub(super) wait: String,
    pub(super) port: u16,
    pub(super) patience: u32,
    pub(super) build: bool,
    pub(super) takt_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rounds: 5,
            seconds: 5,
            connections: 64,
            clients: vec![ClientKind::Wrk, ClientKind::Oha, ClientKind::Takt],
            oha: None,
            server: ServerKind::Mock,
            api: "openai-chat".into(),
            wait: "guard".into(),
            port: 18800,
            patience: 60,
            build: true,
            takt_flags: Vec::new(),
        }
    }
}

impl Options {
    /// Reads the words after `bench wrk`; `variable` looks up the environment.
    pub(super) fn read(
        words: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut options = Self { oha: variable("TAKT_BENCH_OHA"), ..Self::default() };
        let rest = flags::read(words, |name, value| options.set(name, value))?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--rounds" => self.rounds = flags::positive(value)?,
            "--seconds" => self.seconds = flags::positive(value)?,
            "--connections" => self.connections = flags::positive(value)?,
            "--clients" => {
                self.clients =
                    value.split(',').map(ClientKind::named).collect::<anyhow::Result<_>>()?;
            }
            "--oha" => self.oha = Some(value.to_owned()),
            "--server" => self.server = ServerKind::named(value)?,
            "--api" => value.clone_into(&mut self.api),
            "--wait" => value.clone_into(&mut self.wait),
            "--port" => self.port = value.parse()?,
            "--patience" => self.patience = value.parse()?,
            _ => bail!("no such flag\n\n{USAGE}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&words, |name| (name == "TAKT_BENCH_OHA").then(|| "/env/oha".to_owned()))
    }

    #[test]
    fn flags_set_what_they_name_and_the_rest_goes_to_takt() {
        let options =
            read("--rounds 3 --clients takt --server floor --no-build -- --core 0").unwrap();
        assert_eq!(options.rounds, 3);
        assert_eq!(options.clients, [ClientKind::Takt]);
        assert_eq!(options.server, ServerKind::Floor);
        assert!(!options.build);
        assert_eq!(options.oha.as_deref(), Some("/env/oha"));
        assert_eq!(read("--oha /flag/oha").unwrap().oha.as_deref(), Some("/flag/oha"));
        assert_eq!(options.takt_flags, ["--core", "0"]);
    }

    #[test]
    fn what_is_unknown_is_refused() {
        assert!(read("--round 3").is_err());
        assert!(read("--rounds many").is_err());
        assert!(read("--rounds 0").is_err());
        assert!(read("--clients curl").is_err());
        assert!(read("--rounds").is_err());
    }
}
