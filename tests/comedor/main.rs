//! The real program, run as a web server runs it: variables in, bytes out.

mod api;
mod budget;
mod check;
mod contract;
mod faults;
mod hostile;
mod install;
mod leave;
mod oracle;
mod servers;
mod sessions;
mod site;
mod store;
mod support;
mod together;
