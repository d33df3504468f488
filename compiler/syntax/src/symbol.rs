//! Identifiers as numbers, so that comparing names compares integers.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// An interned identifier. Only the [`Interner`] that made it can spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// The identifiers of one compilation. Symbols are numbered in order of first use.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    by_text: FxHashMap<Arc<str>, Symbol>,
    texts: Vec<Arc<str>>,
}

impl Interner {
    /// No identifiers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The symbol of a text, the same one each time.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.by_text.get(text) {
            return symbol;
        }
        let symbol = Symbol(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, symbol);
        symbol
    }

    /// The symbol of a text that has been interned before.
    #[must_use]
    pub fn lookup(&self, text: &str) -> Option<Symbol> {
        self.by_text.get(text).copied()
    }

    /// How the identifier is spelled; `?` for a symbol of another interner.
    #[must_use]
    pub fn resolve(&self, symbol: Symbol) -> &str {
        self.texts.get(symbol.0 as usize).map_or("?", |text| text)
    }

    /// How many identifiers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether nothing has been interned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
