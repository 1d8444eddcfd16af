//! hyper's HTTP/1 client, fed from memory: one request, and whatever it makes of the bytes that come back.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::{Method, Request};
use http_body::Body as _;
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};

/// What hyper made of an answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: Option<u16>,
    pub(crate) body: Vec<u8>,
    /// The body's end has come.
    pub(crate) ended: bool,
    /// hyper refuses the answer.
    pub(crate) failed: bool,
    /// It would send another request on this connection.
    pub(crate) reusable: bool,
}

/// Sends a request (a HEAD, if `no_body`) and reads the answer from `pieces`. Behind them the connection
/// is closed, or just silent.
pub(crate) fn ask(pieces: Vec<Vec<u8>>, no_body: bool, closed: bool) -> Answer {
    let rounds = 8 + 4 * pieces.len();
    let mut cx = Context::from_waker(Waker::noop());
    let wire = Wire { pieces: pieces.into_iter(), here: Vec::new(), asked: false, closed };
    let mut shake = pin!(http1::handshake::<_, String>(wire));
    let Poll::Ready(Ok((mut sender, connection))) = shake.as_mut().poll(&mut cx) else {
        panic!("a handshake of HTTP/1 waits for nothing");
    };
    let method = if no_body { Method::HEAD } else { Method::GET };
    let request = Request::builder().method(method).uri("/").header("host", "h");
    let request = request.body(String::new()).expect("a good request");
    let mut connection = pin!(connection);
    let mut over = false;
    let mut turn = |cx: &mut Context<'_>| {
        over = over || connection.as_mut().poll(cx).is_ready();
        over
    };
    let mut answer = Answer::default();
    let mut reply = pin!(sender.send_request(request));
    let mut head = None;
    for _ in 0..rounds {
        turn(&mut cx);
        match reply.as_mut().poll(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(response)) => {
                head = Some(response);
                break;
            }
            Poll::Ready(Err(_)) => {
                answer.failed = true;
                return answer;
            }
        }
    }
    let Some(response) = head else { return answer };
    answer.status = Some(response.status().as_u16());
    let mut body = pin!(response.into_body());
    let mut quiet = 0;
    while quiet < rounds {
        turn(&mut cx);
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Pending => quiet += 1,
            Poll::Ready(Some(Ok(frame))) => {
                quiet = 0;
                if let Ok(data) = frame.into_data() {
                    answer.body.extend_from_slice(&data);
                }
            }
            Poll::Ready(Some(Err(_))) => {
                answer.failed = true;
                return answer;
            }
            Poll::Ready(None) => {
                answer.ended = true;
                break;
            }
        }
    }
    for _ in 0..4 {
        turn(&mut cx);
    }
    answer.reusable = answer.ended && !over && sender.is_ready();
    answer
}

/// A connection that takes every byte and answers once something was asked.
struct Wire {
    pieces: std::vec::IntoIter<Vec<u8>>,
    /// The rest of a piece that did not fit the last read.
    here: Vec<u8>,
    asked: bool,
    closed: bool,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            return Poll::Pending;
        }
        if self.here.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.here = piece,
                None if self.closed => return Poll::Ready(Ok(())),
                None => return Poll::Pending,
            }
        }
        let fits = self.here.len().min(into.remaining());
        into.put_slice(&self.here[..fits]);
        self.here.drain(..fits);
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.asked = true;
        Poll::Ready(Ok(from.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
