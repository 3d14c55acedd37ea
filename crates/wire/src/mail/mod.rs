//! Mail that a client hands to a server (RFC 5321, RFC 6409): the letter, what servers answer, and the session as a state
//! machine.

pub mod address;
pub mod letter;
pub mod reply;
pub mod session;
