//! Files closed and opened again between I/Os: nothing of their streams is in flight.
//!
//! Knows the order of the calls and where the clock is read. The time they take is that of an
//! operation of its own, and no I/O of the stream has begun meanwhile.

use super::WorkerLoop;
use loadstone_base::ops::FileOp;
use loadstone_base::run_error::RunError;
use loadstone_io::backend::IoBackend;
use std::os::fd::AsRawFd;

impl<B: IoBackend> WorkerLoop<B> {
    /// Closes and opens what is due; gives the time then.
    #[cold]
    pub(super) fn reconnect(&mut self) -> u64 {
        let mut now = self.backend.now_ns();
        while let Some(index) = self.state.next_to_be_opened() {
            now = self.close(index, now);
            now = self.open(index, now);
        }
        now
    }

    /// Ends a stream's connection, where it has one; gives the time then.
    fn close(&mut self, index: u32, begins_ns: u64) -> u64 {
        let stream = &mut self.state.streams[index as usize];
        let ended = stream.connection.as_mut().and_then(|own| own.end());
        let Some((file, begun_ns)) = ended else {
            return begins_ns;
        };
        // The number may soon be another file's: from now on it stands for none.
        let number = stream.uses[0].local;
        self.backend.use_file(number, -1);
        self.state.begin_call(index, FileOp::Close, begins_ns);
        drop(file);
        let now = self.backend.now_ns();
        self.state.end_call(index, FileOp::Close, begins_ns, now);
        self.state
            .end_call(index, FileOp::Connection, begun_ns, now);
        now
    }

    /// Begins a stream's next connection, or ends the stream; gives the time then.
    fn open(&mut self, index: u32, begins_ns: u64) -> u64 {
        self.state.begin_call(index, FileOp::Open, begins_ns);
        let stream = &mut self.state.streams[index as usize];
        let Some(connection) = &mut stream.connection else {
            unreachable!("only a stream with a connection is to be opened")
        };
        let opened = connection.target.open();
        let now = self.backend.now_ns();
        let checked = match opened {
            Ok(file) => connection.target.check(&file).map(|()| file),
            Err(error) => {
                let path = connection.target.path();
                Err(RunError::target(path, "cannot open", &error))
            }
        };
        match checked {
            Ok(file) => {
                self.backend
                    .use_file(stream.uses[0].local, file.as_raw_fd());
                connection.begin(file, begins_ns);
                self.state.end_call(index, FileOp::Open, begins_ns, now);
                self.state.opened(index, now);
            }
            Err(why) => self.state.fail_to_open(index, &why, now),
        }
        now
    }
}
