//! What a wrong name was probably meant to be.

use plumb_link::settings::nearest;

/// Names the known ones, after the one that is most like `name` if one is close.
///
/// `kind` is their plural, such as `nodes`.
pub(crate) fn known(name: &str, known: &[&str], kind: &str) -> String {
    let hint = nearest(name, known.iter().copied())
        .map_or_else(String::new, |known| format!("did you mean '{known}'? "));
    format!("{hint}the {kind} are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_close_and_lists_all() {
        let nodes = ["client", "router", "server"];
        assert_eq!(
            known("sevrer", &nodes, "nodes"),
            "did you mean 'server'? the nodes are client, router, server"
        );
        assert_eq!(
            known("modem", &nodes, "nodes"),
            "the nodes are client, router, server"
        );
    }
}
