//! How fast this machine encrypts.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one core can encrypt and decrypt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CipherResult {
    /// Bytes that are encrypted at once.
    pub block_bytes: u64,
    /// The ciphers, in the order of preference of the program that offers them.
    pub ciphers: Vec<CipherSpeed>,
    /// Where the list of SSH's ciphers is from. Null where there is no ssh.
    pub ssh: Option<String>,
    /// Whether the processor has instructions for AES. Null where that is unknown.
    pub aes_instructions: Option<bool>,
    /// Rate in bit/s that a transfer is to have. Null where none was asked for.
    pub rate_bps: Option<f64>,
}

vocabulary! {
    /// The protocol that uses a cipher.
    pub enum CipherUse {
        /// TLS, by the library that plumb itself uses.
        Tls = "tls" as "TLS",
        /// SSH, by what the ssh program here offers.
        Ssh = "ssh" as "SSH",
    }
}

/// A cipher and how fast one core runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CipherSpeed {
    /// Protocol that uses the cipher.
    pub used_by: CipherUse,
    /// Name, as that program has it.
    pub name: String,
    /// The algorithm that was timed. Null where the library has none of the kind.
    pub algorithm: Option<String>,
    /// Rate in bit/s at which one core encrypts and authenticates. Null where it was not timed.
    pub seal_bps: Option<f64>,
    /// Rate in bit/s at which one core checks and decrypts. Null where it was not timed.
    pub open_bps: Option<f64>,
    /// Reason why there is no speed. Null where there is one.
    pub note: Option<String>,
}
