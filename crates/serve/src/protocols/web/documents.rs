//! Whole documents, and the fields of their heads.

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use plumb_wire::web::nq;

use super::body::Answer;
use super::origin::authority;
use super::page;

pub(super) type Answered = Response<Answer>;

pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// An answer without its body, for HEAD (RFC 9110, section 9.3.2): hyper leaves it out by itself over HTTP/1 alone.
pub(super) fn without_body(answer: Answered) -> Answered {
    let bytes = answer.body().size_hint().exact();
    let mut head = answer.map(|_| Answer::of(""));
    if let Some(bytes) = bytes {
        let fields = head.headers_mut();
        fields.entry(header::CONTENT_LENGTH).or_insert(bytes.into());
    }
    head
}

/// A file of the page.
pub(super) fn page(status: StatusCode, file: &page::PageFile) -> Answered {
    let mut answer = document(status, file.kind, file.text);
    for (name, value) in page::FIELDS {
        let value = HeaderValue::from_static(value);
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// networkQuality's document, for the name by which the client has come.
pub(super) fn configuration(is_secure: bool, request: &Request<Incoming>) -> Answered {
    let Some(authority) = authority(request) else {
        return document(StatusCode::BAD_REQUEST, TEXT, "the request names no host\n");
    };
    let scheme = if is_secure { "https" } else { "http" };
    let json = nq::Configuration::json(scheme, authority);
    document(StatusCode::OK, "application/json", json)
}

pub(super) fn document(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answered {
    let mut answer = with_type(Response::new(Answer::of(text)), kind);
    *answer.status_mut() = status;
    answer
}

pub(super) fn with_type(mut answer: Answered, kind: &'static str) -> Answered {
    let fields = answer.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}
