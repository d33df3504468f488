//! Turns `src/grammar.lalrpop` into a parser.

fn main() {
    println!("cargo::rerun-if-changed=src/grammar.lalrpop");
    if let Err(error) = lalrpop::process_src() {
        println!("cargo::error=the grammar is not usable: {error}");
    }
}
