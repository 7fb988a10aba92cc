//! The program of an administrator: the command line, `comedor check` and `comedor setup`, and what they find
//! out about the machine.

pub mod accounts;
pub mod check;
pub mod child;
pub mod cli;
pub mod command;
pub mod inferred;
pub mod setup;
