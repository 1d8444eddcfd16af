//! A PUB socket with numbered messages.

use std::fmt;

use zmq::{Context, DONTWAIT, SNDMORE, Socket, SocketType};

/// A socket that others subscribe to. A message has three frames: its topic; its number among those of the
/// topic, in decimal digits; its text.
///
/// Each subscriber has a queue of its own. One that does not read loses what does not fit its queue and
/// disturbs neither the others nor the run. libzmq tells nobody what it dropped; the subscriber finds out
/// from the numbers. A topic is numbered only while somebody wants it, so that without a subscriber nothing
/// needs to be put into words.
pub struct Publication {
    socket: Socket,
    /// What is subscribed to, each prefix once.
    wanted: Vec<Vec<u8>>,
}

impl Publication {
    /// Binds `address` (`ipc://PATH`, `tcp://HOST:PORT`), with room for `queue` messages a subscriber. After
    /// the end unsent messages are kept for `linger_ms`.
    ///
    /// # Errors
    /// The address is taken or cannot be had.
    pub fn bind(
        context: &Context,
        address: &str,
        queue: u32,
        linger_ms: u32,
    ) -> Result<Self, zmq::Error> {
        // As PUB, and it tells of subscriptions.
        let socket = context.socket(SocketType::XPUB)?;
        socket.set_sndhwm(i32::try_from(queue).unwrap_or(i32::MAX))?;
        socket.set_linger(i32::try_from(linger_ms).unwrap_or(i32::MAX))?;
        socket.bind(address)?;
        Ok(Self { socket, wanted: Vec::new() })
    }

    /// The address that it is bound to; the port chosen where port `*` was asked for.
    ///
    /// # Errors
    /// When libzmq cannot say.
    pub fn address(&self) -> Result<String, zmq::Error> {
        Ok(self.socket.get_last_endpoint()?.unwrap_or_default())
    }

    /// Takes in who has come and gone. Says whether anybody is there.
    pub fn listen(&mut self) -> bool {
        for _ in 0..SUBSCRIPTIONS_MAX {
            let Ok(message) = self.socket.recv_bytes(DONTWAIT) else { break };
            match message.split_first() {
                Some((1, prefix)) => self.wanted.push(prefix.to_vec()),
                Some((0, prefix)) => self.wanted.retain(|wanted| wanted != prefix),
                _ => {}
            }
        }
        !self.wanted.is_empty()
    }

    /// Whether somebody has subscribed to `topic`.
    #[must_use]
    pub fn is_wanted(&self, topic: &str) -> bool {
        self.wanted.iter().any(|prefix| topic.as_bytes().starts_with(prefix))
    }

    /// Sends message `number` of `topic`. Never waits.
    pub fn send(&self, topic: &str, number: u64, text: &[u8]) {
        let number = number.to_string();
        let frames = [(topic.as_bytes(), SNDMORE), (number.as_bytes(), SNDMORE), (text, 0)];
        for (frame, more) in frames {
            // A socket of this kind drops where it has no room; it has no other failure.
            if self.socket.send(frame, more | DONTWAIT).is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Publication({} subscriptions)", self.wanted.len())
    }
}

/// Subscriptions taken in at a time.
const SUBSCRIPTIONS_MAX: usize = 256;
