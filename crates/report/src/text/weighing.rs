//! How the confidence of each finding comes about, as a sum that a person can follow by hand.

use plumb_diagnose::weighing::Account;

use super::layout::{BOLD, FAINT, Page};
use super::style::Style;
use crate::number;

/// Columns of the bits before each line.
const BITS_COLUMNS: usize = 9;

/// Accounts as text, each line ended; nothing where there are none.
pub fn render_accounts(accounts: &[Account], style: &Style) -> String {
    let mut page = Page::new(style);
    if accounts.is_empty() {
        return page.finish();
    }
    let title = page.paint(BOLD, "How sure, and why");
    page.line(&title);
    page.wrapped(
        "  ",
        FAINT,
        "Each +1 doubles the odds that the cause is there, each −1 halves them.",
    );
    for account in accounts {
        page.blank();
        page.line(&format!(
            "{}, {}: {} sure",
            account.cause.name(),
            account.place.name(),
            number::percent(account.confidence)
        ));
        for term in &account.terms {
            let bits = format!("  {}  ", signed(term.bits));
            page.opened(&bits, BITS_COLUMNS, FAINT, &term.what);
        }
        let sum = format!("  {}  ", signed(account.bits()));
        page.opened(&sum, BITS_COLUMNS, BOLD, &comes_to(account));
    }
    page.blank();
    page.finish()
}

/// What the sum is as odds, and why the finding is not as sure as that where it is not.
fn comes_to(account: &Account) -> String {
    let times = account.bits().abs().exp2();
    // Beyond a hundred to one no digit behind the point is worth a column.
    let times = match times < 100.0 {
        true => format!("{times:.1}"),
        false => format!("{times:.0}"),
    };
    let odds = match account.bits() >= 0.0 {
        true => format!("{times} to 1"),
        false => format!("1 to {times}"),
    };
    let sure = number::percent(account.confidence);
    match account.is_capped() {
        true => format!("the sum, odds of {odds}; but no finding is surer than {sure}"),
        false => format!("the sum, odds of {odds}, which is {sure}"),
    }
}

/// Bits with their sign and one digit, in as many columns whatever they are.
fn signed(bits: f64) -> String {
    let digits = format!("{:.1}", bits.abs());
    // What is rounded to nothing has no sign.
    let sign = match bits {
        _ if digits == "0.0" => ' ',
        bits if bits < 0.0 => '−',
        _ => '+',
    };
    format!("{:>5}", format!("{sign}{digits}"))
}

#[cfg(test)]
mod tests {
    use plumb_diagnose::weighing::Term;
    use plumb_model::finding::{Cause, Place};

    use super::*;

    #[test]
    fn an_account_is_a_sum_that_adds_up() {
        let term = |what: &str, bits| Term {
            what: what.to_owned(),
            bits,
        };
        let account = Account {
            cause: Cause::Policer,
            place: Place::Uplink,
            terms: vec![
                term("how often it is found at home", -6.6),
                term("its own rule", 9.8),
                term("no queue of the load's own stands", 0.01),
            ],
            confidence: 0.902,
        };
        let plain = Style {
            color: false,
            width: 80,
        };
        let text = render_accounts(&[account], &plain);
        for line in [
            "policer, uplink: 90 % sure",
            "   −6.6  how often it is found at home",
            "   +9.8  its own rule",
            "    0.0  no queue",
            "   +3.2  the sum, odds of 9.3 to 1, which is 90 %",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(render_accounts(&[], &plain), "");
    }

    #[test]
    fn a_sum_beyond_what_any_finding_is_sure_of_is_not_left_to_be_wondered_at() {
        let account = Account {
            cause: Cause::Policer,
            place: Place::Uplink,
            terms: vec![Term {
                what: "its own rule".to_owned(),
                bits: 10.0,
            }],
            confidence: 0.99,
        };
        let expected = "the sum, odds of 1024 to 1; but no finding is surer than 99 %";
        assert_eq!(comes_to(&account), expected);
    }
}
