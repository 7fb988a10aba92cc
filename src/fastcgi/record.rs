//! Records (FastCGI 1.0 §3.3) and name-value pairs (§3.4): bytes in, values out, and back.
//!
//! A record has a header of eight bytes: version, type, request id (2), content length (2), padding
//! length, reserved. Content and padding follow.

/// FCGI_VERSION_1
pub const VERSION: u8 = 1;

/// The maximum content length of a sent record: the largest multiple of eight in 16 bits, so that the
/// next header is aligned without padding.
const MAX_CONTENT: usize = 0xfff8;

/// The record types of §8.
pub mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const ABORT_REQUEST: u8 = 2;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    pub const GET_VALUES: u8 = 9;
    pub const GET_VALUES_RESULT: u8 = 10;
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// The size of a header
pub const HEADER: usize = 8;

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// One of [`kind`], or any other byte
    pub kind: u8,
    /// The request that it belongs to; 0 for a management record (§3.3)
    pub id: u16,
    /// The lengths of what follows
    pub content: u16,
    pub padding: u8,
}

impl Header {
    /// `None` for another protocol, or another version of it.
    pub fn parse(bytes: [u8; HEADER]) -> Option<Header> {
        let [version, kind, id1, id0, length1, length0, padding, _] = bytes;
        let [id, content] = [[id1, id0], [length1, length0]].map(u16::from_be_bytes);
        (version == VERSION).then_some(Header {
            kind,
            id,
            content,
            padding,
        })
    }
}

/// Appends `content` to `out`, as several records if it is too long for one. Empty content is one
/// empty record, which ends a stream (§3.3).
pub fn push(out: &mut Vec<u8>, kind: u8, id: u16, content: &[u8]) {
    if content.is_empty() {
        push_record(out, kind, id, &[]);
    }
    for part in content.chunks(MAX_CONTENT) {
        push_record(out, kind, id, part);
    }
}

/// Appends one record, with at most [`MAX_CONTENT`] bytes.
fn push_record(out: &mut Vec<u8>, kind: u8, id: u16, content: &[u8]) {
    let [id1, id0] = id.to_be_bytes();
    let [.., length1, length0] = content.len().to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, id1, id0, length1, length0, 0, 0]);
    out.extend_from_slice(content);
}

/// Name-value pairs, in order, up to the end or to a pair with an invalid length. CGI passes the parameters of a
/// request, which are such pairs, in the environment.
#[derive(Clone, Debug)]
pub struct Pairs<'b>(pub &'b [u8]);

impl<'b> Pairs<'b> {
    /// The pairs in all of `bytes`. `None` if a length is invalid.
    pub fn parse(bytes: &'b [u8]) -> Option<Pairs<'b>> {
        let mut pairs = Pairs(bytes);
        pairs.by_ref().for_each(drop);
        pairs.0.is_empty().then_some(Pairs(bytes))
    }
}

impl<'b> Iterator for Pairs<'b> {
    type Item = (&'b [u8], &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name_length, rest) = length(self.0)?;
        let (value_length, rest) = length(rest)?;
        let (name, rest) = rest.split_at_checked(name_length)?;
        let (value, rest) = rest.split_at_checked(value_length)?;
        self.0 = rest;
        Some((name, value))
    }
}

/// One byte below 128, or four with the highest bit set. Of fewer the first is a length beyond the data.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [b3, b2, b1, b0, ref rest @ ..] if b3 >= 0x80 => Some((
            usize::try_from(u32::from_be_bytes([b3 & 0x7f, b2, b1, b0])).ok()?,
            rest,
        )),
        [short, ref rest @ ..] => Some((short.into(), rest)),
        [] => None,
    }
}
