//! From a step's composition to the time of each family of kernels.
//!
//! Each part of the composition has a price ([`CostModel`]), and a price is shared out over the families in
//! fixed proportions, roughly those of a mixture-of-experts model on one large GPU.

use super::config::CostModel;
use super::step::Shape;
use super::timeline::Family;

/// Shares of the prices of [`CostModel`], in thousandths: step, prompt token, decode token, padding token,
/// request, context. Each column adds up to 1,000.
const SHARES: [(Family, [u64; 6]); Family::COUNT] = [
    (Family::Copies, [5, 0, 0, 0, 0, 0]),
    (Family::Collective, [100, 30, 90, 80, 0, 0]),
    (Family::Attention, [60, 60, 20, 0, 100, 1000]),
    (Family::CacheWrite, [20, 15, 15, 0, 0, 0]),
    (Family::Router, [80, 30, 60, 60, 0, 0]),
    (Family::Experts, [330, 520, 380, 400, 0, 0]),
    (Family::Sampling, [25, 0, 10, 0, 800, 0]),
    (Family::Activation, [20, 20, 30, 40, 0, 0]),
    (Family::Norm, [50, 25, 50, 60, 0, 0]),
    (Family::Rope, [20, 10, 20, 40, 0, 0]),
    (Family::Dense, [270, 280, 300, 300, 0, 0]),
    (Family::Fused, [10, 10, 15, 20, 0, 0]),
    (Family::Input, [10, 0, 10, 0, 100, 0]),
];

impl CostModel {
    /// Time of each family on one rank, nanoseconds, in the order of [`Family::ALL`].
    pub(super) fn families(&self, seed: u64, shape: &Shape, rank: u32) -> [u64; Family::COUNT] {
        let price =
            |span: takt_time::Span, count: u64| u128::from(span.as_nanos()) * u128::from(count);
        let prices = [
            price(self.step, 1),
            price(self.prompt_token, shape.prompt_tokens + shape.resumed_tokens),
            price(self.decode_token, shape.decode_tokens - shape.resumed_tokens),
            price(self.padding_token, shape.bucket_tokens - shape.tokens()),
            price(self.request, shape.requests()),
            price(self.context_1k, shape.context_tokens) / 1000,
        ];
        let factor = 1.0 + self.noise * (2.0 * unit(seed, shape.index, u64::from(rank)) - 1.0);
        let mut families = [0; Family::COUNT];
        for (family, shares) in SHARES {
            if family == Family::Collective && self.ranks.get() == 1 {
                continue;
            }
            let thousandths: u128 =
                prices.iter().zip(shares).map(|(price, share)| price * u128::from(share)).sum();
            families[family as usize] = (thousandths as f64 / 1000.0 * factor).round() as u64;
        }
        families
    }
}

/// A number in 0 to 1 that depends on these three alone (the finisher of SplitMix64).
pub(super) fn unit(seed: u64, one: u64, other: u64) -> f64 {
    let mut x = seed ^ one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.rotate_left(32);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_price_is_shared_out_whole_and_in_the_order_of_families() {
        for column in 0..6 {
            assert_eq!(SHARES.iter().map(|(_, shares)| shares[column]).sum::<u64>(), 1000);
        }
        assert!(SHARES.iter().zip(Family::ALL).all(|((family, _), other)| *family == other));
    }

    #[test]
    fn a_step_costs_what_its_parts_cost() {
        let cost = CostModel { noise: 0.0, ..CostModel::default() };
        let shape = Shape {
            prompts: 1,
            prompt_tokens: 100,
            decodes: 4,
            decode_tokens: 4,
            context_tokens: 2_000,
            bucket_tokens: 104,
            ..Shape::default()
        };
        let sum: u64 = cost.families(0, &shape, 0).iter().sum();
        // 3 ms, 100 tokens of 8 us, 4 of 12 us, 5 requests of 6 us, two thousand of 15 us.
        assert_eq!(sum, 3_000_000 + 800_000 + 48_000 + 30_000 + 30_000);
        let padded = Shape { bucket_tokens: 112, ..shape };
        assert_eq!(cost.families(0, &padded, 0).iter().sum::<u64>(), sum + 8 * 3_000);
        // Computed again costs as a prompt does.
        let resumed = Shape { resumed_tokens: 4, ..shape };
        assert_eq!(cost.families(0, &resumed, 0).iter().sum::<u64>(), sum - 4 * 4_000);
    }
}
