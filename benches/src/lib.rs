//! Benches: micro benchmarks and side by side runs with peers.
