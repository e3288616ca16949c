// Far memory and hints from Rust: struct hl_runtime of hinterland/hint.h.
//
//   rustc region.rs -l hinterland -L LIB -C link-arg=-Wl,-rpath,LIB
//   HINTERLAND_LOCAL=16M ./region
use std::ffi::{c_char, c_int, c_void, CStr};

#[repr(C)]
struct Region {
    data: *mut c_void,
    size: usize,
    inside: u64,
}

#[repr(C)]
struct Options {
    share: usize,
    rdahead: i32,
    policy: *const c_char,
    device: *const c_char,
}

#[repr(C)]
struct Runtime {
    abi_version: u32,
    reserved: u32,
    base: usize,
    size: usize,
    map: *const u8,
    hint: extern "C" fn(*const c_void, usize, i32, u32),
    pin: extern "C" fn(*const c_void, usize) -> c_int,
    unpin: extern "C" fn(*const c_void, usize) -> c_int,
    discard: extern "C" fn(*mut c_void, usize) -> c_int,
    cold: extern "C" fn(*const c_void, usize),
    region_create: extern "C" fn(*mut Region, usize, *const Options) -> c_int,
    region_destroy: extern "C" fn(*mut Region) -> c_int,
    region_error: extern "C" fn() -> *const c_char,
    region_create_sized: extern "C" fn(*mut Region, usize, *const Options, usize) -> c_int,
}

extern "C" {
    static hl_runtime: Runtime;
}

fn main() {
    let runtime = unsafe { &hl_runtime };
    let mut region = Region { data: std::ptr::null_mut(), size: 0, inside: 0 };
    let options = Options { share: usize::MAX, rdahead: -1, policy: std::ptr::null(), device: std::ptr::null() };
    let error = (runtime.region_create_sized)(&mut region, 64 << 20, &options, std::mem::size_of::<Options>());
    if error != 0 {
        let why = unsafe { CStr::from_ptr((runtime.region_error)()) };
        eprintln!("no region: error {} ({})", error, why.to_string_lossy());
        std::process::exit(1);
    }
    let table = unsafe { std::slice::from_raw_parts_mut(region.data as *mut u64, region.size / 8) };
    for (i, word) in table.iter_mut().enumerate() {
        *word = (i as u64) * (i as u64);
    }
    let mut sum = 0u64;
    for i in (0..table.len()).step_by(4099) {
        (runtime.hint)(&table[i] as *const u64 as *const c_void, 8, 0, 0);
        sum = sum.wrapping_add(table[i]);
    }
    println!("{}", sum);
    std::process::exit((runtime.region_destroy)(&mut region));
}
