//! What a run tells of its words at the end.

use dflow_runtime::account::Account;
use serde_json::{Value, json};

/// The loss account of a run, as text.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What was odd, once per place.
    warnings: Vec<String>,
    /// What was not as expected at the end.
    notes: Vec<String>,
    /// The balance, if it was asked for.
    balance: Option<String>,
    counts: Value,
}

impl Told {
    /// `files` are the names that source places refer to; `always`: the balance was asked for.
    pub(crate) fn new(account: &Account, files: &[String], always: bool) -> Told {
        let Account { sent, entered, copies, taken, to_host, filtered, .. } = account;
        let left: u64 = account.left.iter().map(|left| left.words).sum();
        let outside: u64 = account.outside.iter().map(|(.., words)| words).sum();
        Told {
            warnings: account.remarks.iter().map(|remark| remark.line(files)).collect(),
            notes: account.notes(files),
            balance: always.then(|| account.text()),
            counts: json!({
                "sent": sent,
                "entered": entered,
                "copied": copies,
                "taken": taken,
                "to_host": to_host,
                "filtered": filtered,
                "commands": account.hidden,
                "dropped": account.dropped,
                "gone": account.gone,
                "left": left,
                "outside": outside,
            }),
        }
    }

    /// Of a run that failed: who waited is told with why it did.
    pub(crate) fn after(account: &Account, files: &[String], always: bool) -> Told {
        Told { notes: Vec::new(), ..Told::new(account, files, always) }
    }

    /// For people: a line each, none if all is as expected and nobody asked.
    pub(crate) fn lines(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(|text| format!("warning: {text}"));
        let notes = self.notes.iter().map(|text| format!("note: {text}"));
        let balance = self.balance.iter().map(|text| format!("wavelets\n{text}"));
        warnings.chain(notes).chain(balance).collect()
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({ "warnings": self.warnings, "notes": self.notes, "wavelets": self.counts })
    }
}
