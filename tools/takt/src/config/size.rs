//! Sizes as people write them: `500MB`, `2GiB`, or a plain number of bytes.

/// Reads a size: a number and `B`, `kB`, `MB`, `GB`, `TB` or their powers of two `KiB` to `TiB`.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, scale) = SIZES.iter().find(|(name, _)| *name == unit)?;
    let bytes = number.parse::<f64>().ok()? * *scale as f64;
    (bytes < u64::MAX as f64).then(|| bytes.round() as u64)
}

/// Units of sizes, in lower case.
const SIZES: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [("500MB", 500_000_000), ("1.5 GiB", 3 << 29), ("70000", 70_000)] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for wrong in ["", "MB", "1 XB", "-5MB", "1.2.3MB"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong:?}");
        }
    }
}
