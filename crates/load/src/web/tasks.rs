//! What HTTP/2 does beside the connection itself: a task a stream.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tasks of one connection, polled by the thread that has it.
#[derive(Clone, Default)]
pub struct Tasks {
    new: Arc<Mutex<Vec<Task>>>,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks")
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, future: F) {
        self.lock().push(Box::pin(future));
    }
}

impl Tasks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Task>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls each once, those that come meanwhile too; keeps what is not over.
    pub fn poll(&self, context: &mut Context<'_>) {
        let mut left = Vec::new();
        loop {
            let now = std::mem::take(&mut *self.lock());
            if now.is_empty() {
                break;
            }
            for mut task in now {
                if task.as_mut().poll(context).is_pending() {
                    left.push(task);
                }
            }
        }
        self.lock().extend(left);
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}
