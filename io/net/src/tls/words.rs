//! What went wrong with TLS, and how to mend it.

use rustls::{AlertDescription, CertificateError, Error};

/// An error of a client's connection to `name`, in words that end with what to do about it.
pub(crate) fn of_client(error: &Error, name: &str) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate(why, name),
        Error::InvalidMessage(_) => {
            format!("what came is not TLS ({error}): is this an http:// address, or another port?")
        }
        Error::AlertReceived(alert) => alert_received(*alert),
        Error::NoCertificatesPresented => "the server shows no certificate".to_owned(),
        Error::PeerIncompatible(_) => {
            format!("{error}: the server must speak TLS 1.2 or 1.3 with one of today's ciphers")
        }
        other => other.to_string(),
    }
}

/// An error of a server's connection.
pub(crate) fn of_server(error: &Error) -> String {
    error.to_string()
}

fn certificate(why: &CertificateError, name: &str) -> String {
    let what = match why {
        CertificateError::UnknownIssuer => {
            "the certificate is self-signed or its issuer is not trusted".to_owned()
        }
        CertificateError::Expired => "the certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S;
            format!("the certificate has expired, {ago} days ago")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName => format!("the certificate is not for {name}"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|shown| bare_name(shown)).collect();
            match &names[..] {
                [] => format!("the certificate is not for {name}, nor for any other name"),
                names => format!("the certificate is for {}, not for {name}", names.join(", ")),
            }
        }
        // An authority's certificate in a server's place: what `openssl req -x509` makes.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the certificate is self-signed".to_owned()
        }
        other => format!("the certificate cannot be used: {other}"),
    };
    let mend = match why {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "renew it, or look at this machine's clock (--insecure to go on all the same)"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "use a name of the certificate in the address (--insecure to go on all the same)"
        }
        _ => "give its issuer with --cacert FILE (--insecure to go on all the same)",
    };
    format!("{what}: {mend}")
}

/// `DnsName("example.org")` as rustls shows it, without the wrapping.
fn bare_name(shown: &str) -> &str {
    shown.split('"').nth(1).unwrap_or(shown)
}

fn alert_received(alert: AlertDescription) -> String {
    let mend = match alert {
        AlertDescription::CertificateRequired => {
            "the server wants a client certificate: give --cert and --key"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::AccessDenied => {
            "the server does not take the client certificate (connections.tls.cert)"
        }
        AlertDescription::UnrecognisedName => "the server does not know the name in the address",
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
            "the server finds no version or cipher in common, or wants a client certificate \
             (--cert and --key)"
        }
        _ => "the server has ended the connection",
    };
    format!("the server sent the alert {alert:?}: {mend}")
}

const DAY_S: u64 = 86_400;
