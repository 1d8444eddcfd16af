//! TLS over a blocking socket, for what asks a question or two before a run.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Error, ProtocolVersion, SignatureScheme, StreamOwned,
};

use super::config::ClientTls;
use super::words;

/// A connection with TLS that blocks.
#[derive(Debug)]
pub struct BlockingTls {
    stream: StreamOwned<ClientConnection, TcpStream>,
    name: String,
}

impl BlockingTls {
    /// Secures a connection that stands; each read and write of the handshake may take for `timeout`. With
    /// TLS 1.3 a server looks at the client's certificate when the client's side is over: where one was asked
    /// for, what the server says of it is waited for.
    ///
    /// # Errors
    /// When the handshake fails, in words that say how to mend it.
    pub fn secure(
        tcp: TcpStream,
        tls: &ClientTls,
        name: &str,
        timeout: Duration,
    ) -> io::Result<Self> {
        tcp.set_read_timeout(Some(timeout))?;
        tcp.set_write_timeout(Some(timeout))?;
        let server = server_name(name)?;
        let mut config = ClientConfig::clone(&tls.config);
        let shown = Arc::new(Shown::new(config.client_auth_cert_resolver.clone()));
        config.client_auth_cert_resolver = shown.clone();
        let session = ClientConnection::new(Arc::new(config), server).map_err(io::Error::other)?;
        let mut secured = Self { stream: StreamOwned::new(session, tcp), name: name.to_owned() };
        while secured.stream.conn.is_handshaking() {
            let step = secured.stream.conn.complete_io(&mut secured.stream.sock);
            step.map(drop).map_err(|error| secured.clearer(error))?;
        }
        let later = secured.stream.conn.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if later && shown.asked.load(Ordering::Relaxed) {
            secured.hear_verdict(timeout.min(VERDICT_WITHIN))?;
            secured.stream.sock.set_read_timeout(Some(timeout))?;
        }
        Ok(secured)
    }

    /// Waits for what the server says behind the handshake: an alert, or the tickets of a session that stands. One
    /// that has said nothing `within` so long is content.
    fn hear_verdict(&mut self, within: Duration) -> io::Result<()> {
        self.stream.sock.set_read_timeout(Some(within))?;
        let StreamOwned { conn, sock } = &mut self.stream;
        match conn.read_tls(sock) {
            Ok(0) => Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the server asked for a client certificate and then closed the connection: give --cert and \
                 --key, or others",
            )),
            Ok(_) => match conn.process_new_packets() {
                Ok(_) => Ok(()),
                Err(error) => {
                    let words = words::of_client(&error, &self.name);
                    Err(io::Error::new(ErrorKind::InvalidData, words))
                }
            },
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Protocol version and cipher, for whom it may interest.
    #[must_use]
    pub fn spoken(&self) -> String {
        let version = match self.stream.conn.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        };
        let cipher = self.stream.conn.negotiated_cipher_suite().map(|suite| suite.suite());
        match cipher.as_ref().and_then(rustls::CipherSuite::as_str) {
            Some(cipher) => format!("{version}, {cipher}"),
            None => version.to_owned(),
        }
    }

    fn clearer(&self, error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                io::Error::new(ErrorKind::TimedOut, "the TLS handshake did not end in time")
            }
            ErrorKind::UnexpectedEof => io::Error::new(
                ErrorKind::UnexpectedEof,
                "the peer closed the connection without a word of TLS: is it a TLS port?",
            ),
            kind => match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                Some(tls) => io::Error::new(kind, words::of_client(tls, &self.name)),
                None => error,
            },
        }
    }
}

impl Read for BlockingTls {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => error,
            _ => self.clearer(error),
        })
    }
}

impl Write for BlockingTls {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.stream.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The client's certificate, and whether the server has asked for it.
#[derive(Debug)]
struct Shown {
    own: Arc<dyn ResolvesClientCert>,
    asked: AtomicBool,
}

impl Shown {
    fn new(own: Arc<dyn ResolvesClientCert>) -> Self {
        Self { own, asked: AtomicBool::new(false) }
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(
        &self,
        root_hint_subjects: &[&[u8]],
        sigschemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.own.resolve(root_hint_subjects, sigschemes)
    }

    fn has_certs(&self) -> bool {
        self.own.has_certs()
    }
}

/// A name or address as certificates have it.
pub(crate) fn server_name(name: &str) -> io::Result<ServerName<'static>> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let why = format!("{name:?} is no name that a certificate can be for");
        io::Error::new(ErrorKind::InvalidInput, why)
    })
}

/// How long a server may take to say what it thinks of a client's certificate.
const VERDICT_WITHIN: Duration = Duration::from_secs(1);
