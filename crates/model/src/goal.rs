//! What a path is to be good for.

use crate::vocabulary;

vocabulary! {
    /// What a path is to be good for: a check then measures what that use needs besides.
    pub enum Goal {
        /// Web pages over HTTP and HTTPS.
        Web = "web",
    }
}
