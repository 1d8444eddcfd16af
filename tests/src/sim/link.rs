//! What the network between two hosts is like.

use takt_time::Span;

use super::random::Chance;

/// The network of a world: the same for all of its connections, both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// From one end to the other.
    pub latency: Span,
    /// Up to so much longer, drawn for each segment; the order stays.
    pub jitter: Span,
    /// The most bytes a second, each way and each connection; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// Where streams of bytes are cut.
    pub cuts: Cuts,
    /// Bytes that were written and are not under way yet.
    pub send_buffer: usize,
    /// Bytes that are under way or not read yet.
    pub receive_buffer: usize,
    /// Connections of a listener that nobody has accepted yet.
    pub backlog: u32,
    /// What goes wrong.
    pub faults: Faults,
    /// What each call that reaches the network costs the caller; nothing, where time is to be exact.
    pub call_cost: Span,
}

/// Where streams of bytes are cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Nowhere: what was written at once arrives at once, and what waits is read in one go.
    None,
    /// Anywhere, pieces of 1 byte to so many. They arrive at one instant but are found one by one: a read
    /// gives one piece, and the next one is announced as if it had arrived right after. Times stay exact.
    Apart(usize),
    /// As `Apart`, and up to so long passes between two pieces.
    Spaced(usize, Span),
}

/// What goes wrong, and how often out of a thousand times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A connection is refused although somebody listens.
    pub refused: u32,
    /// Nobody ever answers a connection attempt; the system gives up after [`super::SYSTEM_PATIENCE`].
    pub black_hole: u32,
    /// The machine has no descriptor left for a connection.
    pub no_descriptor: u32,
    /// A connection is reset after some number of bytes in one direction.
    pub reset_at_byte: u32,
    /// One direction of a connection ends, in an orderly way, after some number of bytes.
    pub end_at_byte: u32,
    /// One direction of a connection stalls after some number of bytes.
    pub stall_at_byte: u32,
    /// A connection is reset after some time, be it in use or idle.
    pub reset_at_time: u32,
    /// The longest stall. [`Span::MAX`] for some that never end.
    pub longest_stall: Span,
    /// A write takes less than there is room for.
    pub short_write: u32,
    /// A socket is said to be readable once more than needed.
    pub needless_readable: u32,
    /// The greatest number of bytes before an accident.
    pub accident_bytes: u64,
}

impl Link {
    /// One of many kinds; where it is `peaceful`, nothing goes wrong.
    #[must_use]
    pub fn draw(c: &mut Chance, peaceful: bool) -> Self {
        let latency = match c.between(0, 9) {
            0 => Span::ZERO,
            _ => c.span(Span::from_nanos(1), Span::from_millis(30)),
        };
        let mut link = Self::flawless(latency);
        let most = c.magnitude(1, 1460) as usize;
        link.cuts = match c.between(0, 2) {
            0 => Cuts::None,
            _ => Cuts::Apart(most),
        };
        link.faults.needless_readable = c.pick(&[0, 0, 100, 500]);
        link.backlog = c.pick(&[4096, 4096, 128, 4, 1]);
        if c.coin() {
            // Exact: see [`Link::is_exact`].
            return link;
        }
        if c.coin() {
            link.cuts = Cuts::Spaced(most, c.span(Span::from_nanos(1), Span::from_micros(200)));
        }
        if c.per_mille(300) {
            link.jitter = c.span(Span::from_nanos(1), Span::from_millis(20));
        }
        if c.per_mille(300) {
            link.bytes_per_s = Some(c.magnitude(20_000, 1_000_000_000));
        }
        if c.per_mille(400) {
            link.send_buffer = c.magnitude(64, 64 << 10) as usize;
        }
        if c.per_mille(400) {
            link.receive_buffer = c.magnitude(64, 64 << 10) as usize;
        }
        if c.per_mille(150) {
            link.call_cost = c.span(Span::from_nanos(20), Span::from_micros(20));
        }
        if !peaceful {
            link.faults = faults(c, link.faults.needless_readable);
        }
        link
    }

    /// A flawless network: nothing but `latency`.
    #[must_use]
    pub fn flawless(latency: Span) -> Self {
        Self {
            latency,
            jitter: Span::ZERO,
            bytes_per_s: None,
            cuts: Cuts::None,
            send_buffer: LARGE,
            receive_buffer: LARGE,
            backlog: 4096,
            faults: Faults::default(),
            call_cost: Span::ZERO,
        }
    }

    /// Whether what is written at an instant, a megabyte of it at most, arrives whole exactly `latency`
    /// later.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.jitter == Span::ZERO
            && self.send_buffer >= LARGE
            && self.receive_buffer >= LARGE
            && self.bytes_per_s.is_none()
            && !matches!(self.cuts, Cuts::Spaced(..))
            && self.call_cost == Span::ZERO
            && self.faults.are_none()
    }

    /// How long `bytes` take to get onto the wire.
    pub(super) fn wire_time(&self, bytes: usize) -> Span {
        let ns = |rate: u64| (bytes as u64).saturating_mul(1_000_000_000) / rate.max(1);
        Span::from_nanos(self.bytes_per_s.map_or(0, ns))
    }
}

impl Faults {
    /// Whether nothing goes wrong. (Needless readiness is nothing wrong.)
    #[must_use]
    pub fn are_none(&self) -> bool {
        let Self {
            refused,
            black_hole,
            no_descriptor,
            reset_at_byte,
            end_at_byte,
            stall_at_byte,
            reset_at_time,
            short_write,
            ..
        } = self;
        let all = [
            refused,
            black_hole,
            no_descriptor,
            reset_at_byte,
            end_at_byte,
            stall_at_byte,
            reset_at_time,
            short_write,
        ];
        all.into_iter().all(|&often| often == 0)
    }

    /// Whether some connections hang for ever.
    #[must_use]
    pub fn hang(&self) -> bool {
        self.stall_at_byte > 0 && self.longest_stall == Span::MAX
    }
}

/// A buffer that no request or answer of a scenario fills.
const LARGE: usize = 1 << 20;

fn faults(c: &mut Chance, needless_readable: u32) -> Faults {
    let mut often = || if c.per_mille(300) { c.magnitude(1, 300) as u32 } else { 0 };
    let mut faults = Faults {
        refused: often(),
        black_hole: often() / 4,
        no_descriptor: often() / 4,
        reset_at_byte: often(),
        end_at_byte: often(),
        stall_at_byte: often(),
        reset_at_time: often(),
        short_write: often(),
        needless_readable,
        ..Faults::default()
    };
    faults.accident_bytes = c.magnitude(1, 30_000);
    faults.longest_stall = match c.between(0, 3) {
        0 => Span::MAX,
        _ => c.span(Span::from_micros(1), Span::from_secs(5)),
    };
    faults
}
