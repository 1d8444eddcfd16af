//! Sending on over ZMQ: events and snapshots to whoever subscribes, blocks to an aggregator.
//!
//! | socket | carries | when the other side does not read |
//! | --- | --- | --- |
//! | [`Publication`], PUB | text, by topic | its messages are dropped at the high-water mark; their numbers have a gap |
//! | [`Feed`], PAIR | blocks as they are | the feed gives up, for good, and says so |
//!
//! All of it happens on the recorder's thread and none of it waits, except at the very end. libzmq has a thread of
//! its own for the network, which inherits the cores of the thread that makes the first socket: make that
//! before the reactor is pinned.

mod events;
mod feed;
mod publication;

pub use events::EventOutlet;
pub use feed::{Fed, Feed, FeedError, FeedReader, FeedState, FeedWatch};
pub use publication::Publication;
