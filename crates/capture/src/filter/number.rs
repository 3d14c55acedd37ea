//! Numbers as C writes them.

/// A number: decimal, with 0x hexadecimal, with 0 octal.
pub(super) fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    // It would take a sign.
    let begins = digits.chars().next()?.is_digit(radix);
    begins.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Whether a text is written as a number, however large.
pub(super) fn looks_like_number(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    text.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_hexdigit())
        && (digits.len() < text.len() || digits.chars().all(|c| c.is_ascii_digit()))
}
