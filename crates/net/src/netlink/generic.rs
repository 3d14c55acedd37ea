//! Generic netlink: parts of the kernel that are found by name (`linux/genetlink.h`).

use netlink_sys::protocols::NETLINK_GENERIC;

use super::NetlinkError;
use super::attribute::{encode, find};
use super::dump::Inquiry;

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID` and `CTRL_ATTR_FAMILY_NAME`.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Length of `struct genlmsghdr`: command, version, two bytes of nothing.
const HEADER_BYTES: usize = 4;

/// A part of the kernel, found by its name.
pub(crate) struct Family {
    inquiry: Inquiry,
    id: u16,
}

impl Family {
    /// Finds it.
    pub(crate) fn open(name: &str, what: &'static str) -> Result<Self, NetlinkError> {
        let mut inquiry = Inquiry::open(NETLINK_GENERIC, what)?;
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let body = [header(GET_FAMILY), encode(FAMILY_NAME, &text)].concat();
        let answers = inquiry.one(CONTROLLER, &body)?;
        let id = answers
            .iter()
            .find_map(|answer| find(answer.body.get(HEADER_BYTES..)?, FAMILY_ID)?.u16());
        match id {
            Some(id) => Ok(Self { inquiry, id }),
            None => Err(NetlinkError {
                what: format!("list the {what}"),
                source: std::io::ErrorKind::NotFound.into(),
            }),
        }
    }

    /// The attributes of every answer to a command that lists.
    pub(crate) fn list(
        &mut self,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let body = [header(command), attributes.to_vec()].concat();
        Ok(bodies(self.inquiry.list(self.id, &body)?))
    }

    /// The attributes of the answers to a command about one thing.
    pub(crate) fn one(
        &mut self,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let body = [header(command), attributes.to_vec()].concat();
        Ok(bodies(self.inquiry.one(self.id, &body)?))
    }
}

fn header(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

fn bodies(messages: Vec<super::dump::Message>) -> Vec<Vec<u8>> {
    let rest = |m: super::dump::Message| m.body.get(HEADER_BYTES..).map(<[u8]>::to_vec);
    messages.into_iter().filter_map(rest).collect()
}
