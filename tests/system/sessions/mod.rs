//! Sessions that PHP has written, in files and in Redis.

mod files;
pub mod redis;
mod redis_process;
