//! What the audit of a machine advises, with the values of the catalogue of knobs.

use plumb_host::knobs::Catalogue;
use plumb_host::knobs::formula::{Advice, Present, advise};
use plumb_host::knobs::situation::Situation;
use plumb_model::finding::{Action, Finding};
use plumb_model::tune::{Os, Role};

/// Gives variables the values of the catalogue of knobs, which `plumb tune` goes by too, where it has a value for a long
/// path, of a rate in bit/s and a round trip in seconds, and for a machine of so much memory. No value exceeds what the
/// kernel takes. `present` is what a variable has now.
pub(crate) fn as_the_catalogue_advises<'f, 'h>(
    findings: impl IntoIterator<Item = &'f mut Finding>,
    (rate_bps, rtt_s): (f64, f64),
    memory_bytes: Option<u64>,
    present: impl Fn(&str) -> Option<&'h str>,
    catalogue: &Catalogue,
) {
    let situation = Situation {
        rate_bps,
        rtt_s,
        loss_ratio: None,
        role: Role::Server,
        memory_bytes,
        mtu_bytes: None,
        release: None,
    };
    for fix in findings.into_iter().flat_map(|finding| &mut finding.fixes) {
        let Some(Action::Sysctl(setting)) = &mut fix.action else {
            continue;
        };
        let Some(knob) = catalogue.find(Os::Linux, &setting.key) else {
            continue;
        };
        let now = Present {
            value: present(&setting.key),
            ..Present::default()
        };
        if let Advice::Set { value, .. } = advise(knob, &situation, now) {
            setting.value = value;
        } else if knob.check(&setting.value).is_err() {
            fix.action = None;
        }
    }
}
