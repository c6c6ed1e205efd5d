//! The local web laboratory: pages and a JSON API over one archive, for a browser and for scripts on the same machine.
//!
//! Everything that is computed of runs comes from a [`ResultSource`], which the binary gives: the same functions as behind
//! `perflab report`, `compare` and `history`. Asynchronous is only what speaks to clients; whatever reads the archive runs
//! on a bounded number of threads. Requests only read, but for labels and notes where the user allows it.
//!
//! | module | content |
//! |---|---|
//! | [`server`] | [`serve_archive`]: from an address to an end by signal; its limits |
//! | `listener`, `client_places` | TCP and Unix sockets, bounded and with time limits; who goes when all places are taken |
//! | `access`, `token_file` | who may ask: token, cookie, `Host`, `Origin`; a token that stays the same |
//! | `route`, `route_table` | one declared table of routes; dispatch |
//! | `open_api` | that table as OpenAPI, and as a page of the reference |
//! | `server_counts` | what the server did since it began |
//! | `laboratory` | what every route works on |
//! | `run_lookup` | from what an address names to a run, and never out of the archive |
//! | `run_list`, `run_document`, `series_window`, `result_pages`, `history_points`, `open_metrics` | the routes by their nouns |
//! | `boards`, `study_rows` | every study with its metrics, and the steps that nobody has acknowledged |
//! | `pictures` | pictures and badges by their addresses |
//! | `live_feed` | what changes while somebody looks |
//! | `run_edits` | labels and notes |
//! | `page_cache`, `board_cache` | finished pages, and what was found of studies, within bounds |
//! | `page` | pages of the laboratory's own, and its style sheet |
//! | [`result_source`] | what is asked of the binary |
//! | [`error`] | why the server does not start |

mod access;
mod board_cache;
mod boards;
mod client_places;
pub mod error;
mod history_points;
mod laboratory;
mod listener;
mod live_feed;
mod open_api;
mod open_metrics;
mod page;
mod page_cache;
mod pictures;
mod refusal;
mod result_pages;
pub mod result_source;
mod route;
mod route_table;
mod run_document;
mod run_edits;
mod run_list;
mod run_lookup;
mod series_window;
pub mod server;
mod server_counts;
mod study_rows;
mod token_file;

pub use error::ServeError;
pub use open_api::render_api_reference;
pub use pictures::{PICTURE_KINDS, picture_option_names};
pub use result_source::{HistoryRequest, PictureRequest, RefusalReason, ResultRefusal, ResultSource};
pub use route_table::query_parameter_names;
pub use server::{ListenPlace, ServeOptions, serve_archive};
