//! One viewer's stream of events (HTML Living Standard, server-sent events).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::mpsc::Receiver;

/// The body of an answer: the past, then every frame, or so many of them.
pub(super) fn body(past: Bytes, frames: Receiver<Bytes>, most: Option<u64>) -> Body {
    Body::new(Viewer { past: Some(past), frames, left: most })
}

/// An event of this name. JSON has no line ends, so it is one line of data.
pub(super) fn event(name: &str, json: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {json}\n\n"))
}

struct Viewer {
    past: Option<Bytes>,
    frames: Receiver<Bytes>,
    left: Option<u64>,
}

impl hyper::body::Body for Viewer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(past) = self.past.take() {
            return Poll::Ready(Some(Ok(Frame::data(past))));
        }
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        let polled = self.frames.poll_recv(cx);
        if let (Poll::Ready(Some(_)), Some(left)) = (&polled, &mut self.left) {
            *left = left.saturating_sub(1);
        }
        polled.map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }
}
