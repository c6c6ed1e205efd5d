//! How long `compare` takes. It refuses to assert: numbers are for people.

fn main() {}
