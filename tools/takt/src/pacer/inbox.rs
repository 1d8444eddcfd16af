//! Arrivals from another process, taken in by the reactor.
//!
//! The descriptor of a ZMQ socket is edge-triggered and stands for sending and receiving alike: it may become
//! readable without a message and stay silent with one. So after each event the socket is read until it
//! has nothing more, and its own state has the last word.

use takt_actors::SessionMsg;
use takt_engine::{Actor, Addr, Context, Ready};
use takt_record::PhaseId;
use takt_time::Nanos;
use zmq::{DONTWAIT, Message, PollEvents, Socket};

use super::Arrival;

/// The actor that reads the PULL socket.
pub(crate) struct Inbox {
    socket: Socket,
    session: Addr<SessionMsg>,
    message: Message,
}

/// What it tells itself.
pub(crate) enum Msg {
    /// There may be more.
    GoOn,
}

impl Inbox {
    pub(crate) fn new(socket: Socket, session: Addr<SessionMsg>) -> Self {
        Self { socket, session, message: Message::new() }
    }

    fn drain(&mut self, cx: &mut Context<'_, Self>) {
        for _ in 0..MESSAGES_MAX {
            match self.socket.recv(&mut self.message, DONTWAIT) {
                Ok(()) => decode(&self.message).for_each(|due| self.session.send(due.into())),
                Err(zmq::Error::EAGAIN) => match self.socket.get_events() {
                    Ok(events) if events.contains(PollEvents::POLLIN) => {}
                    Ok(_) => return,
                    Err(error) => return self.failed(error),
                },
                Err(error) => return self.failed(error),
            }
        }
        cx.call_soon(Msg::GoOn);
    }

    /// Nothing more will come from the pacer; a phase that waited for it would hang.
    fn failed(&self, error: zmq::Error) {
        let words = format!("the pacer's socket: {error}");
        self.session.send(SessionMsg::PacerFailed(words.into()));
    }
}

impl Actor for Inbox {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        // What came before the descriptor was registered gave no edge.
        self.drain(cx);
    }

    fn handle(&mut self, Msg::GoOn: Msg, cx: &mut Context<'_, Self>) {
        self.drain(cx);
    }

    fn ready(&mut self, _event: Ready, cx: &mut Context<'_, Self>) {
        self.drain(cx);
    }
}

/// Arrivals as bytes: phase, ordinal, instant (all ones: none), little-endian, one behind the other.
pub(crate) fn encode(due: &[Arrival], out: &mut Vec<u8>) {
    out.clear();
    for arrival in due {
        out.extend_from_slice(&arrival.phase.0.to_le_bytes());
        out.extend_from_slice(&arrival.ordinal.to_le_bytes());
        let scheduled = arrival.scheduled.map_or(NONE, Nanos::as_nanos);
        out.extend_from_slice(&scheduled.to_le_bytes());
    }
}

/// The arrivals in `bytes`; what is no arrival, such as the word `ready`, holds none.
fn decode(bytes: &[u8]) -> impl Iterator<Item = Arrival> {
    bytes.chunks_exact(ARRIVAL_BYTES).filter_map(|bytes| {
        let (phase, rest) = bytes.split_first_chunk()?;
        let (ordinal, rest) = rest.split_first_chunk()?;
        let scheduled = u64::from_le_bytes(*rest.first_chunk()?);
        Some(Arrival {
            phase: PhaseId(u16::from_le_bytes(*phase)),
            ordinal: u64::from_le_bytes(*ordinal),
            scheduled: (scheduled != NONE).then(|| Nanos::from_nanos(scheduled)),
        })
    })
}

const NONE: u64 = u64::MAX;
const ARRIVAL_BYTES: usize = 2 + 8 + 8;
/// Messages taken in before others have their turn.
const MESSAGES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_survive_their_bytes() {
        let due = [(0, Some(Nanos::ZERO)), (7, Some(Nanos::from_nanos(1 << 60))), (u64::MAX, None)]
            .map(|(ordinal, scheduled)| Arrival { phase: PhaseId(513), ordinal, scheduled });
        let mut bytes = Vec::new();
        encode(&due, &mut bytes);
        assert_eq!(decode(&bytes).collect::<Vec<_>>(), due);
        assert_eq!(decode(super::super::process::READY).count(), 0);
    }
}
