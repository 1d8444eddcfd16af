//! `cargo fuzz run journal`: see `takt_fuzz::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::journal(data));
