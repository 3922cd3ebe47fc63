//! Guards a hot path.
fn main() {}
