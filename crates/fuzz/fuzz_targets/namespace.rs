//! See [`loadstone_fuzz::tried::namespace`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| loadstone_fuzz::tried::namespace(data));
