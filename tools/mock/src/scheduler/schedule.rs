//! Filling a step: who gets how many tokens, and whose blocks are taken for it.

use takt_opprof::{Part, Scheduled, StepDraft};
use takt_record::PrefixCounts;
use takt_time::Nanos;

use super::core::{Core, InBatch};
use super::step::Shape;

impl Core {
    /// Requests of the batch, in their order; gives how many were thrown out for want of blocks.
    pub(super) fn schedule_running(&mut self, planner: &mut Planner<'_>) -> u64 {
        let mut preempted = 0;
        let mut at = 0;
        while let Some(&place) = self.running.get(at).filter(|_| planner.budget > 0) {
            let Some(request) = self.requests[place].as_mut() else { break };
            // Only what continues guesses: neither a prompt nor what is computed again.
            let continues = request.made > 0 && request.computed + 1 == request.total();
            let room = self.config.context_max.get().saturating_sub(request.total());
            let guessed = if continues { self.config.speculative.tokens.min(room) } else { 0 };
            let tokens = (request.total() + guessed - request.computed).min(planner.budget);
            let upto = blocks(request.computed + tokens, self.config.cache.block_tokens.get());
            if !self.pool.grow(&mut request.held, upto) {
                // The newest goes: it has not been looked at in this step.
                let Some(victim) = self.running.pop() else { break };
                self.preempt(victim);
                preempted += 1;
                continue;
            }
            self.plan(place, tokens, guessed, planner);
            at += 1;
        }
        preempted
    }

    /// Requests that wait, first come first served, but for those that are deferred.
    pub(super) fn schedule_waiting(
        &mut self,
        planner: &mut Planner<'_>,
        now: Nanos,
    ) -> PrefixCounts {
        let mut prefix = PrefixCounts::default();
        let block_tokens = self.config.cache.block_tokens.get();
        let mut at = 0;
        while planner.budget > 0 && self.running.len() < self.config.batch.requests.get() as usize {
            let Some(&place) = self.waiting.get(at) else { break };
            let Some(request) = self.requests[place].as_mut() else { break };
            if request.ready_at > now {
                at += 1;
                continue;
            }
            let total = request.total();
            // One token at least has to be computed, or there would be nothing to go on from.
            let most = ((total - 1) / block_tokens) as usize;
            let mut found = 0;
            if self.config.cache.prefixes {
                let hashes = &request.prompt.blocks[..request.prompt.blocks.len().min(most)];
                found = self.pool.known(hashes);
                let hits = found as u64 * u64::from(block_tokens);
                note(&mut prefix, request.preempted, u64::from(total), hits);
            }
            let computed = found as u32 * block_tokens;
            let tokens = (total - computed).min(planner.budget);
            let upto = blocks(computed + tokens, block_tokens);
            let Some(held) = self.pool.admit(&request.prompt.blocks[..found], upto) else { break };
            (request.held, request.computed, request.known) = (held, computed, found);
            self.waiting.remove(at);
            self.running.push(place);
            self.plan(place, tokens, 0, planner);
        }
        prefix
    }

    /// Puts so many tokens of a request into the step.
    fn plan(&mut self, place: usize, tokens: u32, guessed: u32, planner: &mut Planner<'_>) {
        let Some(request) = self.requests[place].as_mut() else { return };
        let (before, after) = (request.computed, request.computed + tokens);
        let part = if request.made > 0 {
            // More than the token that was made last was missing: a preemption threw it away.
            if before + 1 < request.total() { Part::Resumed } else { Part::Decode }
        } else {
            match (request.begun, after >= request.prompt.tokens) {
                (false, false) => Part::First,
                (true, false) => Part::Middle,
                (true, true) => Part::Last,
                (false, true) => Part::Unsplit,
            }
        };
        request.begun = true;
        request.computed = after;
        if self.config.cache.prefixes {
            let whole = (after / self.config.cache.block_tokens.get()) as usize;
            let whole = whole.min(request.prompt.blocks.len());
            for at in request.known..whole {
                self.pool.know(request.held[at], request.prompt.blocks[at]);
            }
            request.known = request.known.max(whole);
        }
        planner.take(tokens, after, part);
        planner.uniform &= part == Part::Decode && guessed == self.config.speculative.tokens;
        let guessed = if part == Part::Decode { guessed.min(tokens - 1) } else { 0 };
        planner.batch.push(InBatch { place, serial: request.serial, guessed });
    }

    fn preempt(&mut self, place: usize) {
        let Some(request) = self.requests[place].as_mut() else { return };
        self.pool.release(&mut request.held);
        (request.computed, request.known, request.begun) = (0, 0, false);
        request.preempted = true;
        self.waiting.push_front(place);
    }
}

/// A step while it is filled.
pub(super) struct Planner<'a> {
    pub(super) draft: &'a mut StepDraft,
    pub(super) shape: &'a mut Shape,
    /// Tokens that still fit.
    pub(super) budget: u32,
    pub(super) batch: Vec<InBatch>,
    /// Nothing but decodes of one length.
    pub(super) uniform: bool,
}

impl Planner<'_> {
    fn take(&mut self, tokens: u32, context_after: u32, part: Part) {
        self.budget -= tokens;
        let (tokens, context_after) = (u64::from(tokens), u64::from(context_after));
        self.draft.schedule(Scheduled { tokens, context_after, part });
        let shape = &mut self.shape;
        shape.context_tokens += context_after;
        match part {
            Part::Decode | Part::Resumed => {
                shape.decodes += 1;
                shape.decode_tokens += tokens;
                shape.resumed_tokens += if part == Part::Resumed { tokens } else { 0 };
            }
            Part::First | Part::Middle | Part::Last | Part::Unsplit => {
                shape.prompts += 1;
                shape.prompt_tokens += tokens;
            }
        }
    }
}

fn note(prefix: &mut PrefixCounts, preempted: bool, queries: u64, hits: u64) {
    let (of_requests, of_queries, of_hits) = if preempted {
        (&mut prefix.preempted_requests, &mut prefix.preempted_queries, &mut prefix.preempted_hits)
    } else {
        (&mut prefix.requests, &mut prefix.queries, &mut prefix.hits)
    };
    *of_requests += 1;
    *of_queries += queries;
    *of_hits += hits;
}

/// Blocks that hold so many tokens.
fn blocks(tokens: u32, block_tokens: u32) -> usize {
    tokens.div_ceil(block_tokens) as usize
}
