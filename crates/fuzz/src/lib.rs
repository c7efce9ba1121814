//! What is done with foreign bytes ([`tried`]), for libFuzzer. The same is done with what was found
//! once by `crates/cli/tests/corpus.rs`, without it.

pub mod tried;
