//! The classes of statements, which rules name.

/// What kind of statement it is.
///
/// The order is strictness, for text of several statements: the strictest class counts. Classes
/// that no rule can hold back come first. `Ddl` stands below everything that `write` in a rule
/// covers, because rules name `[write]` unless told otherwise: were it above, `DROP TABLE x` in
/// front of an INSERT would carry the INSERT past every such rule. A rule naming `[ddl]` or
/// `[read]` alone is served by [`ClassSet`], which keeps every class the text contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// SET, USE, PREPARE, DEALLOCATE, SIGNAL, GET DIAGNOSTICS.
    Session,
    /// BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, XA.
    Transaction,
    /// SHOW, KILL, FLUSH, ANALYZE TABLE, CHECK, LOCK, UNLOCK, RENAME, GRANT, accounts, replication.
    Admin,
    /// SELECT without a lock (INTO OUTFILE too), TABLE, VALUES, DO, HANDLER OPEN and READ, EXPLAIN and DESCRIBE.
    Read,
    /// CREATE, ALTER, DROP, TRUNCATE, OPTIMIZE, REPAIR, IMPORT TABLE. CREATE TABLE from a query is
    /// [`Class::Write`] as well.
    Ddl,
    /// SELECT … FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE, at any depth.
    LockingRead,
    /// INSERT, UPDATE, DELETE, REPLACE, WITH … UPDATE or DELETE; whatever moves a MariaDB sequence
    /// on.
    Write,
    /// LOAD DATA, LOAD XML.
    Load,
    /// CALL; with the class that it has without them, any text that names functions which are not
    /// built in.
    Call,
    /// Whatever cannot be read, an empty statement, EXECUTE, EXECUTE IMMEDIATE, BEGIN NOT ATOMIC.
    Unknown,
}

impl Class {
    /// Every class, in the order in which they are documented.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::LockingRead,
        Self::Write,
        Self::Load,
        Self::Call,
        Self::Ddl,
        Self::Transaction,
        Self::Session,
        Self::Admin,
        Self::Unknown,
    ];

    /// Whether a statement of this class may take locks or write.
    #[must_use]
    pub const fn works(self) -> bool {
        match self {
            Self::LockingRead
            | Self::Write
            | Self::Load
            | Self::Call
            | Self::Ddl
            | Self::Unknown => true,
            Self::Read | Self::Transaction | Self::Session | Self::Admin => false,
        }
    }

    /// How many classes are less strict: below the number of [`Class::ALL`].
    #[must_use]
    #[inline]
    pub fn strictness(self) -> usize {
        usize::try_from(bit(self).trailing_zeros()).unwrap_or_default()
    }

    /// The name in the file, in metrics and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::LockingRead => "locking_read",
            Self::Write => "write",
            Self::Load => "load",
            Self::Call => "call",
            Self::Ddl => "ddl",
            Self::Transaction => "transaction",
            Self::Session => "session",
            Self::Admin => "admin",
            Self::Unknown => "unknown",
        }
    }

    /// The class of that name, as [`Class::as_str`] writes it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Whether `write` in a rule's `statements` covers this class.
    #[must_use]
    pub fn is_covered_by_write(self) -> bool {
        match self {
            Self::Write | Self::LockingRead | Self::Call | Self::Load | Self::Unknown => true,
            Self::Read | Self::Ddl | Self::Transaction | Self::Session | Self::Admin => false,
        }
    }

    /// Whether a rule can hold this class back at all.
    #[must_use]
    pub const fn is_gateable(self) -> bool {
        match self {
            Self::Read
            | Self::LockingRead
            | Self::Write
            | Self::Load
            | Self::Call
            | Self::Ddl
            | Self::Unknown => true,
            Self::Transaction | Self::Session | Self::Admin => false,
        }
    }
}

/// Several classes at once: all those that a text of several statements contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct ClassSet(u16);

impl ClassSet {
    /// This set and `class`.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self(self.0 | bit(class))
    }

    /// What is in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set, and not `class`.
    #[must_use]
    pub fn without(self, class: Class) -> Self {
        Self(self.0 & !bit(class))
    }

    /// This set, of a text that holds RENAME TABLE or CLONE INSTANCE: they are [`Class::Admin`], and
    /// nothing delays them, but they change schema or data as [`Class::Ddl`] does.
    #[must_use]
    pub(crate) fn with_denied_as_ddl(self) -> Self {
        Self(self.0 | DENIED_AS_DDL)
    }

    /// Whether a rule that denies [`Class::Ddl`] refuses the text, whatever classes it has.
    #[must_use]
    pub fn is_denied_as_ddl(self) -> bool {
        self.0 & DENIED_AS_DDL != 0
    }

    /// Whether a rule can hold something of it back.
    #[must_use]
    pub(crate) fn is_gateable(self) -> bool {
        self.0 & GATEABLE != 0
    }

    /// Whether something of it may take locks or write.
    pub(crate) fn works(self) -> bool {
        self.0 & WORKS != 0
    }

    /// Whether `class` is in the set.
    #[must_use]
    pub fn contains(self, class: Class) -> bool {
        self.0 & bit(class) != 0
    }

    /// Whether the sets have a class in common: a rule's classes and a statement's.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 & !DENIED_AS_DDL != 0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The strictest class of the set.
    #[must_use]
    pub fn strictest(self) -> Option<Class> {
        let highest = (self.0 & !DENIED_AS_DDL).checked_ilog2()?;
        BY_BIT.get(usize::try_from(highest).ok()?).copied()
    }
}

impl FromIterator<Class> for ClassSet {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::default(), Self::with)
    }
}

/// See [`ClassSet::with_denied_as_ddl`]. No class has this bit.
const DENIED_AS_DDL: u16 = 1 << 15;

/// The classes in the order of their bits, which is that of their strictness.
const BY_BIT: [Class; 10] = [
    Class::Session,
    Class::Transaction,
    Class::Admin,
    Class::Read,
    Class::Ddl,
    Class::LockingRead,
    Class::Write,
    Class::Load,
    Class::Call,
    Class::Unknown,
];

/// The bits of the classes of which this holds.
macro_rules! bits_of {
    ($holds:ident) => {{
        let mut bits = 0;
        let mut classes: &[Class] = &Class::ALL;
        while let [class, rest @ ..] = classes {
            if class.$holds() {
                bits |= bit(*class);
            }
            classes = rest;
        }
        bits
    }};
}

/// The bits of the classes that a rule can hold back.
const GATEABLE: u16 = bits_of!(is_gateable);

/// The bits of the classes that may take locks or write.
const WORKS: u16 = bits_of!(works);

const fn bit(class: Class) -> u16 {
    match class {
        Class::Session => 1,
        Class::Transaction => 1 << 1,
        Class::Admin => 1 << 2,
        Class::Read => 1 << 3,
        Class::Ddl => 1 << 4,
        Class::LockingRead => 1 << 5,
        Class::Write => 1 << 6,
        Class::Load => 1 << 7,
        Class::Call => 1 << 8,
        Class::Unknown => 1 << 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_again_by_its_name() {
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), Some(class));
        }
        assert_eq!(Class::parse("WRITE"), None);
    }

    #[test]
    fn whatever_write_covers_is_stricter_than_what_it_does_not() {
        for loose in Class::ALL.into_iter().filter(|class| !class.is_covered_by_write()) {
            for strict in Class::ALL.into_iter().filter(|class| class.is_covered_by_write()) {
                assert!(loose < strict, "{loose:?} {strict:?}");
            }
        }
        assert!(Class::ALL.into_iter().all(|class| class <= Class::Unknown));
    }

    #[test]
    fn a_set_keeps_its_classes_in_the_order_of_their_strictness() {
        assert!(BY_BIT.is_sorted());
        for (at, class) in BY_BIT.into_iter().enumerate() {
            assert_eq!(class.strictness(), at, "{class:?}");
            assert_eq!(ClassSet::default().with(class).is_gateable(), class.is_gateable());
        }
        assert_eq!(ClassSet::from_iter(BY_BIT), ClassSet::from_iter(Class::ALL));
    }

    #[test]
    fn what_no_rule_can_hold_is_below_what_a_rule_can_hold() {
        assert!(Class::Admin < Class::Read);
        assert!(Class::Read < Class::Ddl);
    }

    #[test]
    fn a_set_knows_its_strictest_class() {
        let set: ClassSet = [Class::Read, Class::Ddl, Class::Session].into_iter().collect();
        assert_eq!(set.strictest(), Some(Class::Ddl));
        assert!(set.contains(Class::Read) && !set.contains(Class::Write));
        assert!(set.intersects([Class::Read].into_iter().collect()));
        assert_eq!(ClassSet::default().strictest(), None);
    }

    #[test]
    fn what_is_denied_as_ddl_has_no_other_class_for_it() {
        let admin = ClassSet::default().with(Class::Admin);
        let renames = admin.with_denied_as_ddl();
        assert!(renames.is_denied_as_ddl() && !admin.is_denied_as_ddl() && renames != admin);
        assert_eq!(renames.strictest(), Some(Class::Admin));
        assert!(!renames.contains(Class::Ddl) && !renames.is_gateable());
        let also = ClassSet::default().with(Class::Ddl).with_denied_as_ddl();
        assert!(!renames.intersects(also));
        assert!(renames.union(also).without(Class::Admin).is_denied_as_ddl());
    }
}
