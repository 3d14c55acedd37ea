//! Comparisons of numbers that a packet has.

use super::header::{V6_BYTES, in_v4, not_later_fragment, v4_header, v6_next};
use super::layout::Layout;
use super::place::Place;
use super::tree::Tree;
use crate::filter::bpf::{Instruction, SCRATCH_WORDS, code};
use crate::filter::error::FilterError;
use crate::filter::syntax::{Arithmetic, Comparison, Protocol, Relation};

/// The tests of a comparison: first that every protocol is there of which it has a field.
pub(super) fn relation(relation: &Relation, layout: &Layout) -> Result<Tree, FilterError> {
    let mut needed = Needed {
        layout,
        tests: Vec::new(),
        protocols: Vec::new(),
    };
    let mut load = Vec::new();
    let free = layout.cells();
    needed.load(&relation.left, free, &mut load)?;
    let (with_x, number) = match &relation.right {
        Arithmetic::Number(number) => (0, *number),
        right => {
            needed.beside(right, free, &mut load)?;
            (code::WITH_X, 0)
        }
    };
    let (jump, holds) = match relation.comparison {
        Comparison::Equal => (code::JUMP_EQUAL, true),
        Comparison::Unequal => (code::JUMP_EQUAL, false),
        Comparison::Greater => (code::JUMP_GREATER, true),
        Comparison::LessEqual => (code::JUMP_GREATER, false),
        Comparison::GreaterEqual => (code::JUMP_GREATER_EQUAL, true),
        Comparison::Less => (code::JUMP_GREATER_EQUAL, false),
    };
    let test = Tree::test(load, jump | with_x, number);
    let mut tests = needed.tests;
    tests.push(if holds { test } else { test.not() });
    Ok(Tree::All(tests))
}

/// Protocols that have to be there before fields of them are loaded.
struct Needed<'l> {
    layout: &'l Layout,
    tests: Vec<Tree>,
    protocols: Vec<Protocol>,
}

impl Needed<'_> {
    /// Instructions that leave a number in A. Words of scratch memory from `free` on may be changed.
    fn load(
        &mut self,
        of: &Arithmetic,
        free: usize,
        out: &mut Vec<Instruction>,
    ) -> Result<(), FilterError> {
        match of {
            Arithmetic::Number(number) => out.push(Instruction::plain(code::LOAD_NUMBER, *number)),
            Arithmetic::Length => out.push(Instruction::plain(code::LOAD_LENGTH, 0)),
            Arithmetic::Calculation {
                operation,
                left,
                right,
            } => {
                self.load(left, free, out)?;
                if let Arithmetic::Number(number) = **right {
                    out.push(Instruction::plain(*operation, number));
                } else {
                    self.beside(right, free, out)?;
                    out.push(Instruction::plain(operation | code::WITH_X, 0));
                }
            }
            Arithmetic::Field {
                protocol,
                offset,
                width,
            } => {
                let field = self.field(*protocol, offset, free, out)?;
                match field {
                    Field::At(place) => out.extend(place.load(*width)),
                    Field::BehindX(at) => {
                        out.push(Instruction::plain(code::LOAD_INDEXED | width.code(), at));
                    }
                }
            }
        }
        Ok(())
    }

    /// Instructions that leave a number in X, and A as it was.
    fn beside(
        &mut self,
        of: &Arithmetic,
        free: usize,
        out: &mut Vec<Instruction>,
    ) -> Result<(), FilterError> {
        let cell = scratch(free)?;
        out.push(Instruction::plain(code::STORE, cell));
        self.load(of, free + 1, out)?;
        out.push(Instruction::plain(code::A_TO_X, 0));
        out.push(Instruction::plain(code::LOAD_SCRATCH, cell));
        Ok(())
    }

    /// Instructions after which a field can be loaded, and where it is then.
    fn field(
        &mut self,
        protocol: Protocol,
        offset: &Arithmetic,
        free: usize,
        out: &mut Vec<Instruction>,
    ) -> Result<Field, FilterError> {
        let (base, behind_v4) = self.base(protocol);
        match (offset, behind_v4) {
            (Arithmetic::Number(offset), false) => Ok(Field::At(base.plus(*offset))),
            (Arithmetic::Number(offset), true) => {
                out.extend(v4_header(self.layout));
                Ok(Field::BehindX(base.plus(*offset).at))
            }
            (offset, behind_v4) => {
                self.load(offset, free, out)?;
                if behind_v4 {
                    let cell = scratch(free)?;
                    out.push(Instruction::plain(code::STORE, cell));
                    out.extend(v4_header(self.layout));
                    out.push(Instruction::plain(code::LOAD_SCRATCH, cell));
                    out.push(Instruction::plain(code::ADD | code::WITH_X, 0));
                } else if let Some(cell) = base.from {
                    out.push(Instruction::plain(code::LOAD_X_SCRATCH, cell));
                    out.push(Instruction::plain(code::ADD | code::WITH_X, 0));
                }
                out.push(Instruction::plain(code::A_TO_X, 0));
                Ok(Field::BehindX(base.at))
            }
        }
    }

    /// Where the header of a protocol begins, and whether the length of IPv4's header is to be added.
    fn base(&mut self, protocol: Protocol) -> (Place, bool) {
        let layout = self.layout;
        let payload = layout.payload();
        let known = self.protocols.contains(&protocol);
        self.protocols.push(protocol);
        let (tests, base, behind_v4) = match protocol {
            Protocol::Link => (Vec::new(), layout.frame(), false),
            Protocol::Ip | Protocol::Ip6 | Protocol::Arp | Protocol::Rarp => {
                (vec![layout.carries(protocol)], payload, false)
            }
            Protocol::Icmp6 => {
                let number = protocol.number_in_ip().unwrap_or_default();
                let tests = vec![layout.carries(Protocol::Ip6), v6_next(layout, number)];
                (tests, payload.plus(V6_BYTES), false)
            }
            Protocol::Tcp | Protocol::Udp | Protocol::Sctp | Protocol::Icmp | Protocol::Igmp => {
                let number = protocol.number_in_ip().unwrap_or_default();
                let tests = vec![in_v4(layout, number), not_later_fragment(layout)];
                (tests, payload, true)
            }
        };
        if !known {
            self.tests.extend(tests);
        }
        (base, behind_v4)
    }
}

/// Where a field is, once what leads to it was run.
enum Field {
    At(Place),
    BehindX(u32),
}

/// A word of scratch memory, if there are so many.
fn scratch(cell: usize) -> Result<u32, FilterError> {
    match u32::try_from(cell) {
        Ok(word) if cell < SCRATCH_WORDS => Ok(word),
        _ => Err(FilterError::TooManyResults {
            most: SCRATCH_WORDS,
        }),
    }
}
