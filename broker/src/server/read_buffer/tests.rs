use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// More than a task may do in one turn.
const READS: usize = 1000;

async fn reads() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let mut peer = TcpStream::connect(address).await.expect("listening");
    let (socket, _) = listener.accept().await.expect("a connection");
    peer.write_all(&[7; READS]).await.expect("room");
    let mut input = ReadBuffer::new(socket.into_split().0, RequestMemory::new(1 << 20));
    for _ in 0..READS {
        assert_eq!(input.read(1).await.expect("a connection"), Input::Bytes);
        assert_eq!(input.bytes.len(), 1, "not more than is wanted");
        input.bytes.clear();
    }
    drop(peer);
    assert_eq!(input.read(1).await.expect("a close"), Input::End);
}

/// A client that always has more to say must not keep its thread from ever doing anything else.
#[test]
fn a_socket_that_is_never_empty_does_not_hold_its_thread() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(reads());
        done.send(()).expect("somebody waits");
    });
    ended.recv_timeout(Duration::from_secs(120)).expect("all is read in time");
}
