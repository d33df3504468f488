//! The word that was probably meant.

/// The candidate nearest to `word`, if it takes at most `most` changes to get there.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
    most: usize,
) -> Option<&'a str> {
    let measured = candidates.map(|other| (distance(word, other), other));
    measured.min_by_key(|(distance, _)| *distance).filter(|(d, _)| *d <= most).map(|found| found.1)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_changes() {
        assert_eq!(distance("abc", "abd"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("wets", ["east", "west"].into_iter(), 2), Some("west"));
        assert_eq!(nearest("wets", ["east", "west"].into_iter(), 0), None);
    }
}
