//! What must do as PHP does: JSON, forms and serialized values, which `tests/php` compares with an installed PHP, session
//! settings of php.ini, and functions of strings.

pub mod form;
pub mod json;
pub mod lexer;
pub mod session_settings;
pub mod text;
pub mod unserialize;
