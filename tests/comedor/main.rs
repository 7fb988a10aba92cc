//! The real program, run as a web server runs it: variables in, bytes out.

mod budget;
mod check;
mod contract;
mod hostile;
mod install;
mod servers;
mod sessions;
mod store;
mod support;
mod together;
