//! See [`loadstone_fuzz::tried::journal`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loadstone_fuzz::tried::journal(data));
