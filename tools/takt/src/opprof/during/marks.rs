//! Windows in the records of the run: the session writes them down, in their order among all others.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use takt_actors::SessionMsg;
use takt_record::WindowEvent;
use takt_time::{Nanos, Span};

use super::Shared;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::opprof::window::Marks;

/// Tells the session of windows, a margin before and after them.
pub(super) struct SessionMarks {
    shared: Arc<Shared>,
    margin: Span,
    console: Console,
}

impl SessionMarks {
    pub(super) fn new(shared: Arc<Shared>, margin: Span, console: Console) -> Self {
        Self { shared, margin, console }
    }

    /// Has the session record it; gives the moment, once the record is before all that come after. `None`
    /// when the session has ended.
    fn record(&self, event: WindowEvent) -> Option<Nanos> {
        let session = self.shared.session.get()?;
        let (told, at) = sync_channel(1);
        session.send(SessionMsg::Window(event, told)).ok()?;
        loop {
            match at.recv_timeout(LOOK_EVERY) {
                Ok(at) => return Some(at),
                Err(RecvTimeoutError::Timeout) if !self.shared.over() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn wait(&self) {
        let until = takt_net::now() + self.margin;
        while !self.shared.over() && takt_net::now() < until {
            std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(self.margin.as_nanos())));
        }
    }
}

impl Marks for SessionMarks {
    fn opened(&mut self) -> Result<(), Failure> {
        let Some(at) = self.record(WindowEvent::Opened) else {
            return Err(Failure::says(Exit::Interrupted, "the run was over"));
        };
        self.shared.with(|side| {
            if let Some(window) = side.windows.last_mut() {
                window.opened_ns = Some(at.as_nanos());
            }
        });
        // A run that is killed from here on has a window that never closed.
        self.shared.save(&self.console);
        self.wait();
        Ok(())
    }

    fn closed(&mut self) {
        self.wait();
        let at = self.record(WindowEvent::Closed);
        self.shared.with(|side| {
            if let Some(window) = side.windows.last_mut() {
                window.closed_ns = at.map(Nanos::as_nanos);
            }
        });
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(5);
