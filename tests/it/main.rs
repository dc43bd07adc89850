//! The one integration binary.

mod crash;
mod layering;
mod malformed;
mod tidy;
