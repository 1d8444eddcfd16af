//! From records to figures: small runs whose figures can be worked out by hand.

mod cases;
mod cost;
mod json;
mod phases;
mod profiled;
mod run;
mod talks;
mod text;
mod verdict;
