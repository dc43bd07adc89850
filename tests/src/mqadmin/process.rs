//! The process in which mqadmin and its neighbours run.

use std::path::Path;

use crate::hex::hex;
use crate::stock::{Client, Driver, java};

/// Stock mqadmin of 5.5.0 in a process of its own that runs one command after the other, and clients
/// beside it (`tests/interop/java/Admins.java`).
pub(crate) struct Admins(Driver);

impl Admins {
    /// Starts it against a name server; what it writes goes to `folder`.
    pub(crate) fn start(namesrv: &str, folder: &Path) -> anyhow::Result<Self> {
        let client = Client::Rocketmq550;
        let mut command = java(client.name(), "Admins");
        command.current_dir(folder);
        // Newer Java lets nobody keep a command from ending the process unless told to.
        let options =
            format!("-Djava.security.manager=allow -Djava.io.tmpdir={}", folder.display());
        Ok(Self(Driver::spawn(command, client, namesrv, &options)?))
    }

    /// Runs a command of mqadmin, and returns what it printed on either output. One that goes on for
    /// ever is interrupted when what it printed has a match of `stop`.
    pub(crate) fn run(&mut self, words: &[String], stop: Option<&str>) -> anyhow::Result<String> {
        let stop = stop.map(|stop| format!(" stop={}", hex(stop))).unwrap_or_default();
        self.text(&format!("run{}{stop}", hexed(words)))
    }

    /// Calls a method of DefaultMQAdminExt, and returns every field of what it returned.
    pub(super) fn call(&mut self, method: &str, arguments: &[String]) -> anyhow::Result<String> {
        self.text(&format!("call a={}{}", hex(method), hexed(arguments)))
    }

    /// Has a client beside it do something (`AdminClients.java`), or the monitor look once.
    pub(super) fn beside(&mut self, command: &str) -> anyhow::Result<String> {
        self.text(command)
    }

    fn text(&mut self, command: &str) -> anyhow::Result<String> {
        let lines = self.0.call(command)?;
        Ok(lines.iter().filter_map(|line| line["out"].as_str()).collect())
    }
}

fn hexed(words: &[String]) -> String {
    words.iter().map(|word| format!(" a={}", hex(word))).collect()
}
