//! What is pasted, and the answer to the question.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use crate::sys::log::printable;
use crate::sys::poll::is_ready_within;
use crate::sys::signals::ignore_keys;

/// More than all settings need.
const MAX_INPUT: usize = 64 * 1024;

/// The characters of a line: more than one of the set-up page has. Only the start of a longer value would be shown.
const MAX_LINE: usize = 1100;

/// The bytes of the answer that are read: more than the number has, and less than a line of a terminal (4096).
const MAX_ANSWER: u64 = 1000;

/// A terminal sends a long paste in several parts. After this time without one, it has ended.
const PAUSE: Duration = Duration::from_millis(250);

/// Why what was pasted, or the answer, is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    #[error("cannot ask, without a terminal ({0}): use --yes")]
    NoTerminal(#[source] io::Error),
    #[error("/dev/urandom: {0}")]
    NoNumber(#[source] io::Error),
    #[error("cannot read from the terminal: {0}")]
    Terminal(#[source] io::Error),
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

/// Reads standard input up to an empty line, or its end.
pub fn read() -> Result<Vec<u8>, Error> {
    let mut input = io::stdin().lock();
    let is_terminal = input.is_terminal();
    if is_terminal {
        // Otherwise a character in the paste would end the program, and the shell would run what follows.
        ignore_keys();
        let prompt = "Paste the settings, NAME=value, and press Enter until a line is empty:";
        _ = writeln!(io::stdout(), "{prompt}");
    }
    let read = read_lines(&mut input);
    // Otherwise the shell would run what follows.
    let rest = if is_terminal {
        discard(&mut input)?
    } else {
        Vec::new()
    };
    let text = read?;
    if !rest.trim_ascii().is_empty() {
        return Err(Error::TextFollows);
    }
    Ok(text)
}

fn read_lines(input: &mut impl BufRead) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    loop {
        let mut line = Vec::new();
        let mut limited = input.take((MAX_INPUT + 1 - text.len()) as u64);
        limited
            .read_until(b'\n', &mut line)
            .map_err(Error::Unreadable)?;
        if line.trim_ascii().is_empty() {
            break;
        }
        text.extend(line);
        if text.len() > MAX_INPUT {
            return Err(Error::TooLong);
        }
    }
    check_characters(&text)?;
    Ok(text)
}

/// Refuses what a terminal could show as something else: what is not on the keyboards of Latin languages.
fn check_characters(text: &[u8]) -> Result<(), Error> {
    let text = str::from_utf8(text).map_err(|_| Error::NotUtf8)?;
    for (line, text) in (1..).zip(text.lines()) {
        if text.chars().count() > MAX_LINE {
            return Err(Error::LongLine { line });
        }
        // Blanks around it are ignored.
        let text = text.trim_ascii_end();
        let indent = text.len() - text.trim_ascii_start().len();
        let refused = |&(column, c): &(usize, char)| column > indent && !is_allowed(c);
        if let Some((column, character)) = (1..).zip(text.chars()).find(refused) {
            return Err(Error::Character {
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
fn discard(input: &mut (impl BufRead + AsFd)) -> Result<Vec<u8>, Error> {
    let mut rest = Vec::new();
    loop {
        let is_ready = is_ready_within(PAUSE, input, PollFlags::IN).map_err(terminal_error)?;
        if !is_ready || input.read_until(b'\n', &mut rest).unwrap_or(0) == 0 {
            break;
        }
        rest.truncate(MAX_INPUT);
    }
    // A line without its end
    tcflush(&*input, QueueSelector::IFlush).map_err(terminal_error)?;
    Ok(rest)
}

/// Asks at the terminal. The answer is a number, so that it cannot be part of a paste.
pub fn confirm() -> Result<(), Error> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(Error::NoTerminal)?;
    let number = random_number().map_err(Error::NoNumber)?;
    _ = write!(&terminal, "To write this, type {number} and press Enter: ");
    let mut answer = String::new();
    _ = BufReader::new((&terminal).take(MAX_ANSWER)).read_line(&mut answer);
    if answer.trim() == number.to_string() {
        return Ok(());
    }
    flush(&terminal).map_err(terminal_error)?;
    Err(Error::NotConfirmed)
}

/// Discards what a terminal still sends: the rest of a paste that came after a pause, which the shell would run.
fn flush(terminal: &File) -> Result<(), Errno> {
    while is_ready_within(PAUSE, terminal, PollFlags::IN)? {
        tcflush(terminal, QueueSelector::IFlush)?;
    }
    // A line without its end
    tcflush(terminal, QueueSelector::IFlush)
}

fn terminal_error(error: Errno) -> Error {
    Error::Terminal(error.into())
}

/// A number of four digits.
fn random_number() -> io::Result<u16> {
    let mut bytes = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(1000 + u16::from_ne_bytes(bytes) % 9000)
}
