//! How writers reach the primary when paces are compared.

/// One way of three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `pacing: adaptive`
    Adaptive,
    /// `pacing: binary`
    Binary,
    /// Without Sluice.
    Direct,
}

impl Way {
    /// In the order in which they take turns.
    pub const ALL: [Self; 3] = [Self::Adaptive, Self::Binary, Self::Direct];

    /// Its name; of the first two also the value of `pacing`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Binary => "binary",
            Self::Direct => "direct",
        }
    }

    /// Its colour in plots.
    #[must_use]
    pub fn colour(self) -> &'static str {
        match self {
            Self::Adaptive => "#0a7d32",
            Self::Binary => "#c07000",
            Self::Direct => "#777",
        }
    }
}
