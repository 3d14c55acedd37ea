//! Maintenance: times in which no alarm is raised. Times of day are UTC.

use jiff::Timestamp;

const DAY_S: i64 = 86_400;

/// The names of the days of the week, beginning with the day of 1970-01-01.
const WEEK: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];

/// A time in which no alarm is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// From one time to another, s since 1970.
    Once { from_s: i64, until_s: i64 },
    /// From one time of day, in seconds, for so long, on days that begin on these of the week.
    Daily {
        from_s: i64,
        lasts_s: i64,
        days: [bool; 7],
    },
}

impl Window {
    /// Reads `from` and `until`, either times of RFC 3339 or times of day, and the days of the week for these.
    ///
    /// # Errors
    /// When they are no such times, or an impossible window: why, in words.
    pub fn read(from: &str, until: &str, days: Option<&[String]>) -> Result<Self, String> {
        let timestamp = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_second);
        if let (Some(from_s), Some(until_s)) = (timestamp(from), timestamp(until)) {
            if until_s <= from_s {
                return Err(format!(
                    "the maintenance ends ({until}) before it begins ({from})"
                ));
            }
            if days.is_some() {
                return Err("days are for times of day: leave them out".to_owned());
            }
            return Ok(Self::Once { from_s, until_s });
        }
        let (Some(from_s), Some(until_s)) = (time_of_day(from), time_of_day(until)) else {
            return Err(format!(
                "'{from}' and '{until}' are no times: write both as \"02:30\" (UTC), or as \"2026-05-01T02:30:00Z\""
            ));
        };
        if from_s == until_s {
            return Err("the maintenance begins and ends at the same time of day".to_owned());
        }
        let mut on = [days.is_none(); 7];
        for day in days.unwrap_or_default() {
            let place = WEEK.iter().position(|name| *name == day.as_str());
            let Some(place) = place.and_then(|place| on.get_mut(place)) else {
                return Err(format!(
                    "no day is called '{day}'; write mon, tue, wed, thu, fri, sat or sun"
                ));
            };
            *place = true;
        }
        if !on.contains(&true) {
            return Err("the maintenance is on no day: leave days out for every day".to_owned());
        }
        Ok(Self::Daily {
            from_s,
            lasts_s: (until_s - from_s).rem_euclid(DAY_S),
            days: on,
        })
    }

    /// Whether that time is within it, s since 1970.
    pub fn holds(&self, at_s: i64) -> bool {
        match self {
            Self::Once { from_s, until_s } => (*from_s..*until_s).contains(&at_s),
            Self::Daily {
                from_s,
                lasts_s,
                days,
            } => {
                let day = (at_s - from_s).div_euclid(DAY_S);
                let on = usize::try_from(day.rem_euclid(7))
                    .ok()
                    .and_then(|day| days.get(day));
                on == Some(&true) && (at_s - from_s).rem_euclid(DAY_S) < *lasts_s
            }
        }
    }
}

/// A time of day such as 02:30, in seconds.
fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, most: i64| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|n| digits && *n <= most)
    };
    Some(number(hours, 23)? * 3600 + number(minutes, 59)? * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_a_day_may_pass_midnight() {
        let sundays = Window::read("23:00", "01:30", Some(&["sun".to_owned()])).unwrap();
        // 1970-01-04 was a Sunday.
        let at = |day: i64, hours: i64| (day - 1) * DAY_S + hours * 3600;
        let within =
            [at(4, 22), at(4, 23), at(5, 1), at(5, 2), at(5, 23)].map(|at| sundays.holds(at));
        assert_eq!(within, [false, true, true, false, false]);
    }

    #[test]
    fn a_window_may_be_once() {
        let once = Window::read("1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z", None).unwrap();
        assert_eq!(
            [59, 60, 119, 120].map(|at| once.holds(at)),
            [false, true, true, false]
        );
    }

    #[test]
    fn impossible_windows_are_refused() {
        let days =
            |days: &[&str]| -> Vec<String> { days.iter().map(|d| (*d).to_owned()).collect() };
        for (from, until, on) in [
            ("1970-01-01T00:02:00Z", "1970-01-01T00:01:00Z", None),
            ("02:00", "02:00", None),
            ("24:00", "02:00", None),
            ("2:00", "03:00", None),
            ("02:00", "1970-01-01T00:01:00Z", None),
            ("02:00", "03:00", Some(days(&["someday"]))),
            ("02:00", "03:00", Some(days(&[]))),
        ] {
            assert!(
                Window::read(from, until, on.as_deref()).is_err(),
                "{from} {until}"
            );
        }
    }
}
