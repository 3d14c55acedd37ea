//! For which router the fixes of a Run are written.

use clap::Args;
use plumb_host::render::fill_commands;
use plumb_model::router::Router;
use plumb_model::run::Run;

use crate::words;

#[derive(Args)]
pub(crate) struct RouterOption {
    /// Write fixes on the router for this one
    #[arg(long, value_name = "SYSTEM", value_parser = words::any::<Router>())]
    router: Option<Router>,
}

impl RouterOption {
    /// The Run with its fixes for the router that was named, where one was.
    pub(crate) fn write(&self, mut run: Run) -> Run {
        if let Some(router) = self.router {
            fill_commands(&mut run.findings, router);
        }
        run
    }
}
