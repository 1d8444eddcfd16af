//! What the instrument says of itself, as a record.

use takt_engine::{Context, HostCounts, TurnStats};
use takt_record::{Health, Record, Wakes, Work};
use takt_time::Nanos;

use super::Session;
use crate::api::TransportCounters;

impl Session {
    /// Records a reading of all counters.
    pub(super) fn record_health(&mut self, at: Nanos, cx: &Context<'_, Self>) {
        let (stats, published) = (cx.stats(), self.link.publisher.counters());
        let transport = self.link.issuer.counters();
        let mut health = Health {
            at,
            busy: stats.busy,
            turns: stats.turns,
            longest_turn: stats.longest_turn,
            timers: stats.timers,
            ready: stats.ready,
            messages: stats.messages,
            spilled: published.spilled,
            lost: published.lost,
            connections: transport.connections,
            limited: transport.limited,
            secured: transport.secured,
            resumed: transport.resumed,
            work: Some(work(stats, cx.host_counts(), transport)),
            ..Health::default()
        };
        (self.probe)(&mut health);
        self.link.publisher.push(&Record::Health(health));
    }
}

/// The reactor's own account, as a reading of its health has it.
fn work(stats: &TurnStats, host: HostCounts, transport: TransportCounters) -> Work {
    let (woken, sampled, unread) = (stats.woken, stats.sampled, stats.unread);
    Work {
        wakes: Wakes {
            polled: woken.polled,
            deadline: woken.deadline,
            readiness: woken.readiness,
            remote: woken.remote,
            spurious: woken.spurious,
        },
        looking: stats.looking,
        sampled: sampled.turns,
        timers: sampled.timers,
        parse: sampled.readiness,
        messages: sampled.messages,
        reads: sampled.reads,
        writes: sampled.writes,
        rest: sampled.rest,
        unread_reads: unread.reads,
        unread: unread.sum,
        unread_max: unread.max,
        overflows: stats.overflows,
        leftover: transport.leftover,
        polls: host.polls,
        read_calls: host.reads,
        write_calls: host.writes,
        wake_up_p50: host.wake_up_p50,
        wake_up_p99: host.wake_up_p99,
        head_start: host.head_start,
        fold: None,
        used_once: Some(transport.used_once),
    }
}
