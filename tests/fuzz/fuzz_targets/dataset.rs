//! `cargo fuzz run dataset`: see `takt_fuzz::dataset`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::dataset(data));
