//! `cargo fuzz run config`: see `takt_fuzz::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::config(data));
