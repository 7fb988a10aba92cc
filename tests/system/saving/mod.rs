//! The rules of storage, which a save must keep on a real disk. `tests/contract/` has those that Rust alone can test:
//! `store/`, writers at the same time (`together.rs`), PHP pages (`pages.rs`) and power cuts (`power_cuts.rs`). Pages that
//! save by `examples/guardar.php` are here.

mod access;
mod attributes;
mod faults;
mod file_systems;
mod files;
mod network;
mod pages;
mod replace;
