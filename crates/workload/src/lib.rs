//! The benchmark catalogue: definitions, install, run, parse into samples.
