//! Dice, signals, gate, queue and permits on a virtual clock.
