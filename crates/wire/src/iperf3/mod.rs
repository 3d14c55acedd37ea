//! iperf3's protocol (esnet/iperf, `src/iperf_api.[ch]`, `iperf_udp.c`, version 3.12 and its neighbours).
//!
//! A control connection begins with a cookie, which every data connection repeats. On it go single bytes, the states, and
//! JSON with a length before it. What both ends must agree on goes from the client to the server before the test, what each
//! counted in both directions after it.

mod flags;
mod parameters;
mod results;
mod udp;

pub use parameters::{Limits, Parameters, Test};
pub use results::{Results, StreamResults};
pub use udp::{CONNECT, CONNECT_AGAIN, CONNECTED, Counter, Header, header_bytes, is_connect};

/// The port, TCP and UDP (`PORT`).
pub const PORT: u16 = 5201;

/// The cookie: 36 characters and a NUL (`COOKIE_SIZE`).
pub const COOKIE_BYTES: usize = 37;

/// Most bytes of a client's parameters (`MAX_PARAMS_JSON_STRING`).
pub const MAX_PARAMETERS_BYTES: u32 = 8 * 1024;

/// Most bytes of results: 128 streams of 300 bytes in each direction, several times over, for the text that a server
/// may add.
pub const MAX_RESULTS_BYTES: u32 = 1 << 20;

/// The length before JSON, big-endian.
pub const LENGTH_BYTES: usize = 4;

/// What one end says in a byte of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParameterExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    Start = 15,
    Done = 16,
    /// The server is busy with another client.
    AccessDenied = -1,
    /// Two numbers follow: an [`ErrorCode`], and the system's error number.
    ServerError = -2,
}

impl State {
    const ALL: [Self; 13] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParameterExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::Start,
        Self::Done,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// The state of a byte; `None` where iperf3 has none.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }

    pub fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }
}

/// Why a server does not run a test, by the numbers that clients turn into text (`i_errno`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorCode {
    Duration = 5,
    Streams = 6,
    BlockSize = 7,
    BufferSize = 8,
    SegmentSize = 10,
    UdpBlockSize = 20,
    BothModes = 25,
    ReceiveParameters = 114,
    ServerBusy = 121,
    SetBufferSize = 141,
    Protocol = 131,
    CongestionControl = 134,
    Authorization = 142,
    CreateStream = 200,
    AcceptStream = 204,
}

/// What a server sends where it does not run a test: the state, and both numbers.
pub fn server_error(code: ErrorCode, system: i32) -> [u8; 9] {
    let mut bytes = [State::ServerError.byte(); 9];
    let numbers = (code as i32)
        .to_be_bytes()
        .into_iter()
        .chain(system.to_be_bytes());
    bytes
        .iter_mut()
        .skip(1)
        .zip(numbers)
        .for_each(|(to, from)| *to = from);
    bytes
}

/// A cookie of random bytes.
pub fn cookie(random: [u8; COOKIE_BYTES - 1]) -> [u8; COOKIE_BYTES] {
    const LETTERS: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_BYTES];
    for (to, from) in cookie.iter_mut().zip(random) {
        *to = LETTERS.get(usize::from(from % 32)).copied().unwrap_or(b'a');
    }
    cookie
}

/// JSON with its length before it.
pub fn frame(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), json.as_bytes()].concat()
}

/// The number of a stream, counted from 0: 2 is left out, as iperf3 does.
pub fn stream_id(index: u32) -> u32 {
    match index {
        0 => 1,
        more => more.saturating_add(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_bytes() {
        for state in State::ALL {
            assert_eq!(State::of(state.byte()), Some(state));
        }
        assert_eq!(State::AccessDenied.byte(), 0xff);
        assert_eq!(State::of(3), None);
    }

    #[test]
    fn streams_are_numbered_around_two() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }

    #[test]
    fn an_error_is_a_state_and_two_numbers() {
        let bytes = server_error(ErrorCode::CongestionControl, 2);
        assert_eq!(bytes, [0xfe, 0, 0, 0, 134, 0, 0, 0, 2]);
    }

    #[test]
    fn cookies_are_text_that_ends_in_a_nul() {
        let cookie = cookie(std::array::from_fn(|k| k as u8 * 7));
        assert_eq!(cookie.last(), Some(&0));
        let text = cookie.get(..36).unwrap_or_default();
        assert!(
            text.iter()
                .all(|c| c.is_ascii_lowercase() || (b'2'..=b'7').contains(c))
        );
        assert_eq!(frame("{}"), [0, 0, 0, 2, b'{', b'}']);
    }
}
