//! One side of one TLS connection, as a machine: ciphertext in, plain bytes out, and the other way round.
//! It touches no socket. Buffers are its caller's, so connections share them.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, Error, HandshakeKind, ServerConfig};

/// A connection of either side.
pub(crate) enum Session {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// How far a call of [`Session::process`] came.
#[derive(Debug, Default)]
pub(crate) struct Processed {
    /// Bytes of the input that are done with; the rest is the start of a record.
    pub(crate) used: usize,
    /// The peer has said that nothing more comes.
    pub(crate) ended: bool,
    /// What is wrong, if anything is. An alert that says so may be in the output.
    pub(crate) error: Option<Error>,
}

/// What one step of the machine asks for.
enum Next {
    More,
    Enough,
}

impl Session {
    pub(crate) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Error> {
        UnbufferedClientConnection::new(config, name).map(Self::Client)
    }

    pub(crate) fn server(config: Arc<ServerConfig>) -> Result<Self, Error> {
        UnbufferedServerConnection::new(config).map(Self::Server)
    }

    /// Whether plain bytes can go neither way yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Client(client) => client.is_handshaking(),
            Self::Server(server) => server.is_handshaking(),
        }
    }

    /// Whether a ticket of an earlier session spared the certificates.
    pub(crate) fn is_resumed(&self) -> bool {
        let kind = match self {
            Self::Client(client) => client.handshake_kind(),
            Self::Server(server) => server.handshake_kind(),
        };
        kind == Some(HandshakeKind::Resumed)
    }

    /// Takes in what came, the start of it being what an earlier call has left: the machine remembers places in
    /// it. What is to be sent because of it goes to the end of `out`; plain bytes go to
    /// `plain` as they are decrypted.
    pub(crate) fn process(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        plain: &mut dyn FnMut(&[u8]),
    ) -> Processed {
        let mut done = Processed::default();
        loop {
            let rest = &mut incoming[done.used..];
            let next = match self {
                Self::Client(client) => {
                    step(client.process_tls_records(rest), &mut done, out, plain)
                }
                Self::Server(server) => {
                    step(server.process_tls_records(rest), &mut done, out, plain)
                }
            };
            if let Next::Enough = next {
                return done;
            }
        }
    }

    /// Encrypts `plain` to the end of `out`. `left` is what the last call of [`Session::process`] has left.
    pub(crate) fn encrypt(
        &mut self,
        plain: &[u8],
        left: &mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.write(&What::Bytes(plain), left, out)
    }

    /// Says, at the end of `out`, that nothing more comes.
    pub(crate) fn say_goodbye(&mut self, left: &mut [u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(&What::Goodbye, left, out)
    }

    fn write(&mut self, what: &What<'_>, left: &mut [u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Client(client) => put(client.process_tls_records(left), what, out),
            Self::Server(server) => put(server.process_tls_records(left), what, out),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client(_) => "Client",
            Self::Server(_) => "Server",
        })
    }
}

/// What is to be written.
enum What<'a> {
    Bytes(&'a [u8]),
    Goodbye,
}

fn step<D>(
    status: UnbufferedStatus<'_, '_, D>,
    done: &mut Processed,
    out: &mut Vec<u8>,
    plain: &mut dyn FnMut(&[u8]),
) -> Next {
    let mut used = status.discard;
    let next = match status.state {
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        used += record.discard;
                        plain(record.payload);
                    }
                    Err(error) => done.error = Some(error),
                }
            }
            if done.error.is_some() { Next::Enough } else { Next::More }
        }
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let at = out.len();
            out.resize(at + FLIGHT, 0);
            let encoded = match data.encode(&mut out[at..]) {
                Err(EncodeError::InsufficientSize(short)) => {
                    out.resize(at + short.required_size, 0);
                    data.encode(&mut out[at..])
                }
                other => other,
            };
            out.truncate(at + encoded.unwrap_or(0));
            // The alert about an error is the last that is said; another step would find the error again.
            if done.error.is_some() { Next::Enough } else { Next::More }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // It is in `out`, and goes with the rest of that.
            data.done();
            Next::More
        }
        Ok(ConnectionState::PeerClosed) => {
            done.ended = true;
            Next::More
        }
        Ok(ConnectionState::Closed) => {
            done.ended = true;
            Next::Enough
        }
        // An error comes once: the next step has the alert about it.
        Err(error) if done.error.is_none() => {
            done.error = Some(error);
            Next::More
        }
        // Nothing more to do with what came. Data before the handshake is never asked for.
        Ok(_) | Err(_) => Next::Enough,
    };
    done.used += used;
    next
}

fn put<D>(
    status: UnbufferedStatus<'_, '_, D>,
    what: &What<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    // What was left has no whole record, and what the machine had to say was said when it came: so it is
    // ready to write, unless it is at its end.
    let ConnectionState::WriteTraffic(mut traffic) = status.state? else {
        return Err(Error::HandshakeNotComplete);
    };
    let at = out.len();
    let bytes = match what {
        What::Bytes(bytes) => bytes.len(),
        What::Goodbye => 0,
    };
    let mut room = bytes + (bytes / RECORD + 1) * OVERHEAD;
    loop {
        out.resize(at + room, 0);
        let written = match what {
            What::Bytes(bytes) => traffic.encrypt(bytes, &mut out[at..]),
            What::Goodbye => traffic.queue_close_notify(&mut out[at..]),
        };
        match written {
            Ok(written) => {
                out.truncate(at + written);
                return Ok(());
            }
            Err(EncryptError::InsufficientSize(short)) if short.required_size > room => {
                room = short.required_size;
            }
            Err(_) => {
                out.truncate(at);
                return Err(Error::EncryptError);
            }
        }
    }
}

/// The most plain bytes in a record (RFC 8446, 5.1).
pub(crate) const RECORD: usize = 16_384;
/// The most that a record adds to its bytes (RFC 8446, 5.2).
const OVERHEAD: usize = 5 + 256;
/// Room for a flight of the handshake, mostly.
const FLIGHT: usize = 4_096;
