//! What may be wrong with a filter.

/// Why a filter is not taken. Places are bytes of its text, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("the filter is empty: write for instance `tcp port 443`")]
    Empty,
    #[error("the filter has {bytes} bytes, and at most {most} are read")]
    TextTooLong { bytes: usize, most: usize },
    #[error("`{word}` at byte {at} of the filter: expected {accepted}")]
    Unexpected {
        word: String,
        at: usize,
        accepted: &'static str,
    },
    #[error("the filter ends at byte {at}: expected {accepted}")]
    Ended { at: usize, accepted: &'static str },
    #[error("`{word}` at byte {at} of the filter: host names are not looked up, write the address")]
    HostName { word: String, at: usize },
    #[error(
        "`{word}` at byte {at} of the filter: names of services are not looked up, write the number of the port"
    )]
    ServiceName { word: String, at: usize },
    #[error("`{word}` at byte {at} of the filter is too large: at most {most}")]
    TooLarge { word: String, at: usize, most: u32 },
    #[error(
        "`{word}` at byte {at} of the filter has bits behind the length of its network: write {network}"
    )]
    HostBits {
        word: String,
        at: usize,
        network: String,
    },
    #[error("`{word}` at byte {at} of the filter does not go with `{qualifier}`: {accepted}")]
    Mismatch {
        word: String,
        at: usize,
        qualifier: &'static str,
        accepted: &'static str,
    },
    #[error("`{word}` at byte {at} of the filter: this divides by zero")]
    DivisionByZero { word: String, at: usize },
    #[error("`{word}` at byte {at} of the filter goes deeper than {most} levels")]
    TooDeep {
        word: String,
        at: usize,
        most: usize,
    },
    #[error(
        "the filter needs more than {most} instructions of BPF, which is all that Linux takes: make it shorter"
    )]
    TooManyInstructions { most: usize },
    #[error(
        "a comparison in the filter needs more than {most} intermediate results: make it simpler"
    )]
    TooManyResults { most: usize },
    #[error(
        "filters are for Ethernet, Linux cooked, raw IP and IEEE 802.11, and not for packets of link type {link_type}"
    )]
    LinkType { link_type: u16 },
    #[error(
        "`{word}` at byte {at} of the filter is for Ethernet alone, and packets of link type {link_type} have none"
    )]
    NotOnLink {
        word: &'static str,
        at: usize,
        link_type: u16,
    },
}
