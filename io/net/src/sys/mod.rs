//! The only `unsafe` of the workspace: socket options and a control message that no safe wrapper of ours
//! offers.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets a bind to a source address leave the choice of the port to the connect (`ip(7)`,
/// `IP_BIND_ADDRESS_NO_PORT`), so that one port serves many destinations.
///
/// # Errors
/// What `setsockopt` says.
pub(crate) fn bind_address_no_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Has the kernel stamp what comes in, in software, and tell the stamps (`SO_TIMESTAMPING`,
/// Documentation/networking/timestamping.rst).
///
/// # Errors
/// What `setsockopt` says.
pub(crate) fn stamp_receipts(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int)
}

/// Receives, and gives the stamp of the last segment among what was received: nanoseconds of the wall clock;
/// `None` when the kernel has none to tell.
///
/// # Errors
/// What `recvmsg` says.
#[allow(unsafe_code)]
pub(crate) fn receive_stamped(
    socket: BorrowedFd<'_>,
    buf: &mut [u8],
) -> io::Result<(usize, Option<u64>)> {
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let mut control = Control { bytes: [MaybeUninit::uninit(); CONTROL] };
    // SAFETY: a `msghdr` of zeroes is a valid one without anything in it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: the descriptor is open for the length of the borrow; `message` points to one part, which is
    // `buf`, and to a control buffer of the length that is given; all of them outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let mut stamp = None;
    // SAFETY: the kernel has set the length of the control messages that it wrote, and the macros of
    // cmsg(3) stay within it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: `next` was given by the macros and lies, whole, in the aligned control buffer.
        let header = unsafe { next.read() };
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: the data of this message are three `timespec`, the first of which is the software's stamp.
            let software =
                unsafe { libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned() };
            if software.tv_sec > 0 {
                stamp = Some(software.tv_sec as u64 * 1_000_000_000 + software.tv_nsec as u64);
            }
        }
        // SAFETY: as for the first.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok((bytes, stamp))
}

#[allow(unsafe_code)]
fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the borrow; `value` outlives the call, and its
    // address and size describe the `int` that these options take.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for control messages, aligned as they must be.
#[repr(C, align(8))]
struct Control {
    bytes: [MaybeUninit<u8>; CONTROL],
}

/// The stamps take 64 bytes.
const CONTROL: usize = 128;
