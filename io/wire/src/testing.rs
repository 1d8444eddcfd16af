//! What the tests of several modules share.

/// Cuts `wire` at the given places (modulo its length).
pub(crate) fn split<'a>(wire: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
    cuts.extend([0, wire.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|w| &wire[w[0]..w[1]]).collect()
}
