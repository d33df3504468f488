//! Text form of programs, placements and images: printed for eyes and diffs, parsed back for tests.
