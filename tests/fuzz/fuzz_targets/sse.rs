//! `cargo fuzz run sse`: see `takt_fuzz::sse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::sse(data));
