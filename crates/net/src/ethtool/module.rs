//! The memory of an optical module: SFF-8472 (SFP) and SFF-8636 (QSFP).

use plumb_model::results::host::Module;

/// `ETH_MODULE_SFF_8472`, `_8636` and `_8436` of `linux/ethtool.h`.
const SFF_8472: u32 = 2;
const SFF_8636: u32 = 3;
const SFF_8436: u32 = 4;

/// What the memory says; `None` for other kinds, or where the module measures nothing.
pub(super) fn read(kind: u32, memory: &[u8]) -> Option<Module> {
    match kind {
        SFF_8472 => sfp(memory),
        SFF_8636 | SFF_8436 => Some(qsfp(memory)),
        _ => None,
    }
}

/// SFF-8472: what is measured stands at A2h, which is 256 bytes behind A0h.
fn sfp(memory: &[u8]) -> Option<Module> {
    const A2: usize = 256;
    // Table 8-5: bit 6 says that it measures, bit 5 that the numbers need no calibration.
    let measures = memory.get(92)? & 0x60 == 0x60;
    measures.then(|| Module {
        standard: "SFF-8472".to_owned(),
        temperature_c: temperature(memory, A2 + 96),
        send_dbm: vec![power(memory, A2 + 102)],
        receive_dbm: vec![power(memory, A2 + 104)],
        receive_high_dbm: power(memory, A2 + 36),
        receive_low_dbm: power(memory, A2 + 38),
    })
}

/// SFF-8636: four lanes, in the lower page. Its limits are in a page that not every driver shows.
fn qsfp(memory: &[u8]) -> Module {
    let lanes = |first: usize| (0..4).map(|lane| power(memory, first + 2 * lane)).collect();
    Module {
        standard: "SFF-8636".to_owned(),
        temperature_c: temperature(memory, 22),
        receive_dbm: lanes(34),
        send_dbm: lanes(50),
        receive_low_dbm: None,
        receive_high_dbm: None,
    }
}

/// Signed, in 1/256 of a degree Celsius.
fn temperature(memory: &[u8], at: usize) -> Option<f64> {
    let bytes = memory.get(at..)?.first_chunk()?;
    Some(f64::from(i16::from_be_bytes(*bytes)) / 256.0)
}

/// In tenths of a microwatt; no light at all has no logarithm.
fn power(memory: &[u8], at: usize) -> Option<f64> {
    let tenths = u16::from_be_bytes(*memory.get(at..)?.first_chunk()?);
    (tenths != 0).then(|| 10.0 * (f64::from(tenths) / 10_000.0).log10())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn memory(values: &[(usize, u16)]) -> Vec<u8> {
        let mut memory = vec![0; 512];
        for (at, value) in values {
            memory.splice(at..&(at + 2), value.to_be_bytes());
        }
        memory
    }

    #[test]
    fn an_sfp_tells_its_light() {
        let mut bytes = memory(&[
            (256 + 96, 40 << 8 | 0x80),
            (256 + 102, 5000),
            (256 + 104, 100),
            (256 + 38, 158),
        ]);
        bytes.splice(92..93, [0x68]);
        let read = read(SFF_8472, &bytes).unwrap();
        assert_eq!(read.temperature_c, Some(40.5));
        assert!((read.send_dbm[0].unwrap() + 3.01).abs() < 0.01);
        assert!((read.receive_dbm[0].unwrap() + 20.0).abs() < 1e-9);
        assert!((read.receive_low_dbm.unwrap() + 18.01).abs() < 0.01);
    }

    #[test]
    fn a_module_that_measures_nothing_says_nothing() {
        assert_eq!(read(SFF_8472, &memory(&[])), None);
        assert_eq!(read(1, &memory(&[])), None);
        let dark = read(SFF_8636, &memory(&[(34, 10_000)])).unwrap();
        assert_eq!(dark.receive_dbm, [Some(0.0), None, None, None]);
    }

    proptest! {
        #[test]
        fn never_panics(kind in 0_u32..6, bytes in prop::collection::vec(any::<u8>(), 0..640)) {
            let _ = read(kind, &bytes);
        }
    }
}
