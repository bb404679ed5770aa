//! A set of operations that the user names: what a thread may be asked to do, and what an executor asks for.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::BitOr;

/// A set of up to 64 kinds of operation. What each number stands for is the user's: reading from a disk, blocking,
/// sending to a peer.
///
/// An executor [`requires`](crate::ExecutorBuilder::requires) a set, a thread allows one
/// ([`fitness::allow`](crate::fitness::allow)); see [`fitness`](crate::fitness). The idea is `ThreadOperation` of
/// Apache Ignite 3.
///
/// ```
/// use work_permit::Operations;
/// const READ: Operations = Operations::only(0).unwrap();
/// const WRITE: Operations = Operations::only(1).unwrap();
/// const STORAGE: Operations = READ.union(WRITE);
/// assert!(STORAGE.contains(READ) && !READ.contains(STORAGE));
/// assert_eq!(format!("{STORAGE:?}"), "Operations{0, 1}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Operations(u64);

impl Operations {
    /// No operation: what an executor requires unless it says otherwise.
    ///
    /// ```
    /// use work_permit::Operations;
    /// assert!(Operations::NONE.is_empty() && Operations::ALL.contains(Operations::NONE));
    /// ```
    pub const NONE: Self = Self(0);

    /// Every operation: what the workers of a pool allow.
    ///
    /// ```
    /// use work_permit::Operations;
    /// assert!(Operations::ALL.contains(Operations::only(63).unwrap()));
    /// ```
    pub const ALL: Self = Self(u64::MAX);

    /// The set of this one operation; `None` for a number above 63. In a `const`, `unwrap` refuses such a number
    /// when the program is compiled.
    ///
    /// ```
    /// use work_permit::Operations;
    /// const BLOCK: Operations = Operations::only(5).unwrap();
    /// assert!(Operations::only(63).is_some());
    /// assert!(Operations::only(64).is_none() && Operations::only(u32::MAX).is_none());
    /// # assert!(!BLOCK.is_empty());
    /// ```
    #[must_use]
    pub const fn only(number: u32) -> Option<Self> {
        match 1_u64.checked_shl(number) {
            Some(bit) => Some(Self(bit)),
            None => None,
        }
    }

    /// The operations of both sets; `|` outside of a `const`.
    ///
    /// ```
    /// # use work_permit::Operations;
    /// let (a, b) = (Operations::only(0).unwrap(), Operations::only(1).unwrap());
    /// assert_eq!(a.union(b), a | b);
    /// ```
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every operation of `other` is in this set.
    ///
    /// ```
    /// # use work_permit::Operations;
    /// let (a, b) = (Operations::only(0).unwrap(), Operations::only(1).unwrap());
    /// assert!((a | b).contains(a) && !a.contains(a | b));
    /// assert!(a.contains(Operations::NONE));
    /// ```
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether there is none in it.
    ///
    /// ```
    /// # use work_permit::Operations;
    /// assert!(Operations::default().is_empty());
    /// assert!(!Operations::only(0).unwrap().is_empty());
    /// ```
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Operations {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operations")?;
        f.debug_set().entries((0..u64::BITS).filter(|number| self.0 >> number & 1 == 1)).finish()
    }
}
