//! subtitle
