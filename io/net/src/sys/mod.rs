//! The only `unsafe` of the workspace: socket options that no safe wrapper of ours offers.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets a bind to a source address leave the choice of the port to the connect (`ip(7)`,
/// `IP_BIND_ADDRESS_NO_PORT`), so that one port serves many destinations.
///
/// # Errors
/// What `setsockopt` says.
#[allow(unsafe_code)]
pub(crate) fn bind_address_no_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the length of the borrow; `on` outlives the call, and its
    // address and size describe the `int` that this option takes.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
