//! The administrator's program: command line, `comedor check`, `comedor setup`, and what they ask the machine.

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
