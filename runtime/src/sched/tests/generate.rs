pub(super) fn _placeholder() {}
