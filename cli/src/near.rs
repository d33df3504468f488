//! The word that was probably meant.

use dflow_compiler::edit_distance;

/// The candidate nearest to `word`, if it takes at most `most` changes to get there.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
    most: usize,
) -> Option<&'a str> {
    let measured = candidates.map(|other| (edit_distance(word, other), other));
    measured.min_by_key(|(distance, _)| *distance).filter(|(d, _)| *d <= most).map(|found| found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_meant() {
        assert_eq!(nearest("wets", ["east", "west"].into_iter(), 2), Some("west"));
        assert_eq!(nearest("wets", ["east", "west"].into_iter(), 0), None);
    }
}
