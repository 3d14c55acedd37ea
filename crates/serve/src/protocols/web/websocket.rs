//! The handshake of WebSockets.

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::body::Answer;
use super::documents::{Answered, TEXT, document};

/// Agrees to a WebSocket (RFC 6455, section 4.2.2), with what `becomes` says; or why it is not agreed to now.
pub(super) fn agree<B: Clone + Send + Sync + 'static, E>(
    request: &Request<Incoming>,
    subprotocol: Option<&'static str>,
    becomes: impl FnOnce() -> Result<B, E>,
) -> Result<Answered, E> {
    let field = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    let names = |name, wanted: &str| {
        let text = field(name).and_then(|value| std::str::from_utf8(value).ok());
        let mut words = text.unwrap_or_default().split(',');
        words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    let key = field(header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    let asks = names(header::UPGRADE, "websocket") && names(header::CONNECTION, "upgrade");
    let Some(key) = key.filter(|_| asks) else {
        let why = "this path takes a WebSocket\n";
        return Ok(document(StatusCode::UPGRADE_REQUIRED, TEXT, why));
    };
    if let Some(subprotocol) = subprotocol
        && !names(header::SEC_WEBSOCKET_PROTOCOL, subprotocol)
    {
        let why = format!("the subprotocol must be {subprotocol}\n");
        return Ok(document(StatusCode::BAD_REQUEST, TEXT, why));
    }
    let accepted = tungstenite::handshake::derive_accept_key(key);
    let Ok(accepted) = HeaderValue::from_str(&accepted) else {
        return Ok(document(StatusCode::BAD_REQUEST, TEXT, "the key is none\n"));
    };
    let becomes = becomes()?;
    let mut answer = Response::new(Answer::of(""));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let fields = answer.headers_mut();
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    fields.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    if let Some(subprotocol) = subprotocol {
        let protocol = HeaderValue::from_static(subprotocol);
        fields.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    answer.extensions_mut().insert(becomes);
    Ok(answer)
}
