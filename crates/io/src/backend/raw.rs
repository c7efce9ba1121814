//! A system call in place.
//!
//! Knows the kernel's calling convention. Where the kernel protects its returns, a
//! CPU foresees the returns after a system call wrongly, some nanoseconds each, so
//! calls made for every I/O are made where they are needed and not in a function below.

/// Makes a system call; gives its result, or a negative error number.
///
/// # Safety
/// As for the call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let returned: isize;
    // SAFETY: arguments are in the convention's registers; `rcx` and `r11` are lost, memory
    // may change.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => returned,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

/// Makes a system call; gives its result, or a negative error number.
///
/// # Safety
/// As for the call.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: by the caller's promise.
    let returned = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if returned < 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        -(error.unwrap_or(libc::EIO) as isize)
    } else {
        returned as isize
    }
}
