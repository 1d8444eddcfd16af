//! `cargo fuzz run request_parser`: see `takt_fuzz::request_parser`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| takt_fuzz::request_parser(data));
