//! TLS 1.2 and 1.3, by rustls, below the streams of a host: owners see plain bytes.
//!
//! What is ours: sharing buffers among connections, edges, the end (TLS's own, or the connection's alone), and
//! words that say how to mend what is wrong. There is no policy here but what [`ClientOptions`] says.

mod blocking;
mod config;
mod layer;
#[cfg(test)]
mod layer_tests;
mod session;
mod words;

pub use blocking::BlockingTls;
pub(crate) use blocking::server_name;
pub use config::{ClientOptions, ClientTls, ServerOptions, ServerTls, TlsSetupError};
pub(crate) use layer::{Buffers, Layer, Shaken, Wire};
pub(crate) use session::Session;
