//! Formulas of the field, by subject.

pub mod clocks;
pub mod delay;
pub mod goodput;
pub mod response;
pub mod transfer;
mod window;

pub use window::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, WINDOW_OF_A_BUFFER, bandwidth_delay_product,
    buffer_for, largest_scaled_window, largest_window, window_limited_rate, window_scale_for,
};
