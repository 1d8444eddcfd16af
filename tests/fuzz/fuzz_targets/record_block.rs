//! `cargo fuzz run record_block`: see `takt_fuzz::record_block`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::record_block(data));
