//! `cargo fuzz run chat_delta`: see `takt_fuzz::chat_delta`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::chat_delta(data));
