//! Routed experts as the server returns them: a NumPy array `[tokens, layers, top_k]` of `uint8` up to 256
//! experts, `uint16` beyond, in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The routes of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    /// Tokens: prompt and output, less the last one.
    pub tokens: usize,
    /// Layers, dense ones included.
    pub layers: usize,
    /// Experts that a token is sent to in a layer.
    pub top_k: usize,
    /// Expert ids by token, layer and place.
    ids: Vec<u16>,
}

/// Why an array is none of routes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutesError {
    /// It is not base64.
    #[error("routed_experts is not base64: {0}")]
    Base64(base64::DecodeError),
    /// It is no NumPy array.
    #[error("is no NumPy array: {0}")]
    NoArray(&'static str),
    /// It holds something else.
    #[error("holds {found}, expected {expected}")]
    Other {
        /// What it holds.
        found: String,
        /// What routes are.
        expected: &'static str,
    },
}

impl Routes {
    /// From base64 text.
    ///
    /// # Errors
    /// Text or array are not what a server returns.
    pub fn from_base64(text: &str) -> Result<Self, RoutesError> {
        Self::from_npy(&STANDARD.decode(text.trim()).map_err(RoutesError::Base64)?)
    }

    /// From the bytes of a `.npy` file (format versions 1 to 3).
    ///
    /// # Errors
    /// It is no such file, or holds something else.
    pub fn from_npy(bytes: &[u8]) -> Result<Self, RoutesError> {
        let no = RoutesError::NoArray;
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or(no("the magic bytes are missing"))?;
        let (version, rest) = rest.split_at_checked(2).ok_or(no("it ends in its head"))?;
        let (length, rest) = match version[0] {
            1 => rest
                .split_first_chunk::<2>()
                .map(|(n, rest)| (u32::from(u16::from_le_bytes(*n)), rest)),
            2 | 3 => rest.split_first_chunk::<4>().map(|(n, rest)| (u32::from_le_bytes(*n), rest)),
            _ => return Err(no("its format version is unknown")),
        }
        .ok_or(no("it ends in its head"))?;
        let (head, data) =
            rest.split_at_checked(length as usize).ok_or(no("it ends in its head"))?;
        let head = std::str::from_utf8(head).map_err(|_| no("its head is not text"))?;
        let other =
            |found: &str, expected| RoutesError::Other { found: found.to_owned(), expected };
        let descr = entry(head, "'descr':").ok_or(no("its head has no descr"))?;
        let bytes_each = match descr.trim_matches('\'') {
            "|u1" => 1,
            "<u2" => 2,
            kind => return Err(other(kind, "|u1 or <u2")),
        };
        if entry(head, "'fortran_order':").is_none_or(|order| order != "False") {
            return Err(other("columns first", "rows first"));
        }
        let shape = shape(head).ok_or(no("its head has no shape"))?;
        let [tokens, layers, top_k] = shape[..] else {
            return Err(other(&format!("{} dimensions", shape.len()), "tokens, layers, top_k"));
        };
        let count = tokens.checked_mul(layers).and_then(|n| n.checked_mul(top_k));
        if count.and_then(|n| n.checked_mul(bytes_each)) != Some(data.len()) {
            return Err(no("its length does not fit its shape"));
        }
        let ids = match bytes_each {
            1 => data.iter().map(|&id| u16::from(id)).collect(),
            _ => data.chunks_exact(2).map(|id| u16::from_le_bytes([id[0], id[1]])).collect(),
        };
        Ok(Self { tokens, layers, top_k, ids })
    }

    /// The experts of a token in a layer.
    #[must_use]
    pub fn row(&self, token: usize, layer: usize) -> &[u16] {
        let at = (token * self.layers + layer) * self.top_k;
        self.ids.get(at..at + self.top_k).unwrap_or_default()
    }
}

/// The value after a key of the head, up to a comma.
fn entry<'a>(head: &'a str, key: &str) -> Option<&'a str> {
    let rest = &head[head.find(key)? + key.len()..];
    Some(rest.split(',').next()?.trim())
}

fn shape(head: &str) -> Option<Vec<usize>> {
    let rest = &head[head.find("'shape':")? + "'shape':".len()..];
    let inside = rest.trim_start().strip_prefix('(')?.split(')').next()?;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &[u8] = include_bytes!("../../tests/fixtures/routes_tiny.npy");

    #[test]
    fn the_array_of_a_real_server_is_read() {
        let routes = Routes::from_npy(TINY).unwrap();
        assert_eq!((routes.tokens, routes.layers, routes.top_k), (14, 2, 2));
        assert_eq!((routes.row(0, 0), routes.row(0, 1)), (&[7, 5][..], &[7, 1][..]));
        let answer: serde_json::Value = serde_json::from_slice(include_bytes!(
            "../../tests/fixtures/routed_experts_response.json"
        ))
        .unwrap();
        let text = answer["choices"][0]["routed_experts"].as_str().unwrap();
        assert_eq!(Routes::from_base64(text), Ok(routes));
    }

    #[test]
    fn two_bytes_an_id_are_read_too() {
        let mut head = b"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 2), }".to_vec();
        head.resize(64, b' ');
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(64_u32.to_le_bytes());
        bytes.extend(head);
        bytes.extend([0x2c, 0x01, 0x05, 0x00]);
        assert_eq!(Routes::from_npy(&bytes).unwrap().row(0, 0), [300, 5]);
        bytes.pop();
        assert_eq!(
            Routes::from_npy(&bytes),
            Err(RoutesError::NoArray("its length does not fit its shape"))
        );
    }

    #[test]
    fn other_arrays_are_refused() {
        let with = |from: &str, to: &str| {
            let text = String::from_utf8_lossy(&TINY[10..]).into_owned();
            let mut bytes = TINY[..10].to_vec();
            bytes.extend(text.replace(from, to).bytes());
            Routes::from_npy(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with("|u1", "<f4"), "holds <f4, expected |u1 or <u2");
        assert_eq!(with("False", "True "), "holds columns first, expected rows first");
        assert_eq!(
            with("(14, 2, 2)", "(56,)     "),
            "holds 1 dimensions, expected tokens, layers, top_k"
        );
        for cut in 0..TINY.len() {
            assert!(Routes::from_npy(&TINY[..cut]).is_err(), "cut at {cut}");
        }
        assert!(matches!(Routes::from_base64("*"), Err(RoutesError::Base64(_))));
    }
}
