//! Versions of the SDK: pairs of integers, never decimals.

use std::fmt;
use std::str::FromStr;

/// A release: 1.4 is followed by 2.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SdkVersion {
    /// In front of the point.
    pub major: u16,
    /// Behind it.
    pub minor: u16,
}

impl SdkVersion {
    /// The last release with the old meanings.
    pub const OLD: SdkVersion = SdkVersion { major: 1, minor: 4 };
    /// The first release with the new ones.
    pub const NEW: SdkVersion = SdkVersion { major: 2, minor: 10 };

    /// A version.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> SdkVersion {
        SdkVersion { major, minor }
    }

    /// Whether it lies between the two, where there is no release.
    pub(super) fn is_gap(self) -> bool {
        self > SdkVersion::OLD && self < SdkVersion::NEW
    }
}

impl fmt::Display for SdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for SdkVersion {
    type Err = String;

    /// Reads `major.minor`; a third number is allowed and means nothing.
    fn from_str(text: &str) -> Result<SdkVersion, String> {
        let numbers: Vec<Option<u16>> = text.split('.').map(|part| part.parse().ok()).collect();
        match numbers[..] {
            [Some(major), Some(minor)] | [Some(major), Some(minor), Some(_)] => {
                Ok(SdkVersion { major, minor })
            }
            _ => Err(format!(
                "`{text}` is no version of the SDK: two numbers are, as in 1.4 or 2.10"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SdkVersion;

    #[test]
    fn versions_are_pairs() {
        let read = |text: &str| text.parse::<SdkVersion>();
        assert!(read("1.4") < read("2.10"));
        assert!(read("1.4") < read("1.10"));
        assert_eq!(read("2.10.0"), Ok(SdkVersion::NEW));
        let gap = |text| read(text).is_ok_and(SdkVersion::is_gap);
        assert!(gap("1.5") && gap("2.0") && gap("2.9.1"));
        assert!(!gap("0.6") && !gap("1.4") && !gap("2.10") && !gap("2.11"));
        for text in ["", "2", "2.", "a.b", "1.2.3.4", "-1.0"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
