//! `cargo fuzz run endpoint_url`: see `takt_fuzz::endpoint_url`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::endpoint_url(data));
