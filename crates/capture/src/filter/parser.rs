//! A filter's text to its tree, by recursive descent. `and` and `or` bind equally and from the left, as in libpcap.

use super::address::is_address;
use super::bpf::{Width, code};
use super::error::FilterError;
use super::names;
use super::nesting::Nesting;
use super::number::looks_like_number;
use super::operators::{calculation, comparison, operator};
use super::plain;
use super::primitive::{Qualifiers, identifier, qualifiers, within};
use super::stream::{Stream, unexpected};
use super::syntax::{Arithmetic, Comparison, Condition, Protocol, Relation};
use super::words::Word;

/// The largest place in a packet: the largest snapshot of libpcap (MAXIMUM_SNAPLEN), in bytes.
const LARGEST_OFFSET: u32 = 262_144;

const CONDITION: &str = "a condition: a protocol, host, net, port, portrange, proto, src, dst, vlan, greater, less, an address or a comparison";
const NUMBER: &str = "a number, len, or a field such as tcp[13]";

/// Part of a filter, before it is known what it belongs to.
enum Part<'t> {
    Condition(Condition),
    /// A number that may also be one of a list of ports.
    Literal(Word<'t>, u32),
    Arithmetic(Arithmetic),
}

/// What is read, and what the next member of a list inherits.
type Read<'t> = Result<(Part<'t>, Option<Qualifiers>), FilterError>;

struct Parser<'t> {
    stream: Stream<'t>,
    nesting: Nesting,
}

pub(super) fn parse(text: &str) -> Result<Condition, FilterError> {
    let mut parser = Parser {
        stream: Stream::of(text)?,
        nesting: Nesting::default(),
    };
    if parser.stream.ahead(0).is_none() {
        return Err(FilterError::Empty);
    }
    let (whole, inherited) = parser.expression(None)?;
    if parser.stream.ahead(0).is_some() {
        return Err(parser.stream.unexpected(match whole {
            Part::Condition(_) => "`and`, `or`, or the end of the filter",
            _ => "a comparison such as = or >",
        }));
    }
    parser.condition(whole, inherited)
}

impl<'t> Parser<'t> {
    /// Conditions joined by `and` and `or`; or a number, where it stands alone.
    fn expression(&mut self, inherited: Option<Qualifiers>) -> Read<'t> {
        let (first, mut inherited) = self.operand(inherited)?;
        if self.joint().is_none() {
            return Ok((first, inherited));
        }
        let mut whole = self.condition(first, inherited)?;
        let mut joined_by_and = None;
        // Ends with the text: each turn takes a word.
        while let Some(and) = self.joint() {
            if joined_by_and.is_some_and(|before| before != and) {
                self.nesting.change(&self.stream)?;
            }
            joined_by_and = Some(and);
            self.stream.pass();
            let (next, of_next) = self.operand(inherited)?;
            let next = self.condition(next, of_next)?;
            inherited = of_next;
            whole = match (whole, and) {
                (Condition::All(mut members), true) => {
                    members.push(next);
                    Condition::All(members)
                }
                (Condition::Any(mut members), false) => {
                    members.push(next);
                    Condition::Any(members)
                }
                (whole, true) => Condition::All(vec![whole, next]),
                (whole, false) => Condition::Any(vec![whole, next]),
            };
        }
        Ok((Part::Condition(whole), inherited))
    }

    /// Whether `and` is next, or `or`, or neither.
    fn joint(&self) -> Option<bool> {
        match self.stream.peek() {
            "and" | "&&" => Some(true),
            "or" | "||" => Some(false),
            _ => None,
        }
    }

    /// A condition, a comparison, or a number that may turn out to be a port.
    fn operand(&mut self, inherited: Option<Qualifiers>) -> Read<'t> {
        if matches!(self.stream.peek(), "not" | "!") {
            self.nesting.deepen(&self.stream)?;
            self.stream.pass();
            let (part, inherited) = self.operand(inherited)?;
            let condition = self.condition(part, inherited)?;
            self.nesting.rise();
            return Ok((
                Part::Condition(Condition::Not(Box::new(condition))),
                inherited,
            ));
        }
        let (part, inherited) = self.primary(inherited)?;
        let left = match part {
            Part::Condition(_) => return Ok((part, inherited)),
            _ if comparison(self.stream.peek()).is_none()
                && operator(self.stream.peek()).is_none() =>
            {
                return Ok((part, inherited));
            }
            Part::Literal(_, number) => Arithmetic::Number(number),
            Part::Arithmetic(arithmetic) => arithmetic,
        };
        let left = self.operators(left, 0)?;
        let Some(comparison) = comparison(self.stream.peek()) else {
            return Ok((Part::Arithmetic(left), inherited));
        };
        self.stream.pass();
        let right = self.arithmetic()?;
        let right = self.operators(right, 0)?;
        self.nesting.end_comparison();
        let relation = Box::new(Relation {
            left,
            comparison,
            right,
        });
        Ok((Part::Condition(Condition::Relation(relation)), None))
    }

    /// What has no operator outside of brackets.
    fn primary(&mut self, inherited: Option<Qualifiers>) -> Read<'t> {
        let Some(word) = self.stream.ahead(0) else {
            return Err(self.stream.unexpected(CONDITION));
        };
        let condition = match self.stream.peek() {
            "(" => {
                let (part, _) = self.parenthesised(inherited)?;
                return Ok((part, inherited));
            }
            "-" => {
                self.nesting.deepen(&self.stream)?;
                self.stream.pass();
                let of = self.arithmetic()?;
                self.nesting.rise();
                let negative = calculation(word, code::SUBTRACT, Arithmetic::Number(0), of)?;
                return Ok((Part::Arithmetic(negative), inherited));
            }
            "len" | "length" => {
                self.stream.pass();
                return Ok((Part::Arithmetic(Arithmetic::Length), inherited));
            }
            "vlan" => plain::vlan(&mut self.stream)?,
            "greater" => plain::length(&mut self.stream, Comparison::GreaterEqual)?,
            "less" => plain::length(&mut self.stream, Comparison::LessEqual)?,
            text => match (names::protocol(text), names::named_number(text)) {
                (Some(protocol), _) if self.stream.text_ahead(1) == "[" => {
                    let field = self.field(protocol)?;
                    return Ok((Part::Arithmetic(field), inherited));
                }
                (Some(protocol), _) => return self.qualified(Some(protocol)),
                (None, Some(number)) => {
                    self.stream.pass();
                    return Ok((Part::Arithmetic(Arithmetic::Number(number)), inherited));
                }
                (None, None) => return self.word(word, inherited),
            },
        };
        Ok((Part::Condition(condition), None))
    }

    /// Parentheses, and what is in them.
    fn parenthesised(&mut self, inherited: Option<Qualifiers>) -> Read<'t> {
        self.nesting.deepen(&self.stream)?;
        self.stream.pass();
        let inner = self.expression(inherited)?;
        if !self.stream.accept(")") {
            return Err(self.stream.unexpected("a closing parenthesis"));
        }
        self.nesting.rise();
        Ok(inner)
    }

    /// A condition that begins with qualifiers, or is a protocol by itself.
    fn qualified(&mut self, protocol: Option<Protocol>) -> Read<'t> {
        if protocol.is_some() {
            self.stream.pass();
        }
        if let Some(qualifiers) = qualifiers(&mut self.stream, protocol)? {
            return self.identified(qualifiers);
        }
        match protocol {
            Some(Protocol::Link) => Err(self
                .stream
                .unexpected("host, src, dst, proto or [ behind `ether`")),
            Some(protocol) => Ok((Part::Condition(Condition::Protocol(protocol)), None)),
            None => Err(self.stream.unexpected(CONDITION)),
        }
    }

    /// An address, port or number behind its qualifiers, or several in parentheses.
    fn identified(&mut self, qualifiers: Qualifiers) -> Read<'t> {
        let inherited = Some(qualifiers);
        let condition = match self.stream.peek() {
            "(" => {
                let (part, _) = self.parenthesised(inherited)?;
                self.condition(part, inherited)?
            }
            "not" | "!" => {
                self.nesting.deepen(&self.stream)?;
                self.stream.pass();
                let (part, _) = self.identified(qualifiers)?;
                self.nesting.rise();
                Condition::Not(Box::new(self.condition(part, inherited)?))
            }
            _ => identifier(&mut self.stream, qualifiers)?,
        };
        Ok((Part::Condition(condition), inherited))
    }

    /// A word that is none of the language: a number, an address, or a member of a list.
    fn word(&mut self, word: Word<'t>, inherited: Option<Qualifiers>) -> Read<'t> {
        if looks_like_number(word.text) && !word.escaped {
            let value = within(word, word.text, u32::MAX)?;
            self.stream.pass();
            return Ok((Part::Literal(word, value), inherited));
        }
        if matches!(
            word.text,
            "src" | "dst" | "host" | "net" | "port" | "portrange" | "proto"
        ) {
            return self.qualified(None);
        }
        if let Some(qualifiers) = inherited {
            return self.identified(qualifiers);
        }
        match is_address(word.text) {
            true => self.identified(Qualifiers::default()),
            false => Err(self.stream.unexpected(CONDITION)),
        }
    }

    /// What is to be a condition; a number alone is one where a list has its qualifiers.
    fn condition(
        &mut self,
        part: Part<'t>,
        inherited: Option<Qualifiers>,
    ) -> Result<Condition, FilterError> {
        match (part, inherited) {
            (Part::Condition(condition), _) => Ok(condition),
            (Part::Literal(word, _), Some(qualifiers)) => {
                identifier(&mut Stream::single(word), qualifiers)
            }
            (Part::Literal(word, _), None) => Err(unexpected(word, CONDITION)),
            (Part::Arithmetic(_), _) => Err(self.stream.unexpected("a comparison such as = or >")),
        }
    }

    /// A number that an operator or a comparison asks for.
    fn arithmetic(&mut self) -> Result<Arithmetic, FilterError> {
        let first = self.stream.ahead(0);
        match self.primary(None)?.0 {
            Part::Literal(_, number) => Ok(Arithmetic::Number(number)),
            Part::Arithmetic(arithmetic) => Ok(arithmetic),
            Part::Condition(_) => Err(match first {
                Some(word) => unexpected(word, NUMBER),
                None => self.stream.unexpected(NUMBER),
            }),
        }
    }

    /// Operators behind a number that bind at least so closely.
    fn operators(&mut self, left: Arithmetic, closeness: u8) -> Result<Arithmetic, FilterError> {
        let mut whole = left;
        // Ends with the text: each turn takes an operator.
        while let Some((operation, close)) = operator(self.stream.peek())
            && close >= closeness
        {
            let word = self.stream.take(NUMBER)?;
            self.nesting.calculate(&self.stream)?;
            let right = self.arithmetic()?;
            // Five degrees of closeness: it goes no deeper than that.
            let right = self.operators(right, close + 1)?;
            whole = calculation(word, operation, whole, right)?;
        }
        Ok(whole)
    }

    /// A field of a protocol: its place, and how many bytes it has.
    fn field(&mut self, protocol: Protocol) -> Result<Arithmetic, FilterError> {
        self.nesting.deepen(&self.stream)?;
        self.stream.pass();
        self.stream.pass();
        let place = self.stream.ahead(0);
        let offset = self.arithmetic()?;
        let offset = self.operators(offset, 0)?;
        if let (Arithmetic::Number(known), Some(place)) = (&offset, place)
            && *known > LARGEST_OFFSET
        {
            return Err(unexpected(place, "a place that a packet has"));
        }
        let mut width = Width::One;
        if self.stream.accept(":") {
            let accepted = "1, 2 or 4 bytes";
            let word = self.stream.take(accepted)?;
            width = match word.text {
                "1" => Width::One,
                "2" => Width::Two,
                "4" => Width::Four,
                _ => return Err(unexpected(word, accepted)),
            };
        }
        if !self.stream.accept("]") {
            return Err(self.stream.unexpected("a closing bracket, or : and a size"));
        }
        self.nesting.rise();
        Ok(Arithmetic::Field {
            protocol,
            offset: Box::new(offset),
            width,
        })
    }
}
