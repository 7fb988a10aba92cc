//! The program of an administrator: the command line, `comedor check` and `comedor setup`, and what they find
//! out about the machine.

pub mod accounts;
mod brief_file;
pub mod check;
pub mod child;
pub mod cli;
pub mod command;
mod guide;
mod limited;
pub mod settings;
pub mod setup;
pub mod site;
