//! The paged key-value cache: blocks that are in use, free, or free and still worth finding.
//!
//! A block with a hash can be found until it is given to somebody else. Free blocks are given out in the
//! order in which they were freed, and a request frees its last block first, so the beginnings of prompts
//! stay longest.

use std::collections::{BTreeMap, HashMap};

/// A block's number.
pub(super) type BlockId = u32;

/// All blocks.
#[derive(Debug)]
pub(super) struct Pool {
    blocks: Vec<Block>,
    /// Free blocks by the moment they were freed.
    free: BTreeMap<u64, BlockId>,
    /// Blocks that can be found.
    by_hash: HashMap<u64, BlockId>,
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    users: u32,
    hash: Option<u64>,
    /// Its key in `free` while it has no users.
    freed: u64,
}

impl Pool {
    pub(super) fn new(blocks: u32) -> Self {
        let free: BTreeMap<u64, BlockId> = (0..blocks).map(|id| (u64::from(id), id)).collect();
        let block = |id| Block { freed: u64::from(id), ..Block::default() };
        Self {
            blocks: (0..blocks).map(block).collect(),
            free,
            by_hash: HashMap::new(),
            clock: u64::from(blocks),
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn free(&self) -> u64 {
        self.free.len() as u64
    }

    /// How many blocks from the first on can be found.
    pub(super) fn known(&self, hashes: &[u64]) -> usize {
        hashes.iter().take_while(|hash| self.by_hash.contains_key(hash)).count()
    }

    /// Gives a request the known blocks of `hashes` and as many new ones as make up `upto`; nothing when
    /// there are too few.
    pub(super) fn admit(&mut self, hashes: &[u64], upto: usize) -> Option<Vec<BlockId>> {
        let found: Vec<BlockId> =
            hashes.iter().map_while(|hash| self.by_hash.get(hash)).copied().collect();
        let idle = found.iter().filter(|&&id| self.blocks[id as usize].users == 0).count();
        if upto.saturating_sub(found.len()) > self.free.len() - idle {
            return None;
        }
        let mut held = found;
        for &id in &held {
            let block = &mut self.blocks[id as usize];
            if block.users == 0 {
                self.free.remove(&block.freed);
            }
            block.users += 1;
        }
        let grown = self.grow(&mut held, upto);
        debug_assert!(grown, "counted above");
        Some(held)
    }

    /// Adds new blocks to what a request holds until it has `upto`; none of them when there are too few.
    pub(super) fn grow(&mut self, held: &mut Vec<BlockId>, upto: usize) -> bool {
        let more = upto.saturating_sub(held.len());
        if more > self.free.len() {
            return false;
        }
        for _ in 0..more {
            let Some((_, id)) = self.free.pop_first() else { return false };
            let block = &mut self.blocks[id as usize];
            if let Some(hash) = block.hash.take() {
                self.by_hash.remove(&hash);
            }
            block.users = 1;
            held.push(id);
        }
        true
    }

    /// Makes a block findable, unless another with the same content is.
    pub(super) fn know(&mut self, id: BlockId, hash: u64) {
        if let std::collections::hash_map::Entry::Vacant(place) = self.by_hash.entry(hash) {
            place.insert(id);
            self.blocks[id as usize].hash = Some(hash);
        }
    }

    /// Takes back what a request holds.
    pub(super) fn release(&mut self, held: &mut Vec<BlockId>) {
        for id in held.drain(..).rev() {
            let block = &mut self.blocks[id as usize];
            block.users -= 1;
            if block.users == 0 {
                block.freed = self.clock;
                self.free.insert(self.clock, id);
                self.clock += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_shared_found_again_and_given_away_last() {
        let mut pool = Pool::new(4);
        let hashes = [10, 20];
        let mut one = pool.admit(&hashes, 3).unwrap();
        assert_eq!((pool.known(&hashes), pool.free()), (0, 1));
        pool.know(one[0], 10);
        pool.know(one[1], 20);
        // The second shares two blocks and takes the last one.
        let mut two = pool.admit(&hashes, 3).unwrap();
        assert_eq!((&two[..2], pool.free()), (&one[..2], 0));
        assert!(!pool.grow(&mut two, 4) && two.len() == 3);
        assert_eq!(pool.admit(&hashes, 3), None);
        pool.release(&mut one);
        assert_eq!((pool.free(), pool.known(&hashes)), (1, 2));
        pool.release(&mut two);
        assert_eq!((pool.free(), pool.known(&hashes)), (4, 2));
        // Blocks without content go first, then the tail of the prompt, then its beginning.
        let mut others = pool.admit(&[], 3).unwrap();
        assert_eq!(pool.known(&hashes), 1);
        assert!(pool.grow(&mut others, 4));
        assert_eq!((pool.known(&hashes), pool.free()), (0, 0));
        pool.release(&mut others);
        assert_eq!(pool.free(), pool.total());
    }
}
