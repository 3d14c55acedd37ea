//! Delays that follow from length and size: propagation and serialisation.

use crate::vocabulary;

/// Speed of light in vacuum, in m/s (SI).
const LIGHT_M_PER_S: f64 = 299_792_458.0;

vocabulary! {
    /// What a signal travels through.
    pub enum Medium {
        /// Glass: refractive index 1.468 (ITU-T G.652 fibre at 1550 nm).
        Fibre = "fibre",
        /// Twisted pair, Category 5 and better: velocity factor 0.66.
        Copper = "copper",
        /// Radio through air or vacuum.
        Radio = "radio",
    }
}

impl Medium {
    /// Share of the speed of light in vacuum.
    fn velocity_factor(self) -> f64 {
        match self {
            Self::Fibre => 1.0 / 1.468,
            Self::Copper => 0.66,
            Self::Radio => 1.0,
        }
    }
}

/// One-way time over a length, in seconds.
pub fn propagation(length_m: f64, medium: Medium) -> f64 {
    length_m / (LIGHT_M_PER_S * medium.velocity_factor())
}

/// Time that a packet takes to leave at a rate, in seconds. `bytes` are those on the line, with framing.
pub fn serialisation(bytes: f64, rate_bps: f64) -> f64 {
    bytes * 8.0 / rate_bps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_delays() {
        // 1500 bytes at 20 Mbit/s take 0.6 ms, at 1 Gbit/s with Ethernet framing 12.3 us.
        assert!((serialisation(1500.0, 20e6) - 0.0006).abs() < 1e-12);
        assert!((serialisation(1538.0, 1e9) - 12.304e-6).abs() < 1e-12);
        // Two thirds of the speed of light, as the PERT guides have it: 1000 km are about 5 ms.
        for medium in [Medium::Fibre, Medium::Copper] {
            let delay = propagation(1e6, medium);
            assert!((0.0048..0.0051).contains(&delay), "{delay}");
        }
        // Up to a geostationary satellite and down again, there and back: 477 ms, so 600 with the rest.
        let there_and_back = 4.0 * propagation(35_786e3, Medium::Radio);
        assert!((there_and_back - 0.4775).abs() < 0.001, "{there_and_back}");
    }
}
