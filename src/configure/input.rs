//! What is pasted, and the answer to the question.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use crate::sys::signals::ignore_keys;

/// More than all settings need.
const MAX_INPUT: usize = 64 * 1024;

/// The characters of a line: more than one of the set-up page has. Only the start of a longer value would be shown.
const MAX_LINE: usize = 1100;

/// A terminal sends a long paste in several parts. After this time without one, it has ended.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Reads standard input up to an empty line, or its end.
pub fn read() -> Result<Vec<u8>, String> {
    let mut input = io::stdin().lock();
    let is_terminal = input.is_terminal();
    if is_terminal {
        // Otherwise a character in the paste would end the program, and the shell would run what follows.
        ignore_keys();
        println!("Paste the settings, NAME=value, and press Enter until a line is empty:");
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
        return Err("text follows the empty line; paste the settings alone".to_owned());
    }
    Ok(text)
}

fn read_lines(input: &mut impl BufRead) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    loop {
        let mut line = Vec::new();
        let mut limited = input.take((MAX_INPUT + 1 - text.len()) as u64);
        limited
            .read_until(b'\n', &mut line)
            .map_err(|error| error.to_string())?;
        if line.trim_ascii().is_empty() {
            break;
        }
        text.extend(line);
        if text.len() > MAX_INPUT {
            return Err(format!("standard input: more than {MAX_INPUT} bytes"));
        }
    }
    check_characters(&text)?;
    Ok(text)
}

/// Refuses what a terminal could show as something else: what is not on the keyboards of Latin languages.
fn check_characters(text: &[u8]) -> Result<(), String> {
    let text = str::from_utf8(text).map_err(|_| "standard input: not valid UTF-8")?;
    let is_allowed = |c: char| {
        c == ' '
            || c.is_ascii_graphic()
            || (('\u{c0}'..='\u{24f}').contains(&c) && c.is_alphabetic())
    };
    for (number, line) in (1..).zip(text.lines()) {
        if line.chars().count() > MAX_LINE {
            return Err(format!(
                "standard input: line {number}: longer than {MAX_LINE} characters"
            ));
        }
        if let Some(c) = line.trim_ascii().chars().find(|&c| !is_allowed(c)) {
            return Err(format!(
                "standard input: line {number}: the character {} cannot be pasted; if it belongs there, write \
                 this line into the file by hand",
                c.escape_unicode()
            ));
        }
    }
    Ok(())
}

/// Reads what a terminal has sent after the empty line.
fn discard(input: &mut (impl BufRead + std::os::fd::AsFd)) -> Result<Vec<u8>, String> {
    let mut rest = Vec::new();
    loop {
        let mut ready = [PollFd::new(&*input, PollFlags::IN)];
        let count = poll(&mut ready, Some(&PAUSE)).map_err(|error| error.to_string())?;
        let read = if count == 0 {
            0
        } else {
            input.read_until(b'\n', &mut rest).unwrap_or(0)
        };
        if read == 0 {
            break;
        }
        rest.truncate(MAX_INPUT);
    }
    // A line without its end
    tcflush(&*input, QueueSelector::IFlush).map_err(|error| error.to_string())?;
    Ok(rest)
}

/// Asks at the terminal. The answer is a number, so that it cannot be part of a paste.
pub fn confirm() -> Result<(), String> {
    let no_terminal = |error| format!("cannot ask, without a terminal ({error}): use --yes");
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(no_terminal)?;
    let number = random_number().map_err(|error| format!("/dev/urandom: {error}"))?;
    _ = write!(&terminal, "To write this, type {number} and press Enter: ");
    let mut answer = String::new();
    _ = BufReader::new((&terminal).take(1000)).read_line(&mut answer);
    if answer.trim() == number.to_string() {
        return Ok(());
    }
    flush(&terminal).map_err(|error| error.to_string())?;
    Err("not confirmed".to_owned())
}

/// Discards what a terminal still sends: the rest of a paste that came after a pause, which the shell would run.
fn flush(terminal: &File) -> io::Result<()> {
    while poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&PAUSE))? > 0 {
        tcflush(terminal, QueueSelector::IFlush)?;
    }
    // A line without its end
    Ok(tcflush(terminal, QueueSelector::IFlush)?)
}

/// A number of four digits.
fn random_number() -> io::Result<u16> {
    let mut bytes = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(1000 + u16::from_ne_bytes(bytes) % 9000)
}
