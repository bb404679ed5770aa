//! Prints how many allocations a call makes, of work-permit and of its peers.

use work_permit_benches::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    allocations::print();
}
