//! The head that was read last: a server says the same, byte by byte, until a date or a length changes, and what is the
//! same means the same. To compare a head costs a twentieth of what it takes to read it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::head::ResponseHead;

/// The last head of all the readers that share it; clones do.
#[derive(Clone, Debug, Default)]
pub struct LastHead(Rc<RefCell<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// All of it, to its empty line; nothing at first.
    bytes: Vec<u8>,
    /// It was read as one without a body.
    no_body: bool,
    head: Option<ResponseHead<'static>>,
}

impl LastHead {
    /// What the head at the start of `input` says, and its length, when it is the one kept.
    pub(crate) fn find(
        &self,
        input: &[u8],
        no_body: bool,
    ) -> Option<(usize, ResponseHead<'static>)> {
        let kept = self.0.borrow();
        let head = kept.head.filter(|_| kept.no_body == no_body)?;
        input.starts_with(&kept.bytes).then_some((kept.bytes.len(), head))
    }

    /// Keeps `head`, read from `bytes`, unless it has text of its own or is long.
    pub(crate) fn keep(&self, bytes: &[u8], no_body: bool, head: &ResponseHead<'_>) {
        let &ResponseHead { location: None, retry_after: None, .. } = head else { return };
        if bytes.len() > KEPT_MAX {
            return;
        }
        let mut kept = self.0.borrow_mut();
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        kept.no_body = no_body;
        kept.head = Some(ResponseHead { location: None, retry_after: None, ..*head });
    }
}

/// A longer head is read each time.
const KEPT_MAX: usize = 1 << 10;
