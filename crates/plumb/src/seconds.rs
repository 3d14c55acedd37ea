//! Times on the command line of verbs that stand for ping and mtr, where a bare number is seconds.

use std::time::Duration;

use plumb_model::units::parse_duration;

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number).map_err(|e| e.to_string()),
        Err(_) => parse_duration(text).map_err(|e| e.to_string()),
    }
}

/// One that is above zero.
pub(crate) fn above_zero(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        Ok(Duration::ZERO) => Err("a time above zero is needed, such as 3s".to_owned()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_seconds() {
        assert_eq!(seconds("0.2"), Ok(Duration::from_millis(200)));
        assert_eq!(seconds("20ms"), Ok(Duration::from_millis(20)));
        for wrong in ["", "-1", "NaN", "1e30", "x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(above_zero("0").is_err());
    }
}
