//! The name server's requests: routes and small configuration, answered from what the node knows.
//! Nobody needs to register: a node is name server and broker in one, so a route is as old as its
//! topic, unless the gate `route.publish` is between them.

pub(crate) mod cluster_info;
pub(crate) mod delete_topic;
pub(crate) mod kv_config;
pub(crate) mod registration;
pub(crate) mod route;
pub(crate) mod topic_list;
pub(crate) mod topic_lists;
pub(crate) mod write_permission;
