//! What is pasted, and the answer to the question.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{QueueSelector, tcflush};

use crate::sys::log::printable;
use crate::sys::poll::is_ready_within;
use crate::sys::signals::{ignore_keys, note_keys, was_key_pressed};

/// More than all settings need.
const MAX_INPUT: usize = 64 * 1024;

/// The characters of a line: more than one of the set-up page has. Only the start of a longer value would be shown.
const MAX_LINE: usize = 1100;

/// More bytes than the number has
const MAX_ANSWER: usize = 100;

/// A terminal sends a long paste in several parts. After this time without one, it has ended.
const PAUSE: Duration = Duration::from_millis(250);

/// Why what was pasted is refused.
#[derive(Debug, thiserror::Error)]
pub enum PasteError {
    #[error("standard input: {0}")]
    Unreadable(#[source] io::Error),
    #[error("standard input: more than {} bytes", MAX_INPUT)]
    TooLong,
    #[error("standard input: not valid UTF-8")]
    NotUtf8,
    #[error("standard input: line {line}: longer than {} characters", MAX_LINE)]
    LongLine { line: usize },
    #[error(
        "standard input: line {line}, column {column}: {} cannot be pasted: remove it, or, if it belongs there, write \
         this line into the file by hand",
        described(*.character)
    )]
    Character {
        line: usize,
        column: usize,
        character: char,
    },
    #[error("text follows the empty line; paste the settings alone")]
    TextFollows,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("cannot ask, without a terminal ({0}): use --yes")]
    NoTerminal(#[source] io::Error),
    #[error("/dev/urandom: {0}")]
    NoNumber(#[source] io::Error),
    #[error("cannot read from the terminal: {0}")]
    Terminal(#[from] Errno),
    #[error("not confirmed")]
    NotConfirmed,
}

/// A character as a message shows it.
fn described(c: char) -> String {
    let code = u32::from(c);
    match c {
        '\t' => "a tab".to_owned(),
        _ if c.is_control() => format!("a control character (U+{code:04X})"),
        _ if !printable(c.encode_utf8(&mut [0; 4])).starts_with(c) => {
            format!("an invisible or combining character (U+{code:04X})")
        }
        // Its number tells it from a similar letter.
        _ => format!("the character {c} (U+{code:04X})"),
    }
}

/// Whether the settings are pasted at a terminal, and not sent by a script.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Reads standard input up to an empty line, or its end. At a terminal a paste can go on after a pause: only an answer
/// to [`Terminal::ask`] says that it has ended.
pub fn read() -> Result<Vec<u8>, PasteError> {
    let mut input = io::stdin().lock();
    if !is_terminal() {
        return read_lines(&mut input);
    }
    // Otherwise a character in the paste would end the program, and the shell would run what follows.
    ignore_keys();
    let prompt = "Paste the settings, NAME=value, and press Enter until a line is empty:";
    _ = writeln!(io::stdout(), "{prompt}");
    let text = read_lines(&mut input);
    let rest = read_rest(&mut input)?;
    let text = text?;
    if rest.trim_ascii().is_empty() {
        Ok(text)
    } else {
        Err(PasteError::TextFollows)
    }
}

fn read_lines(input: &mut impl BufRead) -> Result<Vec<u8>, PasteError> {
    let mut text = Vec::new();
    loop {
        let mut line = Vec::new();
        let mut limited = input.take((MAX_INPUT + 1 - text.len()) as u64);
        limited
            .read_until(b'\n', &mut line)
            .map_err(PasteError::Unreadable)?;
        if line.trim_ascii().is_empty() {
            break;
        }
        text.extend(line);
        if text.len() > MAX_INPUT {
            return Err(PasteError::TooLong);
        }
    }
    check_characters(&text)?;
    Ok(text)
}

/// Refuses what a terminal could show as something else: what is not on the keyboards of Latin languages.
fn check_characters(text: &[u8]) -> Result<(), PasteError> {
    let text = str::from_utf8(text).map_err(|_| PasteError::NotUtf8)?;
    for (line, text) in (1..).zip(text.lines()) {
        if text.chars().count() > MAX_LINE {
            return Err(PasteError::LongLine { line });
        }
        // Blanks around it are ignored.
        let text = text.trim_ascii_end();
        let indent = text.len() - text.trim_ascii_start().len();
        let refused = |&(column, c): &(usize, char)| column > indent && !is_allowed(c);
        if let Some((column, character)) = (1..).zip(text.chars()).find(refused) {
            return Err(PasteError::Character {
                line,
                column,
                character,
            });
        }
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    let is_latin_letter = ('\u{c0}'..='\u{24f}').contains(&c) && c.is_alphabetic();
    c == ' ' || c.is_ascii_graphic() || is_latin_letter
}

/// Reads what a terminal has sent after the empty line.
fn read_rest(input: &mut (impl BufRead + AsFd)) -> Result<Vec<u8>, PasteError> {
    let unreadable = |error: Errno| PasteError::Unreadable(error.into());
    let mut rest = Vec::new();
    loop {
        let is_ready = is_ready_within(PAUSE, input, PollFlags::IN).map_err(unreadable)?;
        if !is_ready || input.read_until(b'\n', &mut rest).unwrap_or(0) == 0 {
            break;
        }
        rest.truncate(MAX_INPUT);
    }
    // A line without its end
    tcflush(&*input, QueueSelector::IFlush).map_err(unreadable)?;
    Ok(rest)
}

/// The terminal of this process.
#[derive(Debug)]
pub struct Terminal(File);

impl Terminal {
    pub fn open() -> Result<Terminal, AnswerError> {
        let mut options = File::options();
        let terminal = options.read(true).write(true).open("/dev/tty");
        Ok(Terminal(terminal.map_err(AnswerError::NoTerminal)?))
    }

    /// Asks until the answer is the number that the question shows, which cannot be part of a paste. What else arrives
    /// may be the rest of a paste, and is discarded: the shell would run it. Ctrl-C ends the question.
    pub fn ask(&self, aim: &str) -> Result<(), AnswerError> {
        let number = random_number().map_err(AnswerError::NoNumber)?;
        note_keys();
        loop {
            _ = write!(&self.0, "{aim}, type {number} and press Enter: ");
            let answer = self.read_line();
            if answer
                .as_ref()
                .is_ok_and(|answer| *answer == number.to_string().as_bytes())
            {
                return Ok(());
            }
            self.discard()?;
            answer?;
        }
    }

    /// A line without blanks around it, or a part of a long one.
    fn read_line(&self) -> Result<Vec<u8>, AnswerError> {
        while !is_ready_within(PAUSE, &self.0, PollFlags::IN)? {
            if was_key_pressed() {
                return Err(AnswerError::NotConfirmed);
            }
        }
        let mut line = [0; MAX_ANSWER];
        let length = retry_on_intr(|| rustix::io::read(&self.0, &mut line))?;
        // Ctrl-D, or the terminal is gone
        if length == 0 && self.is_closed()? {
            return Err(AnswerError::NotConfirmed);
        }
        Ok(line[..length].trim_ascii().to_owned())
    }

    fn is_closed(&self) -> Result<bool, Errno> {
        is_ready_within(Duration::ZERO, &self.0, PollFlags::empty())
    }

    /// Discards what arrives until a pause.
    fn discard(&self) -> Result<(), Errno> {
        while is_ready_within(PAUSE, &self.0, PollFlags::IN)? {
            tcflush(&self.0, QueueSelector::IFlush)?;
        }
        // A line without its end
        tcflush(&self.0, QueueSelector::IFlush)
    }
}

/// A number of four digits.
fn random_number() -> io::Result<u16> {
    let mut bytes = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(1000 + u16::from_ne_bytes(bytes) % 9000)
}
