//! The CPUs a worker may run on, all of them or the one it is on (sched_setaffinity(2)).
//! Knows no reason for either.

use std::mem::{size_of, zeroed};

/// The CPUs of a thread, as they were given to it. Only that thread may use it.
#[derive(Debug)]
pub struct OwnCpus(libc::cpu_set_t);

impl OwnCpus {
    /// Of this thread; none where it has only one, or where the kernel does not tell.
    pub fn of_thread() -> Option<Self> {
        // SAFETY: a zeroed set is a valid empty one.
        let mut set: libc::cpu_set_t = unsafe { zeroed() };
        // SAFETY: `set` is as long as is said; 0 is this thread.
        let told = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } == 0;
        // SAFETY: `set` is valid.
        (told && unsafe { libc::CPU_COUNT(&set) } > 1).then_some(Self(set))
    }

    /// From now on it stays on the CPU it is on. Where that is refused, nothing changes.
    pub fn stay(&self) {
        // SAFETY: no arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        if let Ok(cpu) = usize::try_from(cpu) {
            // SAFETY: a zeroed set is a valid empty one.
            let mut one: libc::cpu_set_t = unsafe { zeroed() };
            // SAFETY: CPU_SET looks at the length of the set itself.
            unsafe { libc::CPU_SET(cpu, &mut one) };
            Self::set(&one);
        }
    }

    /// From now on it runs on any of its CPUs.
    pub fn leave(&self) {
        Self::set(&self.0);
    }

    fn set(cpus: &libc::cpu_set_t) {
        // SAFETY: the set is valid; 0 is this thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own: the affinity of others is left alone.
    #[test]
    fn a_thread_that_stays_has_one_cpu_and_gets_back_all() {
        let counts = std::thread::spawn(|| {
            let count = || OwnCpus::of_thread().is_some();
            OwnCpus::of_thread().map(|cpus| {
                cpus.stay();
                let staying = count();
                cpus.leave();
                (staying, count())
            })
        });
        match counts.join().expect("the thread ends") {
            Some(counts) => assert_eq!(counts, (false, true)),
            None => eprintln!("skipped: this thread may run on one CPU only"),
        }
    }
}
