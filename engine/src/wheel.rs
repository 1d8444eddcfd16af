//! A hierarchical timer wheel, exact to the nanosecond.
//!
//! Eleven levels of 64 slots cover the whole 64-bit clock. A timer sits on the level of the highest
//! six-bit digit in which its deadline differs from `elapsed`, the wheel's own position, in the slot of
//! that digit. So
//!
//! - every timer of a lower level is due before every timer of a higher one, and on one level slots are
//!   due in index order: the first timer is found with two bit scans;
//! - timers with one deadline always share a slot, and slots keep call order, also when they cascade:
//!   ties fire in the order in which they were armed;
//! - a slot of level 0 is one nanosecond, so nothing is ever rounded.
//!
//! Insert and cancel are O(1). A timer cascades once a level at most. [`Wheel::next_deadline`] is exact;
//! it costs one walk through the first slot when that slot's earliest timer was cancelled, and is O(1)
//! otherwise. Timers armed for an instant that the wheel has passed wait in a short sorted list.
//!
//! Entries live in a slab that grows to the greatest number armed at once and is reused from then on.

use takt_time::Nanos;

/// Names an armed timer. Stale keys are recognised: a key is good for one arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

/// The wheel; `T` is what a timer carries.
#[derive(Debug)]
pub struct Wheel<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    armed: usize,
    elapsed: u64,
    /// Bit l is set when level l has a timer.
    levels: u16,
    /// Per level, bit s is set when slot s has a timer.
    occupied: [u64; LEVELS],
    slots: Vec<Slot>,
    /// Armed for the past: entry indices in the order of (deadline, call).
    overdue: std::collections::VecDeque<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    deadline: u64,
    generation: u32,
    prev: u32,
    next: u32,
    place: u16,
    payload: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    tail: u32,
    /// Earliest deadline, unless `stale`, when it is only a lower bound.
    earliest: u64,
    stale: bool,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            armed: 0,
            elapsed: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: vec![EMPTY; LEVELS * SLOTS],
            overdue: std::collections::VecDeque::new(),
        }
    }
}

impl<T> Wheel<T> {
    /// Timers armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.armed
    }

    /// Whether no timer is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.armed == 0
    }

    /// Arms a timer for `at`, which may be past.
    pub fn insert(&mut self, at: Nanos, payload: T) -> TimerKey {
        let deadline = at.as_nanos();
        let index = self.allocate(deadline, payload);
        self.armed += 1;
        if deadline < self.elapsed {
            let place = self
                .overdue
                .partition_point(|&other| self.entries[other as usize].deadline <= deadline);
            self.overdue.insert(place, index);
            self.entries[index as usize].place = OVERDUE;
        } else {
            self.link(index);
        }
        TimerKey { index, generation: self.entries[index as usize].generation }
    }

    /// Disarms a timer and gives back what it carried; `None` when it has fired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation != key.generation || entry.payload.is_none() {
            return None;
        }
        if entry.place == OVERDUE {
            self.overdue.retain(|&index| index != key.index);
        } else {
            self.unlink(key.index);
        }
        self.release(key.index)
    }

    /// The earliest deadline armed.
    pub fn next_deadline(&mut self) -> Option<Nanos> {
        if let Some(&index) = self.overdue.front() {
            return Some(Nanos::from_nanos(self.entries[index as usize].deadline));
        }
        let (_, place) = self.first_slot()?;
        if self.slots[place].stale {
            self.slots[place].earliest = self.walk_for_earliest(place);
            self.slots[place].stale = false;
        }
        Some(Nanos::from_nanos(self.slots[place].earliest))
    }

    /// Takes the first timer whose deadline is at or before `now`, in order of (deadline, call).
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let now = now.as_nanos();
        if let Some(&index) = self.overdue.front()
            && self.entries[index as usize].deadline <= now
        {
            self.overdue.pop_front();
            return Some(self.take(index));
        }
        loop {
            let (level, place) = self.first_slot()?;
            let start = self.slot_start(level, place % SLOTS);
            // The slot's earliest timer is never before its start nor before the bound kept for it.
            if start > now || self.slots[place].earliest > now {
                return None;
            }
            self.elapsed = start;
            if level == 0 {
                let index = self.slots[place].head;
                self.unlink(index);
                return Some(self.take(index));
            }
            self.cascade(place);
        }
    }

    /// Moves the timers of a slot whose start the wheel has reached to lower levels, in order.
    fn cascade(&mut self, place: usize) {
        let mut index = self.slots[place].head;
        self.clear(place);
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.link(index);
            index = next;
        }
    }

    fn take(&mut self, index: u32) -> (Nanos, T) {
        let deadline = Nanos::from_nanos(self.entries[index as usize].deadline);
        let payload = self.release(index).expect("a linked entry carries a payload");
        (deadline, payload)
    }

    /// The lowest level with a timer and its first slot's place.
    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = self.occupied[level].trailing_zeros() as usize;
        Some((level, level * SLOTS + slot))
    }

    /// The first instant that belongs to `slot` of `level`, seen from `elapsed`.
    fn slot_start(&self, level: usize, slot: usize) -> u64 {
        let shift = level * BITS;
        let above = self.elapsed.checked_shr((shift + BITS) as u32).unwrap_or(0);
        above.checked_shl((shift + BITS) as u32).unwrap_or(0) | (slot as u64) << shift
    }

    fn walk_for_earliest(&self, place: usize) -> u64 {
        let mut earliest = u64::MAX;
        let mut index = self.slots[place].head;
        while index != NONE {
            let entry = &self.entries[index as usize];
            earliest = earliest.min(entry.deadline);
            index = entry.next;
        }
        earliest
    }

    /// Appends an entry to the slot that its deadline has, seen from `elapsed`.
    fn link(&mut self, index: u32) {
        let deadline = self.entries[index as usize].deadline;
        let differing = (deadline ^ self.elapsed) | 1;
        let level = (63 - differing.leading_zeros()) as usize / BITS;
        let slot = (deadline >> (level * BITS)) as usize % SLOTS;
        let place = level * SLOTS + slot;
        let tail = self.slots[place].tail;
        let entry = &mut self.entries[index as usize];
        (entry.prev, entry.next, entry.place) = (tail, NONE, place as u16);
        let slot_ref = &mut self.slots[place];
        slot_ref.tail = index;
        slot_ref.earliest = slot_ref.earliest.min(deadline);
        if tail == NONE {
            slot_ref.head = index;
            self.occupied[level] |= 1 << slot;
            self.levels |= 1 << level;
        } else {
            self.entries[tail as usize].next = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let Entry { prev, next, place, deadline, .. } = self.entries[index as usize];
        let place = usize::from(place);
        match prev {
            NONE => self.slots[place].head = next,
            _ => self.entries[prev as usize].next = next,
        }
        match next {
            NONE => self.slots[place].tail = prev,
            _ => self.entries[next as usize].prev = prev,
        }
        if self.slots[place].head == NONE {
            self.clear(place);
        } else if place >= SLOTS && deadline == self.slots[place].earliest {
            self.slots[place].stale = true;
        }
    }

    fn clear(&mut self, place: usize) {
        self.slots[place] = EMPTY;
        let (level, slot) = (place / SLOTS, place % SLOTS);
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    fn allocate(&mut self, deadline: u64, payload: T) -> u32 {
        if self.free == NONE {
            let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 timers");
            self.entries.push(Entry {
                deadline,
                generation: 0,
                prev: NONE,
                next: NONE,
                place: OVERDUE,
                payload: Some(payload),
            });
            return index;
        }
        let index = self.free;
        let entry = &mut self.entries[index as usize];
        self.free = entry.next;
        entry.deadline = deadline;
        entry.payload = Some(payload);
        index
    }

    fn release(&mut self, index: u32) -> Option<T> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free;
        self.free = index;
        self.armed -= 1;
        entry.payload.take()
    }
}

const BITS: usize = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64_usize.div_ceil(BITS);
const NONE: u32 = u32::MAX;
const OVERDUE: u16 = u16::MAX;
const EMPTY: Slot = Slot { head: NONE, tail: NONE, earliest: u64::MAX, stale: false };

#[cfg(test)]
mod tests;
