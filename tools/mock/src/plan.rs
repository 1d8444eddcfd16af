//! What will happen to one request, drawn before anything is done for it.
//!
//! A plan depends on the seed and on the request's key alone. The key is the request's id where the
//! client sends one (`X-Request-Id`), so a plan does not depend on the order in which requests arrive and
//! anybody who knows seed and id can draw it again; without an id it is the ordinal of the arrival.
//!
//! The draws of a plan are always the same ones in the same order (fate, first token, length, then gaps),
//! so that a limit on the length, or a share of errors set to zero, leaves everything else as it was.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use takt_time::Span;

use crate::config::TimedConfig;
use crate::distribution::SpanDistribution;

/// What tells a request from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKey<'a> {
    /// The bytes of its `X-Request-Id`.
    Id(&'a [u8]),
    /// How many generating requests came before it.
    Ordinal(u64),
}

/// A request's fate and times. Gaps between tokens are drawn as they are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    error: Option<u16>,
    ttft: Span,
    tokens: u32,
    tpot: SpanDistribution,
    rng: Xoshiro256PlusPlus,
}

impl Plan {
    /// Draws the plan of the request `key`.
    #[must_use]
    pub fn draw(config: &TimedConfig, key: PlanKey<'_>) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(config.seed ^ key.hash());
        let error = config.error_at(rng.random::<f64>());
        let ttft = config.ttft.draw(&mut rng);
        let tokens = config.tokens.draw(&mut rng);
        Self { error, ttft, tokens, tpot: config.tpot, rng }
    }

    /// The status of the error that is sent instead of an answer.
    #[must_use]
    pub fn error(&self) -> Option<u16> {
        self.error
    }

    /// From the start of service to the first token.
    #[must_use]
    pub fn ttft(&self) -> Span {
        self.ttft
    }

    /// Output tokens, before the request's own limit.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// From one token to the next: call once for each token after the first.
    pub fn next_gap(&mut self) -> Span {
        self.tpot.draw(&mut self.rng)
    }
}

impl PlanKey<'_> {
    /// Never the same for an id and an ordinal but by chance.
    pub(crate) fn hash(self) -> u64 {
        match self {
            // FNV-1a, finished by `seed_from_u64`, which mixes.
            Self::Id(id) => id.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            }),
            Self::Ordinal(ordinal) => (ordinal + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ErrorShare;

    fn config() -> TimedConfig {
        TimedConfig {
            ttft: "exp:20ms".parse().unwrap(),
            tpot: "exp:1ms".parse().unwrap(),
            tokens: "uniform:1..100".parse().unwrap(),
            ..TimedConfig::default()
        }
    }

    fn gaps(mut plan: Plan) -> Vec<Span> {
        (0..5).map(|_| plan.next_gap()).collect()
    }

    #[test]
    fn a_plan_is_the_same_whenever_it_is_drawn_and_differs_by_seed_and_key() {
        let config = config();
        let plan = Plan::draw(&config, PlanKey::Id(b"abc"));
        assert_eq!(plan, Plan::draw(&config, PlanKey::Id(b"abc")));
        for other in [PlanKey::Id(b"abd"), PlanKey::Ordinal(0), PlanKey::Ordinal(1)] {
            assert_ne!(gaps(plan.clone()), gaps(Plan::draw(&config, other)));
        }
        let reseeded = TimedConfig { seed: 1, ..config };
        assert_ne!(gaps(plan), gaps(Plan::draw(&reseeded, PlanKey::Id(b"abc"))));
    }

    #[test]
    fn errors_come_at_their_share_and_leave_the_other_draws_alone() {
        let clean = config();
        let errors =
            vec![ErrorShare { status: 429, share: 0.1 }, ErrorShare { status: 500, share: 0.2 }];
        let config = TimedConfig { errors, ..clean.clone() };
        let mut seen = [0u32; 3];
        for ordinal in 0..10_000 {
            let key = PlanKey::Ordinal(ordinal);
            let plan = Plan::draw(&config, key);
            assert_eq!(plan.ttft(), Plan::draw(&clean, key).ttft());
            seen[match plan.error() {
                None => 0,
                Some(429) => 1,
                Some(_) => 2,
            }] += 1;
        }
        // Four standard deviations of a binomial of 10,000 are below 200.
        for (count, expect) in seen.into_iter().zip([7_000u32, 1_000, 2_000]) {
            assert!(count.abs_diff(expect) < 200, "{seen:?}");
        }
    }
}
