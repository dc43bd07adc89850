//! One file per request code (or per pair of twins), and the table that joins codes to them.
//!
//! A processor validates, makes one call inward, and builds the answer. What is not in the table is
//! answered REQUEST_CODE_NOT_SUPPORTED.

#![allow(dead_code, reason = "the processors that use the rest follow")]

mod reply;
pub(crate) mod rules;
mod unregister_client;

use std::future::Future;
use std::sync::Arc;

pub(crate) use reply::{Outcome, Refusal, Reply};

use crate::backend::Backend;
use crate::dispatch::{BoxFuture, Shared};
use crate::namesrv;
use crate::remoting::RemotingCommand;
use crate::session::{Door, Session};

/// One request on its way to its answer.
pub(crate) struct Call<B> {
    pub(crate) shared: Arc<Shared<B>>,
    pub(crate) session: Arc<Session>,
    pub(crate) reply: Reply,
    pub(crate) request: RemotingCommand,
}

impl<B> Call<B> {
    pub(crate) fn backend(&self) -> &B {
        &self.shared.backend
    }
}

/// How a code is served.
pub(crate) enum Handler<B> {
    /// Answered from published snapshots.
    Now(fn(&Call<B>) -> Outcome),
    /// Waits for the node.
    Later(fn(Call<B>) -> BoxFuture<Option<RemotingCommand>>),
}

/// A request code that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// On the wire.
    pub code: i32,
    /// The constant's name in the original.
    pub name: &'static str,
    /// Where; the broker's codes are served at the VIP door too, but for those in
    /// [`NOT_AT_VIP_DOOR`].
    pub door: Door,
}

/// Pulls: the original serves them at the broker's own door alone.
pub const NOT_AT_VIP_DOOR: [i32; 2] = [11, 361];

fn later<F>(reply: Reply, code: i32, outcome: F) -> BoxFuture<Option<RemotingCommand>>
where
    F: Future<Output = Outcome> + Send + 'static,
{
    Box::pin(async move { reply.finish(code, outcome.await) })
}

macro_rules! table {
    ($($door:ident { $($kind:ident $code:literal $name:ident => $handle:path,)* })*) => {
        /// Every request code that is served.
        pub const SERVED: &[Served] = &[
            $($(Served { code: $code, name: stringify!($name), door: Door::$door },)*)*
        ];

        /// Who serves `code` at `door`.
        pub(crate) fn handler<B: Backend>(door: Door, code: i32) -> Option<Handler<B>> {
            let door = match door {
                Door::BrokerVip if NOT_AT_VIP_DOOR.contains(&code) => return None,
                Door::BrokerVip => Door::Broker,
                door => door,
            };
            match (door, code) {
                $($((Door::$door, $code) => Some(table!(@ $kind $handle)),)*)*
                _ => None,
            }
        }
    };
    (@ now $handle:path) => { Handler::Now($handle) };
    (@ later $handle:path) => {
        Handler::Later(|call| later(call.reply, call.request.code, $handle(call)))
    };
}

table! {
    NameServer {
        later 100 PUT_KV_CONFIG => namesrv::kv_config::put,
        now 101 GET_KV_CONFIG => namesrv::kv_config::get,
        later 102 DELETE_KV_CONFIG => namesrv::kv_config::delete,
    }
    Broker {
        later 35 UNREGISTER_CLIENT => unregister_client::handle,
    }
}
