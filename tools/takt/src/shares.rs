//! How the reactors of a run share its phases.

use takt_actors::{Claims, Share, part};

/// Which of the reactors this is, and what they have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// From 0.
    pub(crate) index: u64,
    of: u64,
    /// Of each phase.
    claims: Vec<Claims>,
}

impl Shares {
    /// The only reactor.
    pub(crate) fn alone(phases: usize) -> Self {
        Self::each(1, phases).remove(0)
    }

    /// Of `of` reactors, each.
    pub(crate) fn each(of: u64, phases: usize) -> Vec<Self> {
        let claims: Vec<Claims> = std::iter::repeat_with(Claims::default).take(phases).collect();
        (0..of).map(|index| Self { index, of, claims: claims.clone() }).collect()
    }

    /// What falls to this reactor of `total` places.
    pub(crate) fn part(&self, total: u64) -> u64 {
        part(total, self.index, self.of)
    }

    /// The same of what each reactor needs one of at least.
    pub(crate) fn part_or_one(&self, total: usize) -> usize {
        (self.part(total as u64) as usize).max(1)
    }

    /// Which requests of the phase in `place` are this reactor's: of a schedule, or of a closed loop.
    pub(crate) fn of_phase(&self, place: usize, timed: bool) -> Share {
        match (self.of, timed) {
            (1, _) => Share::All,
            (of, true) => Share::Nth { first: self.index, of },
            (_, false) => Share::Claimed(self.claims[place].clone()),
        }
    }
}
