//! Blocks to events by topic.

use std::fmt;

use takt_record::{Block, EventType, EventWriter, SessionPlan};

use crate::outlet::Outlet;
use crate::publish::Publication;

/// Puts records into words and publishes them. A block becomes one message for each topic that occurs in it and
/// is wanted: a line an event, in order. The messages of a block leave in the order in which their topics
/// occur.
pub struct EventOutlet {
    publication: Publication,
    writer: EventWriter,
    topics: Vec<Topic>,
}

#[derive(Debug)]
struct Topic {
    name: EventType,
    number: u64,
    lines: Vec<u8>,
}

impl EventOutlet {
    /// Publishes the events of the session that `plan` describes on `publication`.
    #[must_use]
    pub fn new(publication: Publication, plan: &SessionPlan) -> Self {
        Self { publication, writer: EventWriter::new(plan), topics: Vec::new() }
    }

    /// The place, from `from` on, of the topic `name`. There are two dozen at the most.
    fn place(&mut self, name: EventType, from: usize) -> usize {
        match self.topics[from..].iter().position(|topic| topic.name == name) {
            Some(at) => from + at,
            None => {
                self.topics.push(Topic { name, number: 0, lines: Vec::new() });
                self.topics.len() - 1
            }
        }
    }

    fn gather(&mut self, block: &Block) {
        // Topics with lines stand first, in the order in which they came.
        let mut busy = 0;
        for record in block.iter().map_while(Result::ok) {
            self.writer.see(&record);
            let name = EventType::of(&record);
            let used = self.topics[..busy].iter().position(|topic| topic.name == name);
            let at = match used {
                Some(at) => at,
                None if self.publication.is_wanted(name.as_str()) => {
                    let at = self.place(name, busy);
                    self.topics.swap(at, busy);
                    busy += 1;
                    busy - 1
                }
                None => continue,
            };
            let lines = &mut self.topics[at].lines;
            self.writer.write(&record, lines);
            lines.push(b'\n');
        }
        for topic in &mut self.topics[..busy] {
            self.publication.send(topic.name.as_str(), topic.number, &topic.lines);
            topic.number += 1;
            topic.lines.clear();
        }
    }
}

impl Outlet for EventOutlet {
    fn block(&mut self, block: &Block) {
        if self.publication.listen() {
            self.gather(block);
        }
    }
}

impl fmt::Debug for EventOutlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventOutlet({:?})", self.publication)
    }
}
