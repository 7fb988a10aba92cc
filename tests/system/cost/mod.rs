//! The cost of a request in instructions, system calls, page faults and memory.

mod budget;
