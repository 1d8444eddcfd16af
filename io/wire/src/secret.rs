//! Which names hold secrets, so that their values are never printed.

/// Whether a header, a query parameter or a key of this name carries a secret.
///
/// Goes by the parts that such names have in practice (`Authorization`, `X-Api-Key`, `access_token`, …)
/// and rather hides too much than too little.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || name == "sig"
}

/// What stands in place of a secret wherever one would be printed.
pub const REDACTED: &str = "<redacted>";

const PARTS: [&str; 8] =
    ["auth", "cookie", "credential", "key", "passw", "secret", "signature", "token"];

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn names_of_secrets_are_known_in_any_case() {
        for name in ["Authorization", "X-API-Key", "cookie", "access_token", "PASSWORD", "sig"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["Accept", "X-Team", "api-version", "design"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
