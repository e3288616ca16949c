//! A policy in Rust, and a bad one for most programs: the newest page leaves first. For a loop over slightly more than
//! fits, nothing beats it.
//!
//!     rustc -O --edition 2021 --crate-type cdylib -C panic=abort newest.rs -o newest.so
//!     hinterland run --policy ./newest.so -- ./program

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
pub struct Env {
    abi_version: u32,
    window_pages: u32,
    reserve: extern "C" fn(u64) -> *mut c_void,
    was_hinted: Option<extern "C" fn(*mut c_void, u32) -> c_int>,
    runtime: *mut c_void,
    settings: *const c_char,
    capacity: extern "C" fn(*mut c_void) -> u64,
    place_of: extern "C" fn(*mut c_void, u32) -> u64,
    page_at: extern "C" fn(*mut c_void, u64) -> u32,
}

#[repr(C)]
pub struct Ops {
    abi_version: u32,
    name: *const c_char,
    help: *const c_char,
    create: extern "C" fn(*const Env) -> *mut c_void,
    arrived: extern "C" fn(*mut c_void, u32, u32, c_int, u8),
    departed: extern "C" fn(*mut c_void, u32, u32),
    choose_victims: extern "C" fn(*mut c_void, *mut u32, u32) -> u32,
    size: extern "C" fn(*mut c_void) -> u64,
    accessed: Option<extern "C" fn(*mut c_void, u32, c_int)>,
    missed: Option<extern "C" fn(*mut c_void, u32, *mut u32, u32) -> u32>,
    flags: u32,
}
unsafe impl Sync for Ops {}

/// A stack of pages, and by page the place in it + 1; 0: it is not there.
struct Newest {
    stack: *mut u32,
    places: *mut u32,
    count: u64,
}

impl Newest {
    fn place(&mut self, page: u32) -> &mut u32 {
        unsafe { &mut *self.places.add(page as usize) }
    }
    fn at(&mut self, place: u32) -> &mut u32 {
        unsafe { &mut *self.stack.add(place as usize - 1) }
    }
    fn push(&mut self, page: u32) {
        self.count += 1;
        let place = self.count as u32;
        *self.at(place) = page;
        *self.place(page) = place;
    }
    fn pop(&mut self) -> u32 {
        let page = *self.at(self.count as u32);
        self.count -= 1;
        *self.place(page) = 0;
        page
    }
    /// The newest page takes the place of the one that goes.
    fn remove(&mut self, page: u32) {
        let place = *self.place(page);
        let newest = self.pop();
        if newest != page {
            *self.at(place) = newest;
            *self.place(newest) = place;
            *self.place(page) = 0;
        }
    }
}

fn of<'a>(state: *mut c_void) -> &'a mut Newest {
    unsafe { &mut *(state as *mut Newest) }
}

extern "C" fn create(env: *const Env) -> *mut c_void {
    let env = unsafe { &*env };
    let state = (env.reserve)(std::mem::size_of::<Newest>() as u64) as *mut Newest;
    let stack = (env.reserve)(u64::from(env.window_pages) * 4) as *mut u32;
    let places = (env.reserve)(u64::from(env.window_pages) * 4) as *mut u32;
    if state.is_null() || stack.is_null() || places.is_null() {
        return std::ptr::null_mut();
    }
    unsafe { state.write(Newest { stack, places, count: 0 }) };
    state as *mut c_void
}
extern "C" fn arrived(state: *mut c_void, first: u32, count: u32, _why: c_int, _priority: u8) {
    for page in first..first + count {
        if *of(state).place(page) == 0 {
            of(state).push(page);
        }
    }
}
extern "C" fn departed(state: *mut c_void, first: u32, count: u32) {
    for page in first..first + count {
        if *of(state).place(page) != 0 {
            of(state).remove(page);
        }
    }
}
extern "C" fn choose_victims(state: *mut c_void, out: *mut u32, max: u32) -> u32 {
    let chosen = of(state).count.min(u64::from(max)) as u32;
    for i in 0..chosen {
        unsafe { *out.add(i as usize) = of(state).pop() };
    }
    chosen
}
extern "C" fn size(state: *mut c_void) -> u64 {
    of(state).count
}

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static hl_policy_plugin: Ops = Ops {
    abi_version: 3,
    name: c"newest".as_ptr(),
    help: c"the newest page leaves first".as_ptr(),
    create,
    arrived,
    departed,
    choose_victims,
    size,
    accessed: None,
    missed: None,
    flags: 0,
};
