//! What the tests work with: a scratch folder to run `takt` in, servers, signals.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

/// A scratch folder.
pub(crate) struct Bench(tempfile::TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, contents: &str) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn takt(&self, args: &[&str]) -> Done {
        Done::from(self.command(args).output().unwrap())
    }

    /// `takt run` of these arguments, and some more, into the folder `out`.
    pub(crate) fn run(&self, server: &str, args: &[&str]) -> Done {
        let mut all = vec!["run", "--url", server, "--model", "m", "--out", "out"];
        all.extend(args);
        self.takt(&all)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn result(&self) -> Value {
        serde_json::from_str(&self.read("out/result.json")).unwrap()
    }
}

/// What a command left behind.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Asserts the exit code; says what was printed when it is another one.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that stderr has this in it.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in:\n{}", self.stderr);
        self
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// `takt mock` on a port of its own; killed when it is dropped.
pub(crate) struct Mock {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Mock {
    pub(crate) fn start(bench: &Bench, args: &[&str]) -> Self {
        let mut all = vec!["mock", "--listen", "127.0.0.1:0"];
        all.extend(args);
        let mut child = bench.command(&all).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        Self { child, address }
    }

    /// A server that answers within a few milliseconds.
    pub(crate) fn quick(bench: &Bench) -> Self {
        Self::start(bench, &["--ttft", "2ms", "--tpot", "1ms", "--tokens", "4"])
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn stop(mut self) -> i32 {
        signal(&self.child, "TERM");
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs, and can be sent signals.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    seen: String,
}

impl Running {
    pub(crate) fn start(bench: &Bench, args: &[&str]) -> Self {
        Self::of(bench.command(args))
    }

    /// The same after a line of shell, such as `trap '' INT`.
    pub(crate) fn start_after(bench: &Bench, line: &str, args: &[&str]) -> Self {
        let inner = bench.command(args);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{line}; exec \"$0\" \"$@\"")]);
        command.arg(inner.get_program()).args(inner.get_args());
        command.current_dir(bench.path("")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, seen: String::new() }
    }

    /// Waits for a line of stderr with this in it.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            let start = self.seen.len();
            let read = self.stderr.read_line(&mut self.seen).unwrap();
            assert!(read > 0, "stderr ended without `{text}`:\n{}", self.seen);
            if self.seen[start..].contains(text) {
                return;
            }
        }
    }

    /// Waits until the process has a handler of its own for SIGINT.
    pub(crate) fn wait_until_it_listens(&self) {
        let status = format!("/proc/{}/status", self.child.id());
        let caught = || {
            let text = std::fs::read_to_string(&status).unwrap();
            let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        // SIGINT is 2.
        while caught() >> 1 & 1 == 0 {
            thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// It has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it, if it still runs, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        // One that has ended needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ids of the processes that it has started.
    #[cfg(feature = "zmq")]
    pub(crate) fn children(&self) -> Vec<u32> {
        let parent = self.child.id().to_string();
        let is_child = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name in brackets: state, parent.
            let after = stat.rsplit(") ").next().unwrap_or_default();
            after.split(' ').nth(1) == Some(&parent)
        };
        let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(is_child).collect()
    }

    pub(crate) fn done(mut self) -> Done {
        let mut stdout = String::new();
        let mut out = self.child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            out.read_to_string(&mut stdout).unwrap();
            stdout
        });
        self.stderr.read_to_string(&mut self.seen).unwrap();
        let status = self.child.wait().unwrap();
        Done {
            code: status.code().unwrap_or(-1),
            stdout: reader.join().unwrap(),
            stderr: self.seen,
        }
    }
}

/// Kills a process that a run has started.
#[cfg(feature = "zmq")]
pub(crate) fn kill(process: u32) {
    let sent = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// An address where `free` more connections are taken and the next ones hang: the queue of a listener that
/// accepts nothing is full.
pub(crate) fn full(free: usize) -> (String, Vec<TcpStream>, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let patience = std::time::Duration::from_millis(300);
    let mut held = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, patience) {
        held.push(stream);
    }
    held.extend((0..free).map(|_| listener.accept().unwrap().0));
    (format!("http://{address}"), held, listener)
}

/// A server that answers every request with what `answer` makes of its bytes, and closes. Ends with the
/// test process.
pub(crate) fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve_one(stream, &answer);
        }
    });
    format!("http://{address}")
}

fn serve_one(mut stream: TcpStream, answer: &impl Fn(&str) -> String) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(more) => request.extend_from_slice(&buffer[..more]),
        }
        let text = String::from_utf8_lossy(&request);
        let Some(head) = text.find("\r\n\r\n") else { continue };
        let length = text
            .to_ascii_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
        if request.len() < head + 4 + length.unwrap_or(0) {
            continue;
        }
        // A client that has gone does not want it.
        let _ = stream.write_all(answer(&text).as_bytes());
        return;
    }
}

/// An answer with this status line's end, headers and body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// All files below `folder`, as bytes.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}
