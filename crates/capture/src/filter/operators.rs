//! Operators and comparisons, and what they make of numbers.

use super::bpf::code;
use super::error::FilterError;
use super::interpreter::calculate;
use super::stream::unexpected;
use super::syntax::{Arithmetic, Comparison};
use super::words::Word;

/// Registers have 32 bits.
const LARGEST_SHIFT: u32 = 31;

/// The code of an operator, and how closely it binds (grammar.y of libpcap). `^` and `%` have no closeness there, so
/// that what they mean beside others is an accident, and are left out.
pub(super) fn operator(text: &str) -> Option<(u16, u8)> {
    Some(match text {
        "|" => (code::OR, 0),
        "&" => (code::AND, 1),
        "<<" => (code::SHIFT_LEFT, 2),
        ">>" => (code::SHIFT_RIGHT, 2),
        "+" => (code::ADD, 3),
        "-" => (code::SUBTRACT, 3),
        "*" => (code::MULTIPLY, 4),
        "/" => (code::DIVIDE, 4),
        _ => return None,
    })
}

pub(super) fn comparison(text: &str) -> Option<Comparison> {
    Some(match text {
        "=" | "==" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessEqual,
        _ => return None,
    })
}

/// A calculation by the operator that is this word, or its result where that is known.
pub(super) fn calculation(
    word: Word<'_>,
    operation: u16,
    left: Arithmetic,
    right: Arithmetic,
) -> Result<Arithmetic, FilterError> {
    match (operation, &right) {
        (code::DIVIDE, Arithmetic::Number(0)) => {
            return Err(FilterError::DivisionByZero {
                word: word.text.to_owned(),
                at: word.at,
            });
        }
        (code::SHIFT_LEFT | code::SHIFT_RIGHT, Arithmetic::Number(by)) if *by > LARGEST_SHIFT => {
            return Err(unexpected(word, "a shift of at most 31 bits"));
        }
        _ => {}
    }
    if let (Arithmetic::Number(a), Arithmetic::Number(b)) = (&left, &right)
        && let Some(known) = calculate(operation, *a, *b)
    {
        return Ok(Arithmetic::Number(known));
    }
    Ok(Arithmetic::Calculation {
        operation,
        left: Box::new(left),
        right: Box::new(right),
    })
}
