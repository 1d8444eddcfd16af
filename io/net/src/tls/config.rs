//! From files to configurations: what is trusted, what is shown, and what is not looked at.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};

/// What a client trusts and shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Certificates, PEM, to be trusted in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client's own certificate chain, PEM.
    pub cert: Option<PathBuf>,
    /// The key of `cert`, PEM.
    pub key: Option<PathBuf>,
    /// Trust whoever answers. Nothing is checked then: not the issuer, not the name, not the time.
    pub insecure: bool,
}

/// What a server shows and asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Certificate chain, PEM, the server's own first.
    pub cert: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Certificates, PEM, one of which must have issued each client's; none is asked for without.
    pub client_ca: Option<PathBuf>,
}

/// A client's configuration, ready for use. Connections that share it share the tickets by which sessions
/// are resumed.
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
}

/// A server's configuration, ready for use.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
}

/// A configuration that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// A file cannot be read as what it should be.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No certificate of the system can be read.
    #[error("the system's certificates cannot be read ({0}): give some with --cacert FILE")]
    NoRoots(String),
    /// One of certificate and key without the other.
    #[error("a client certificate needs both its file and its key's")]
    Half,
    /// Certificate and key do not go together.
    #[error("certificate and key cannot be used: {0}")]
    Pair(Error),
}

impl ClientTls {
    /// Reads what `options` name.
    ///
    /// # Errors
    /// When a file cannot be read, or holds something else.
    pub fn new(options: &ClientOptions) -> Result<Self, TlsSetupError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsSetupError::Pair)?;
        let verifier: Arc<dyn ServerCertVerifier> = if options.insecure {
            Arc::new(Anybody(provider))
        } else {
            Arc::new(Trusted::new(options.ca.as_deref(), provider)?)
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(certificates(cert)?, private_key(key)?)
                .map_err(TlsSetupError::Pair)?,
            (None, None) => builder.with_no_client_auth(),
            (Some(_), None) | (None, Some(_)) => return Err(TlsSetupError::Half),
        };
        config.alpn_protocols = vec![HTTP.to_vec()];
        config.resumption = Resumption::in_memory_sessions(NAMES_KEPT);
        Ok(Self { config: Arc::new(config) })
    }
}

impl ServerTls {
    /// Reads what `options` name.
    ///
    /// # Errors
    /// When a file cannot be read, or holds something else.
    pub fn new(options: &ServerOptions) -> Result<Self, TlsSetupError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsSetupError::Pair)?;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(roots(Some(path))?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|error| wrong(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(certificates(&options.cert)?, private_key(&options.key)?)
            .map_err(TlsSetupError::Pair)?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        // Tickets that hold their session themselves: nothing to keep here for thousands of clients.
        config.ticketer = ring::Ticketer::new().map_err(TlsSetupError::Pair)?;
        Ok(Self { config: Arc::new(config) })
    }
}

/// Those of a file, or those of the system.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsSetupError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = ca {
        for certificate in certificates(path)? {
            store.add(certificate).map_err(|error| wrong(path, error))?;
        }
        return Ok(store);
    }
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map_or("there are none".to_owned(), ToString::to_string);
        return Err(TlsSetupError::NoRoots(why));
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(certificates) if certificates.is_empty() => {
            Err(wrong(path, "holds no certificate (-----BEGIN CERTIFICATE-----)"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(path, error)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsSetupError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            wrong(path, "holds no private key (-----BEGIN PRIVATE KEY-----)")
        }
        other => wrong(path, other),
    })
}

fn wrong(path: &Path, why: impl fmt::Display) -> TlsSetupError {
    TlsSetupError::File { path: path.to_owned(), why: why.to_string() }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// Takes certificates that a root has issued, and those that were given themselves. The library refuses the
/// certificate of an authority in a server's place, which is what `openssl req -x509` makes: whoever names it
/// with `--cacert` has said that it is the one.
#[derive(Debug)]
struct Trusted {
    issued: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn new(ca: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Self, TlsSetupError> {
        let given = ca.map(certificates).transpose()?.unwrap_or_default();
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(ca)?), provider);
        let issued = builder.build().map_err(|error| TlsSetupError::NoRoots(error.to_string()))?;
        Ok(Self { issued, given })
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.issued.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // Its time was looked at before, its name was not.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.given.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

/// Takes any certificate. The handshake's own signatures are still checked: what is given up is to know
/// whose they are.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The protocol that is offered (RFC 7301).
const HTTP: &[u8] = b"http/1.1";
/// Servers whose tickets are kept.
const NAMES_KEPT: usize = 256;
