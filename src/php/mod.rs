//! What must do as PHP does, and is compared with an installed PHP by `tests/php`: JSON, forms, serialized
//! values, the session settings of php.ini, and functions of strings.

pub mod form;
pub mod ini;
pub mod json;
pub mod lexer;
pub mod text;
pub mod unserialize;
