//! Graphs of xplot, as tcptrace draws and names them: for each connection and direction the sequence numbers over time
//! (`a2b_tsg.xpl`), the throughput (`a2b_tput.xpl`), round trips (`a2b_rtt.xpl`) and the data on its way (`a2b_owin.xpl`).

mod direction;
mod pen;
mod sequence;
mod sheets;

use std::io;

use crate::followed::{Followed, Observer};
use direction::Direction;
pub use sheets::Folder;
use sheets::Sheets;

/// Connections that graphs are drawn of, the first ones: eight files each.
const MOST_CONNECTIONS: usize = 1000;

/// Draws graphs of the connections of a capture.
pub struct Xplot<F> {
    sheets: Sheets<F>,
    connections: Vec<Plotted>,
    left_out: Option<u32>,
}

/// A connection that is drawn.
struct Plotted {
    number: u32,
    /// Its directions by the side that sends: the client's first.
    directions: [Direction; 2],
}

impl<F: Folder> Xplot<F> {
    /// Draws into files of a folder.
    pub fn begin(folder: F) -> Self {
        Self {
            sheets: Sheets::new(folder),
            connections: Vec::new(),
            left_out: None,
        }
    }

    /// Ends the graphs; how many connections have none, since there were too many.
    ///
    /// # Errors
    /// When not all of them could be written.
    pub fn finish(self) -> io::Result<u64> {
        self.sheets.finish()?;
        let drawn = self.connections.len() as u64;
        Ok(self.left_out.map_or(0, |last| u64::from(last) + 1 - drawn))
    }

    /// The connection of a segment. They begin in the order of their numbers.
    fn plotted(&mut self, followed: &Followed<'_>) -> Option<&mut Plotted> {
        let number = followed.connection;
        let place = usize::try_from(number).ok()?;
        if place >= MOST_CONNECTIONS {
            self.left_out = self.left_out.max(Some(number));
            return None;
        }
        if place >= self.connections.len() {
            // As tcptrace has it: `a` is who sent the first packet.
            let letters = [2 * place, 2 * place + 1].map(letters);
            let [first, second] = &letters;
            let [client, server] = match followed.is_up() {
                true => [first, second],
                false => [second, first],
            };
            let [client_end, server_end] = followed.sockets();
            let up = (
                format!("{client}2{server}"),
                format!("{client_end}_==>_{server_end}"),
            );
            let down = (
                format!("{server}2{client}"),
                format!("{server_end}_==>_{client_end}"),
            );
            let directions =
                [up, down].map(|(name, title)| Direction::new(&mut self.sheets, &name, &title));
            self.connections.push(Plotted { number, directions });
        }
        self.connections
            .get_mut(place)
            .filter(|plotted| plotted.number == number)
    }
}

impl<F: Folder> Observer for Xplot<F> {
    fn segment(&mut self, followed: &Followed<'_>) {
        if self.plotted(followed).is_none() {
            return;
        }
        let Self {
            sheets,
            connections,
            ..
        } = self;
        let place = usize::try_from(followed.connection).unwrap_or(usize::MAX);
        let Some(Plotted {
            directions: [up, down],
            ..
        }) = connections.get_mut(place)
        else {
            return;
        };
        let (own, other) = match followed.is_up() {
            true => (up, down),
            false => (down, up),
        };
        own.sent(sheets, followed);
        other.answered(sheets, followed);
    }

    fn has_failed(&self) -> bool {
        self.sheets.has_failed()
    }
}

/// Letters of a host by its place, as tcptrace has them: a to z, aa, ab, and so on.
fn letters(place: usize) -> String {
    let (mut letters, mut rest) = (Vec::new(), place + 1);
    // Ends at zero: each turn divides by 26.
    while rest > 0 {
        letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.into_iter().rev().collect()
}

#[cfg(test)]
#[path = "xplot/tests.rs"]
mod tests;
