//! How far a packet could be read.

/// How far a packet could be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Whole,
    /// Its headers go on where the capture cut it.
    Cut,
    /// Its headers go on where it ends, or contradict themselves.
    Malformed,
    /// It continues in a protocol that is not read into.
    Unread,
}
