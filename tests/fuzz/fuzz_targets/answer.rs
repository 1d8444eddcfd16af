//! `cargo fuzz run answer`: see `takt_fuzz::answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::answer(data));
