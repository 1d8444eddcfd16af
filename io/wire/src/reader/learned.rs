//! The shape of a stream's events, learned from the last one.
//!
//! The events of one answer differ in few places: the text, and numbers that count up. Id, model, names, order and
//! blanks stay. So an event that has the same bytes around those places, and in each of them what may stand there,
//! says what the last one said.
//!
//! ```text
//! {"id":"c1","choices":[{"delta":{"content":"____"}}],"usage":{"completion_tokens":____}}
//!  `------------- fixed -------------------'text`---------- fixed ---------------'count`- fixed
//! ```
//!
//! That is exact, not a guess: the bytes around were checked when they were learned, the places are checked now.

use super::Shape;
use super::cursor::string_end;
use super::found::{Found, HOLES_MAX, What};
use crate::delta::{Delta, Kinds, Usage};

/// The last event, but for the places that change.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    /// What stands around the places, joined.
    fixed: Vec<u8>,
    /// Each place, with the length of `fixed` before it.
    holes: [(u16, What); HOLES_MAX],
    len: usize,
    /// What it was learned for; `None` before anything is.
    shape: Option<Shape>,
    text: Kinds,
    role: bool,
    choice: bool,
    usage: Option<Usage>,
}

impl Learned {
    /// Forgets the shape; the memory stays.
    pub(super) fn reset(&mut self) {
        self.shape = None;
    }

    /// What `data` says and the inside of its text, if it is like the last event. A kept piece of a tool call has
    /// to be taken apart and is like nothing.
    pub(super) fn matches<'a>(
        &self,
        data: &'a [u8],
        shape: Shape,
        keep_text: bool,
    ) -> Option<(Delta, &'a [u8])> {
        if self.shape != Some(shape) || (keep_text && self.text.tool_call) {
            return None;
        }
        let (mut rest, mut known) = (data, 0);
        let (mut raw, mut ids, mut usage) = (&b""[..], None, self.usage);
        for &(upto, what) in &self.holes[..self.len] {
            let upto = usize::from(upto);
            rest = rest.strip_prefix(&self.fixed[known..upto])?;
            known = upto;
            let len = match what {
                What::Content | What::Reasoning | What::ToolCall => {
                    let len = string_end(rest, 0)?;
                    raw = &rest[..len];
                    len
                }
                What::Noise => string_end(rest, 0)?,
                What::Number => number(rest)?.0,
                What::Completion => {
                    let (len, count) = number(rest)?;
                    usage.get_or_insert_default().completion = Usage::count(count);
                    len
                }
                What::Ids => {
                    let (len, count) = id_list(rest)?;
                    ids = Some(count);
                    len
                }
            };
            rest = &rest[len..];
        }
        if rest != &self.fixed[known..] {
            return None;
        }
        let kinds = if raw.is_empty() { Kinds::default() } else { self.text };
        let (role, choice) = (self.role, self.choice);
        Some((Delta { kinds, role, choice, usage, ids, ..Delta::default() }, raw))
    }

    /// Learns from an event with one piece of text, and nothing else that could change but its noted places.
    pub(super) fn learn(&mut self, data: &[u8], shape: Shape, found: &Found<'_>) {
        let Some(holes) = found.holes.all() else { return };
        let mut texts = holes.iter().map(|hole| hole.what.kinds()).filter(|kinds| kinds.any());
        let (Some(text), None) = (texts.next(), texts.next()) else { return };
        let open: usize = holes.iter().map(|hole| hole.end - hole.start).sum();
        let len = data.len() - open;
        if found.finish.is_some() || len > FIXED_MAX {
            return;
        }
        self.fixed.clear();
        // No more than that: each open stream has one.
        self.fixed.reserve_exact(len);
        let mut from = 0;
        for (place, hole) in self.holes.iter_mut().zip(holes) {
            self.fixed.extend_from_slice(&data[from..hole.start]);
            *place = (self.fixed.len() as u16, hole.what);
            from = hole.end;
        }
        self.fixed.extend_from_slice(&data[from..]);
        self.len = holes.len();
        self.text = text;
        (self.role, self.choice, self.usage) = (found.role, found.choice, found.usage);
        self.shape = Some(shape);
    }
}

/// Length and value of the whole number in front of `bytes`; what follows it is for the caller to check.
fn number(bytes: &[u8]) -> Option<(usize, u64)> {
    let digits = bytes.iter().take(19).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 18 || (digits > 1 && bytes[0] == b'0') {
        return None;
    }
    let value = bytes[..digits].iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0'));
    Some((digits, value))
}

/// Length and number of items of the list of whole numbers in front of `bytes`, written without blanks.
fn id_list(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut rest = bytes.strip_prefix(b"[")?;
    let mut count = 0;
    if !rest.starts_with(b"]") {
        loop {
            rest = &rest[number(rest)?.0..];
            count += 1;
            match rest.strip_prefix(b",") {
                Some(more) => rest = more,
                None => break,
            }
        }
    }
    let rest = rest.strip_prefix(b"]")?;
    Some((bytes.len() - rest.len(), count))
}

/// A larger frame is not worth the memory of each open stream. Places in one fit 16 bits.
const FIXED_MAX: usize = 1024;
