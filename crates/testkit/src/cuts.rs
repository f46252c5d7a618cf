//! One byte stream, cut the ways a network may cut it.
//!
//! A reader of bytes must come to the same result however they arrive: that is tested by feeding it
//! the same stream whole, byte by byte, and at random places.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Where a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere: one piece.
    Whole,
    /// After every byte.
    EveryByte,
    /// At random places, the same for the same seed. Pieces are short mostly and long now and then,
    /// as headers fall apart at short ones and payloads at long ones.
    Random(u64),
}

impl Cut {
    /// Whole, byte by byte, and `seeds` random ways.
    pub fn all(seeds: u64) -> impl Iterator<Item = Self> {
        [Self::Whole, Self::EveryByte].into_iter().chain((0..seeds).map(Self::Random))
    }
}

/// The pieces of `bytes`, in order, none of them empty.
#[must_use]
pub fn cuts(bytes: &[u8], cut: Cut) -> Vec<&[u8]> {
    match cut {
        Cut::Whole => pieces(bytes, || usize::MAX),
        Cut::EveryByte => pieces(bytes, || 1),
        Cut::Random(seed) => {
            let mut rng = StdRng::seed_from_u64(seed);
            pieces(bytes, move || {
                let longest = if rng.random_bool(LONG_SHARE) { LONG } else { SHORT };
                rng.random_range(1..=longest)
            })
        }
    }
}

fn pieces(bytes: &[u8], mut next_len: impl FnMut() -> usize) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at_checked(next_len()).unwrap_or((rest, &[]));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

const SHORT: usize = 7;
const LONG: usize = 4096;
const LONG_SHARE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::{Cut, cuts};

    fn stream() -> Vec<u8> {
        (0..=255).cycle().take(20_000).collect()
    }

    #[test]
    fn pieces_put_together_are_the_stream() {
        for cut in Cut::all(20) {
            assert_eq!(cuts(&stream(), cut).concat(), stream(), "{cut:?}");
        }
    }

    #[test]
    fn no_piece_is_empty_and_an_empty_stream_has_none() {
        for cut in Cut::all(20) {
            assert!(cuts(&stream(), cut).iter().all(|piece| !piece.is_empty()), "{cut:?}");
            assert!(cuts(&[], cut).is_empty(), "{cut:?}");
        }
    }

    #[test]
    fn a_stream_is_cut_nowhere_everywhere_or_at_random() {
        let stream = stream();
        assert_eq!(cuts(&stream, Cut::Whole).len(), 1);
        assert_eq!(cuts(&stream, Cut::EveryByte).len(), stream.len());
        let random = cuts(&stream, Cut::Random(1)).len();
        assert!((2..stream.len()).contains(&random), "{random} pieces");
    }

    #[test]
    fn the_same_seed_cuts_at_the_same_places() {
        let stream = stream();
        assert_eq!(cuts(&stream, Cut::Random(7)), cuts(&stream, Cut::Random(7)));
        assert_ne!(cuts(&stream, Cut::Random(7)), cuts(&stream, Cut::Random(8)));
    }
}
