//! An interpreter of classic BPF. It ends, whatever the program: every instruction leads to a later one. Loads outside
//! of a packet, and whatever is no instruction, refuse the packet, as the kernel and libpcap have it.

use super::bpf::{Instruction, SCRATCH_WORDS, Width, code};

/// What a program does next.
enum Next {
    /// So many instructions are passed over.
    Skip(u32),
    Return(u32),
}

/// The registers of a run, and the packet.
struct Machine<'a> {
    a: u32,
    x: u32,
    scratch: [u32; SCRATCH_WORDS],
    bytes: &'a [u8],
    original: u32,
}

/// How many bytes of a packet the program would keep: none where it refuses it.
pub(super) fn run(program: &[Instruction], bytes: &[u8], original: u32) -> u32 {
    let mut machine = Machine {
        a: 0,
        x: 0,
        scratch: [0; SCRATCH_WORDS],
        bytes,
        original,
    };
    let mut at = 0_usize;
    // Ends with the program: each turn advances by at least one.
    while let Some(instruction) = program.get(at) {
        match machine.step(instruction) {
            Some(Next::Skip(over)) => at = at.saturating_add(1).saturating_add(over as usize),
            Some(Next::Return(kept)) => return kept,
            None => return 0,
        }
    }
    0
}

impl Machine<'_> {
    /// Runs an instruction; nothing where the packet is refused.
    #[inline]
    fn step(&mut self, instruction: &Instruction) -> Option<Next> {
        const JUMPS: u16 = 0x05;
        const ARITHMETIC: u16 = 0x04;
        /// The bits that hold the class of an instruction.
        const CLASS: u16 = 0x07;
        let k = instruction.k;
        match instruction.code {
            code::LOAD_NUMBER => self.a = k,
            code::LOAD_LENGTH => self.a = self.original,
            code::LOAD_SCRATCH => self.a = *self.scratch.get(k as usize)?,
            code::LOAD_X_NUMBER => self.x = k,
            code::LOAD_X_LENGTH => self.x = self.original,
            code::LOAD_X_SCRATCH => self.x = *self.scratch.get(k as usize)?,
            code::LOAD_X_HEADER => self.x = 4 * (self.load(k, Width::One)? & 0x0f),
            code::STORE => *self.scratch.get_mut(k as usize)? = self.a,
            code::STORE_X => *self.scratch.get_mut(k as usize)? = self.x,
            code::A_TO_X => self.x = self.a,
            code::X_TO_A => self.a = self.x,
            code::NEGATE => self.a = self.a.wrapping_neg(),
            code::RETURN => return Some(Next::Return(k)),
            code::RETURN_A => return Some(Next::Return(self.a)),
            code::JUMP => return Some(Next::Skip(k)),
            jump if jump & CLASS == JUMPS => return self.jump(instruction),
            arithmetic if arithmetic & CLASS == ARITHMETIC => {
                let by = self.operand(instruction);
                self.a = calculate(arithmetic & !code::WITH_X, self.a, by)?;
            }
            load => {
                let (at, plain) = match load & code::LOAD_INDEXED {
                    0 => (k, load ^ code::LOAD),
                    _ => (self.x.checked_add(k)?, load ^ code::LOAD_INDEXED),
                };
                let widths = [Width::Four, Width::Two, Width::One];
                let width = widths.into_iter().find(|width| width.code() == plain)?;
                self.a = self.load(at, width)?;
            }
        }
        Some(Next::Skip(0))
    }

    fn operand(&self, instruction: &Instruction) -> u32 {
        match instruction.code & code::WITH_X {
            0 => instruction.k,
            _ => self.x,
        }
    }

    #[inline]
    fn jump(&self, instruction: &Instruction) -> Option<Next> {
        let with = self.operand(instruction);
        let holds = match instruction.code & !code::WITH_X {
            code::JUMP_EQUAL => self.a == with,
            code::JUMP_GREATER => self.a > with,
            code::JUMP_GREATER_EQUAL => self.a >= with,
            code::JUMP_ANY_BIT => self.a & with != 0,
            _ => return None,
        };
        let over = match holds {
            true => instruction.jt,
            false => instruction.jf,
        };
        Some(Next::Skip(u32::from(over)))
    }

    /// A number of the packet, in network byte order.
    #[inline]
    fn load(&self, at: u32, width: Width) -> Option<u32> {
        let rest = self.bytes.get(at as usize..)?;
        Some(match width {
            Width::One => u32::from(*rest.first()?),
            Width::Two => u32::from(u16::from_be_bytes(*rest.first_chunk()?)),
            Width::Four => u32::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

/// Arithmetic of 32 bits without a sign. Nothing where a program divides by zero.
pub(super) fn calculate(operation: u16, a: u32, b: u32) -> Option<u32> {
    Some(match operation {
        code::ADD => a.wrapping_add(b),
        code::SUBTRACT => a.wrapping_sub(b),
        code::MULTIPLY => a.wrapping_mul(b),
        code::DIVIDE => a.checked_div(b)?,
        code::REMAINDER => a.checked_rem(b)?,
        code::OR => a | b,
        code::AND => a & b,
        code::EXCLUSIVE_OR => a ^ b,
        code::SHIFT_LEFT => a.checked_shl(b).unwrap_or(0),
        code::SHIFT_RIGHT => a.checked_shr(b).unwrap_or(0),
        _ => return None,
    })
}
