//! The one integration binary.

mod layering;
mod tidy;
