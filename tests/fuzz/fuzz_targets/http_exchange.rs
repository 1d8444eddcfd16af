//! `cargo fuzz run http_exchange`: see `takt_fuzz::http_exchange`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::http_exchange(data));
