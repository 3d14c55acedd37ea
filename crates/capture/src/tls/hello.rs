//! A ClientHello or ServerHello (RFC 8446, sections 4.1.2 and 4.1.3), read byte by byte, however it is divided: what is not
//! looked for is passed over, so that memory is bounded.

/// Types of messages (section 4).
pub(crate) const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Extensions that are looked for (section 4.2).
const SERVER_NAME: u16 = 0;
const SUPPORTED_VERSIONS: u16 = 43;
/// The number of version 1.3 in supported_versions (section 4.2.1).
pub(super) const TLS_1_3: u16 = 0x0304;
/// What the random of a ServerHello begins with that asks for another ClientHello (section 4.1.3).
const RETRY: u64 = 0xcf21_ad74_e59a_6111;
/// Bytes of a random, besides those that are looked at.
const RANDOM_REST: u32 = 32 - 8;
/// Longest name of a host (RFC 1035, section 3.1).
const MAX_NAME_BYTES: u32 = 255;
/// Type and length of an extension; what a list of names has before its first one.
const EXTENSION_HEADER: u32 = 4;
const NAME_HEADER: u32 = 5;

/// What comes next, of so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Kind,
    Length,
    Version,
    Random,
    SessionLength,
    CiphersLength,
    CompressionLength,
    ExtensionsLength,
    Extension,
    Name,
    ChosenVersion,
    /// Nothing more is looked for.
    None,
}

impl Field {
    fn bytes(self) -> u32 {
        match self {
            Self::Kind | Self::SessionLength | Self::CompressionLength => 1,
            Self::Version | Self::CiphersLength | Self::ExtensionsLength | Self::ChosenVersion => 2,
            Self::Length => 3,
            Self::Extension => EXTENSION_HEADER,
            Self::Name => NAME_HEADER,
            Self::Random => 8,
            Self::None => 0,
        }
    }
}

/// A message as far as it was read.
#[derive(Debug, Clone)]
pub(super) struct Hello {
    field: Field,
    /// The bytes of the field so far, and how many they are.
    value: u64,
    have: u32,
    /// Bytes to pass over before the field.
    skip: u32,
    /// Bytes of the message that are left, once its length is known.
    left: Option<u32>,
    /// Bytes of extensions that are left, and of the one that is read.
    extensions: u32,
    extension: u32,
    /// Bytes of the name that are left.
    name_left: u32,
    kind: u8,
    version: Option<u16>,
    is_retry: bool,
    name: String,
}

impl Hello {
    pub(super) fn new() -> Self {
        Self {
            field: Field::Kind,
            value: 0,
            have: 0,
            skip: 0,
            left: None,
            extensions: 0,
            extension: 0,
            name_left: 0,
            kind: 0,
            version: None,
            is_retry: false,
            name: String::new(),
        }
    }

    /// Whether nothing more is looked for.
    pub(super) fn is_over(&self) -> bool {
        self.field == Field::None
    }

    /// The rest cannot be read. What was chosen by an extension is then unknown.
    pub(super) fn give_up(&mut self) {
        if !self.is_over() {
            self.field = Field::None;
            self.version = None;
            if self.name_left > 0 {
                self.name.clear();
            }
        }
    }

    /// The version that a server chose.
    pub(super) fn version(&self) -> Option<u16> {
        self.version
            .filter(|_| self.is_over() && self.kind == SERVER_HELLO)
    }

    /// Whether a server asked for another ClientHello.
    pub(super) fn is_retry(&self) -> bool {
        self.is_retry
    }

    /// The server that a client asked for, where it named one.
    pub(super) fn server_name(&self) -> Option<String> {
        let is_whole = !self.name.is_empty() && self.name_left == 0;
        is_whole.then(|| self.name.clone())
    }

    /// Takes in bytes of the message.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_over() {
                return;
            }
            self.byte(*byte);
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.field = Field::None;
                }
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.name_left > 0 {
            self.name_left -= 1;
            self.name.push(match byte {
                b'!'..=b'~' => char::from(byte),
                _ => '?',
            });
            if self.name_left == 0 {
                // Nothing else of a client is looked for.
                self.field = Field::None;
            }
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.value = self.value << 8 | u64::from(byte);
        self.have += 1;
        if self.have == self.field.bytes() {
            let value = self.value;
            (self.value, self.have) = (0, 0);
            self.take(value);
        }
    }

    /// Takes a field that is whole, and says what comes next.
    fn take(&mut self, value: u64) {
        let low = value as u16;
        self.field = match self.field {
            Field::Kind => {
                self.kind = value as u8;
                match self.kind {
                    CLIENT_HELLO | SERVER_HELLO => Field::Length,
                    _ => Field::None,
                }
            }
            Field::Length => {
                // This byte counts too.
                self.left = Some((value as u32).saturating_add(1));
                Field::Version
            }
            Field::Version => {
                self.version = Some(low);
                Field::Random
            }
            Field::Random => {
                self.is_retry = self.kind == SERVER_HELLO && value == RETRY;
                self.skip = RANDOM_REST;
                Field::SessionLength
            }
            Field::SessionLength if self.kind == CLIENT_HELLO => {
                self.skip = u32::from(low);
                Field::CiphersLength
            }
            // Of a server one cipher suite and one compression follow.
            Field::SessionLength => {
                self.skip = u32::from(low) + 3;
                Field::ExtensionsLength
            }
            Field::CiphersLength => {
                self.skip = u32::from(low);
                Field::CompressionLength
            }
            Field::CompressionLength => {
                self.skip = u32::from(low);
                Field::ExtensionsLength
            }
            Field::ExtensionsLength => {
                self.extensions = u32::from(low);
                self.next_extension()
            }
            Field::Extension => self.extension((value >> 16) as u16, u32::from(low)),
            Field::Name => self.name((value >> 16) as u8, u32::from(low)),
            Field::ChosenVersion => {
                self.version = Some(low);
                Field::None
            }
            Field::None => Field::None,
        };
    }

    fn extension(&mut self, kind: u16, length: u32) -> Field {
        let Some(left) = self.extensions.checked_sub(EXTENSION_HEADER + length) else {
            return Field::None;
        };
        self.extensions = left;
        self.extension = length;
        match (self.kind, kind, length) {
            (CLIENT_HELLO, SERVER_NAME, NAME_HEADER..) => Field::Name,
            (SERVER_HELLO, SUPPORTED_VERSIONS, 2) => Field::ChosenVersion,
            _ => {
                self.skip = length;
                self.next_extension()
            }
        }
    }

    /// The first name of a list (RFC 6066, section 3).
    fn name(&mut self, kind: u8, length: u32) -> Field {
        let room = self.extension.saturating_sub(NAME_HEADER);
        match kind == 0 && length <= room.min(MAX_NAME_BYTES) {
            true => self.name_left = length,
            false => self.skip = room,
        }
        self.next_extension()
    }

    /// What comes behind an extension; the name that was found in it is read before.
    fn next_extension(&self) -> Field {
        match self.extensions < EXTENSION_HEADER && self.name_left == 0 {
            true => Field::None,
            false => Field::Extension,
        }
    }
}

/// A version by its number on the wire.
pub(super) fn version_name(version: u16) -> String {
    match version {
        0x0300 => "SSL 3.0".to_owned(),
        0x0301 => "1.0".to_owned(),
        0x0302 => "1.1".to_owned(),
        0x0303 => "1.2".to_owned(),
        TLS_1_3 => "1.3".to_owned(),
        other => format!("{other:#06x}"),
    }
}
