//! Virtual clock, scripted peers, and the test of the layering.
