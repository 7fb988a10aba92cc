//! The input of a connection, taken record by record.

use std::io::{self, Error, ErrorKind, Read};
use std::ops::Range;

use super::record::{self, HEADER, Header};

/// The size of a buffer for what is received. A request without a large body is shorter, so that one read is enough.
pub const BUFFER: usize = 16 * 1024;

/// What is received on a stream. The content of a record is taken, in parts if it is long, or skipped.
#[derive(Debug)]
pub struct Input<S> {
    pub stream: S,
    /// What was received and not yet taken is from `start` to `end`
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The length of the content of the current record that was not yet taken
    content: usize,
    /// The length of its padding
    padding: usize,
    /// The number of bytes received
    pub received: u64,
}

/// The connection can have no further request; the rest of its input is to be discarded.
pub fn over() -> Error {
    ErrorKind::InvalidData.into()
}

impl<S: Read> Input<S> {
    pub fn new(stream: S) -> Input<S> {
        Input {
            stream,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            content: 0,
            padding: 0,
            received: 0,
        }
    }

    /// Whether a part of another record has been received.
    pub fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Whether the current record has content that was not yet taken.
    pub fn has_content(&self) -> bool {
        self.content > 0
    }

    /// The header of the next record; `None` at the end of the connection. Can be called again after a timeout.
    pub fn header(&mut self) -> io::Result<Option<Header>> {
        self.skip()?;
        loop {
            if let Some(bytes) = self.buffer[self.start..self.end].first_chunk::<HEADER>() {
                let header = Header::parse(*bytes).ok_or_else(over)?;
                self.start += HEADER;
                self.content = header.content.into();
                self.padding = header.padding.into();
                return Ok(Some(header));
            }
            if self.has_other_protocol() {
                return Err(over());
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether the first byte of a header is another one than its first.
    fn has_other_protocol(&self) -> bool {
        let first = self.buffer[self.start..self.end].first();
        first.is_some_and(|&version| version != record::VERSION)
    }

    /// The rest of the content of the current record.
    pub fn content(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.content);
        while self.content > 0 {
            content.extend_from_slice(self.part(self.content)?);
        }
        Ok(content)
    }

    /// The next part of the content of the current record: at least one byte, at most `most`.
    pub fn part(&mut self, most: usize) -> io::Result<&[u8]> {
        let part = self.take(most.min(self.content))?;
        self.content -= part.len();
        Ok(&self.buffer[part])
    }

    /// Discards the rest of the current record.
    pub fn skip(&mut self) -> io::Result<()> {
        while self.content > 0 {
            self.part(self.content)?;
        }
        while self.padding > 0 {
            self.padding -= self.take(self.padding)?.len();
        }
        Ok(())
    }

    /// Takes at least one and at most `most` bytes; where they are in the buffer.
    fn take(&mut self, most: usize) -> io::Result<Range<usize>> {
        if self.start == self.end && self.fill()? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let from = self.start;
        self.start = self.end.min(from + most);
        Ok(from..self.start)
    }

    /// Receives at least one byte; 0 is the end of the input.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start.., 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let length = self.stream.read(&mut self.buffer[self.end..])?;
        self.end += length;
        self.received += length as u64;
        Ok(length)
    }
}
