//! `cargo fuzz run event_delta`: see `takt_fuzz::event_delta`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::event_delta(data));
