//! How fast this machine encrypts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one core can encrypt and decrypt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CipherResult {
    /// Bytes encrypted at once.
    pub block_bytes: u64,
    /// The ciphers, in the order of preference of the program that offers them.
    pub ciphers: Vec<CipherSpeed>,
    /// Where the list of SSH's ciphers is from; absent where there is no ssh.
    pub ssh: Option<String>,
    /// The processor has instructions for AES.
    pub aes_instructions: Option<bool>,
    /// The rate that a transfer is to have, when asked.
    pub rate_bps: Option<f64>,
}

/// Who uses a cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CipherUse {
    /// TLS, by the library that plumb itself uses.
    Tls,
    /// SSH, by what the ssh program here offers.
    Ssh,
}

impl CipherUse {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "TLS",
            Self::Ssh => "SSH",
        }
    }
}

/// A cipher and how fast one core runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CipherSpeed {
    /// Who uses it.
    pub used_by: CipherUse,
    /// Name, as that program has it.
    pub name: String,
    /// The algorithm that was timed; absent where the library has none of the kind.
    pub algorithm: Option<String>,
    /// Encrypted and authenticated by one core.
    pub seal_bps: Option<f64>,
    /// Checked and decrypted by one core.
    pub open_bps: Option<f64>,
    /// Why there is no speed.
    pub note: Option<String>,
}
