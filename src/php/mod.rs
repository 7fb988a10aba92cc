//! What must do as PHP does, and is compared with an installed PHP by `tests/php`: JSON, forms, serialized
//! values, and the session settings of php.ini.

pub mod form;
pub mod ini;
pub mod json;
pub mod lexer;
pub mod unserialize;
