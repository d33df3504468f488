//! Names that a misspelt one may have meant.

/// How many characters have to be put in, left out, changed or swapped with their neighbor to make one text of another;
/// long ones count as far apart.
pub fn edit_distance(a: &str, b: &str) -> usize {
    if a.len() > 64 || b.len() > 64 { usize::MAX } else { strsim::osa_distance(a, b) }
}

/// The known name that a misspelt one probably means: at most two edits away (one for short
/// names), or the beginning of the other.
pub(crate) fn nearest<'n>(text: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let limit = if text.len() < 4 { 1 } else { 2 };
    let begins = |name: &str| {
        let (short, long) = if name.len() < text.len() { (name, text) } else { (text, name) };
        short.len() >= 4 && long.starts_with(short)
    };
    known
        .into_iter()
        .filter(|name| *name != text)
        .map(|name| {
            let distance = edit_distance(name, text);
            (if distance > limit && begins(name) { limit } else { distance }, name)
        })
        .filter(|&(distance, _)| distance <= limit && distance < text.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, nearest};

    #[test]
    fn distances_count_characters() {
        assert_eq!(edit_distance("abc", "abd"), 1);
        assert_eq!(edit_distance("abc", "acb"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("größe", "grösse"), 2);
        assert_eq!(edit_distance(&"a".repeat(65), "a"), usize::MAX);
    }

    #[test]
    fn slips_find_their_names() {
        let names = ["width", "height", "async", "a"];
        assert_eq!(nearest("heigth", names), Some("height"));
        assert_eq!(nearest("asynchronous", names), Some("async"));
        assert_eq!(nearest("depth", names), None);
        assert_eq!(nearest("b", names), None);
        assert_eq!(nearest("width", names), None);
    }
}
