//! The control socket of a run: a unix socket that takes one word a line and gives one line back.
//!
//! | word | what it does | answer |
//! | --- | --- | --- |
//! | `stop` | as one Ctrl-C: no more requests, those in flight are waited for | `stopping`, or `stopping already` |
//! | `status` | nothing | the running phase as JSON, a quarter of a second old at the most |
//!
//! A thread of its own serves it, one peer at a time. The reactor hears of a stop as of a signal.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use takt_report::Live;

use crate::cli::StopArgs;
use crate::exit::{Exit, Failure};
use crate::outcome;
use crate::socket_file::SocketFile;

/// The socket, bound and not yet served. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    _file: SocketFile,
    status: Status,
}

/// The running phase, for whoever asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status(Arc<Mutex<Option<Live>>>);

impl Control {
    /// Binds `path`. A socket that a killed run has left there is taken over.
    pub(crate) fn bind(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            let says = format!("the control socket {}: {error}", path.display());
            Failure::says(Exit::Setup, says)
        };
        let file = SocketFile::claim(path).map_err(cannot)?;
        let listener = UnixListener::bind(path).map_err(cannot)?;
        Ok(Self { listener, _file: file, status: Status::default() })
    }

    /// Where the state of the run is to be put.
    pub(crate) fn status(&self) -> Status {
        self.status.clone()
    }

    /// Serves the socket from now on. `stop` stops the run and says whether it was running freely.
    pub(crate) fn serve(&self, stop: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
        let (listener, status) = (self.listener.try_clone()?, self.status());
        thread::Builder::new().name("takt-control".to_owned()).spawn(move || {
            // When that fails the thread shares a core, and hardly ever runs.
            let _ = takt_net::affinity::unpinned();
            for peer in listener.incoming().flatten() {
                // A peer that breaks off has its own reasons.
                let _ = serve(&peer, &status, &stop);
            }
        })?;
        Ok(())
    }
}

impl Status {
    /// How the run stands now.
    pub(crate) fn set(&self, live: Option<Live>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    fn line(&self) -> String {
        let live = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(live) = live else { return json!({"phase": null}).to_string() };
        let ms = |span: takt_time::Span| span.as_secs_f64() * 1e3;
        let latency = live.latencies.p50_p99();
        json!({
            "phase": live.phase,
            "place": live.place,
            "over": live.over,
            "elapsed_s": live.elapsed.as_secs_f64(),
            "issued": live.issued,
            "planned": live.planned,
            "completed": live.completed,
            "failed": live.failed,
            "unanswered": live.unanswered,
            "in_flight": live.in_flight,
            "completed_per_s": live.rate_per_s,
            "latency_p50_ms": latency.map(|(p50, _)| ms(p50)),
            "latency_p99_ms": latency.map(|(_, p99)| ms(p99)),
        })
        .to_string()
    }
}

fn serve(peer: &UnixStream, status: &Status, stop: &impl Fn() -> bool) -> io::Result<()> {
    peer.set_read_timeout(Some(PEER_PATIENCE))?;
    peer.set_write_timeout(Some(PEER_PATIENCE))?;
    let mut lines = BufReader::new(peer.take(PEER_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let mut answer = answer(&String::from_utf8_lossy(&line), status, stop);
        answer.push('\n');
        (&*peer).write_all(answer.as_bytes())?;
    }
}

fn answer(line: &str, status: &Status, stop: &impl Fn() -> bool) -> String {
    match line.trim() {
        "stop" if stop() => "stopping".to_owned(),
        "stop" => "stopping already".to_owned(),
        "status" => status.line(),
        other => {
            let shown: String = other.chars().take(SHOWN_CHARS).collect();
            format!("error: `{}` is not known; known are: stop, status", shown.escape_debug())
        }
    }
}

/// `takt stop`
pub(crate) fn stop(args: &StopArgs) -> Result<Exit, Failure> {
    let word = if args.status { "status" } else { "stop" };
    let path = args.socket.strip_prefix("unix:").unwrap_or(&args.socket);
    let ask = || -> io::Result<String> {
        let mut peer = UnixStream::connect(path)?;
        peer.write_all(format!("{word}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(&peer).read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|error| {
        let says = format!("{path}: {error}; is a run with `control: {path}` going on?");
        Failure::says(Exit::Setup, says)
    })?;
    outcome::print(&answer)?;
    Ok(Exit::Done)
}

/// How long a peer may be silent or deaf.
const PEER_PATIENCE: Duration = Duration::from_secs(2);
/// What a peer may send in all.
const PEER_BYTES_MAX: u64 = 64 << 10;
/// Of a word that is not known, this much is said back.
const SHOWN_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_is_told_those_that_are() {
        let status = Status::default();
        let says = |line: &str| answer(line, &status, &|| true);
        assert_eq!(says("stop\n"), "stopping");
        assert_eq!(says("status\n"), r#"{"phase":null}"#);
        for line in ["STOP", "", "halt\u{1b}", "stop now"] {
            let answer = says(line);
            assert!(answer.ends_with("is not known; known are: stop, status"), "{answer}");
            assert!(!answer.contains('\u{1b}'));
        }
        assert_eq!(answer("stop", &status, &|| false), "stopping already");
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_over_and_one_in_use_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("c.sock");
        drop(UnixListener::bind(&path).unwrap());
        let control = Control::bind(&path).unwrap();
        assert_eq!(Control::bind(&path).unwrap_err().exit, Exit::Setup);
        drop(control);
        assert!(!path.exists());
        std::fs::write(&path, "a file").unwrap();
        assert_eq!(Control::bind(&path).unwrap_err().exit, Exit::Setup, "files are left alone");
    }
}
