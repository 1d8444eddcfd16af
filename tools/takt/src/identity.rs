//! Who this run is: its ids, its time, its machine.

use std::io;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use takt_time::Anchor;

/// The identity of a run.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// 32 hex characters.
    pub(crate) session_id: String,
    /// RFC 3339, UTC.
    pub(crate) started_at: String,
    /// The same, fit for a file's name.
    pub(crate) stamp: String,
}

impl Identity {
    /// A new one, at the moment of `anchor`.
    ///
    /// # Errors
    /// When the operating system has no random numbers.
    pub(crate) fn new(anchor: Anchor) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let number = u128::from_le_bytes(random);
        let wall = SystemTime::UNIX_EPOCH + Duration::from_nanos(anchor.wall_ns);
        let seconds = humantime::format_rfc3339_seconds(wall).to_string();
        Ok(Self {
            session_id: format!("{number:032x}"),
            started_at: humantime::format_rfc3339_millis(wall).to_string(),
            stamp: seconds.chars().filter(char::is_ascii_alphanumeric).collect(),
        })
    }
}

/// What is known of the machine.
pub(crate) fn host() -> Value {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned())
    };
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches(['\t', ' ', ':']).to_owned());
    json!({
        "name": read("/proc/sys/kernel/hostname"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "architecture": std::env::consts::ARCH,
        "cpu": model,
        "cores_allowed": takt_net::affinity::allowed().ok(),
        "ephemeral_ports": takt_net::limits::ephemeral_ports()
            .map(|ports| [*ports.start(), *ports.end()]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_stamped_with_its_wall_clock_and_no_two_share_an_id() {
        // 2001-09-09T01:46:40Z is a billion seconds after the epoch.
        let anchor = Anchor { wall_ns: 1_000_000_000_250_000_000, ..Anchor::default() };
        let (one, two) = (Identity::new(anchor).unwrap(), Identity::new(anchor).unwrap());
        assert_eq!(one.started_at, "2001-09-09T01:46:40.250Z");
        assert_eq!(one.stamp, "20010909T014640Z");
        assert_eq!(one.session_id.len(), 32);
        assert_ne!(one.session_id, two.session_id);
    }
}
