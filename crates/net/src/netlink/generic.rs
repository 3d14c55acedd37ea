//! Generic netlink: parts of the kernel that are found by name (`linux/genetlink.h`).

use std::io;

use nix::sys::socket::SockProtocol;

use super::NetlinkError;
use super::attribute::{find, text};
use super::connection::{Connection, Message};

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID` and `CTRL_ATTR_FAMILY_NAME`.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Length of `struct genlmsghdr`: command, version, two bytes of nothing.
const HEADER_BYTES: usize = 4;

/// A part of the kernel, found by its name.
pub(crate) struct Family {
    connection: Connection,
    id: u16,
    /// What stands in errors behind "cannot list the".
    what: &'static str,
}

impl Family {
    pub(crate) fn open(name: &str, what: &'static str) -> Result<Self, NetlinkError> {
        let find_id = || {
            let mut connection = Connection::open(SockProtocol::NetlinkGeneric)?;
            let body = [header(GET_FAMILY), text(FAMILY_NAME, name)].concat();
            let id = connection
                .request(CONTROLLER, 0, &body)?
                .iter()
                .find_map(|answer| find(answer.body.get(HEADER_BYTES..)?, FAMILY_ID)?.u16());
            Ok((connection, id.ok_or(io::ErrorKind::NotFound)?))
        };
        let (connection, id) = find_id().map_err(NetlinkError::when(|| listing(what)))?;
        Ok(Self {
            connection,
            id,
            what,
        })
    }

    /// The attributes of every answer to a command that lists.
    pub(crate) fn list(
        &mut self,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let body = [header(command), attributes.to_vec()].concat();
        let answers = self.connection.list(self.id, &body);
        answers
            .map(bodies)
            .map_err(NetlinkError::when(|| listing(self.what)))
    }

    /// The attributes of the answers to a command about one thing.
    pub(crate) fn one(
        &mut self,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let body = [header(command), attributes.to_vec()].concat();
        let answers = self.connection.request(self.id, 0, &body);
        answers
            .map(bodies)
            .map_err(NetlinkError::when(|| listing(self.what)))
    }
}

fn listing(what: &str) -> String {
    format!("list the {what}")
}

fn header(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

fn bodies(messages: Vec<Message>) -> Vec<Vec<u8>> {
    let rest = |m: Message| m.body.get(HEADER_BYTES..).map(<[u8]>::to_vec);
    messages.into_iter().filter_map(rest).collect()
}
