use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// More than a task may do in one turn.
const READS: usize = 1000;

/// The other end of what a buffer reads, and the buffer.
async fn connected(memory: RequestMemory) -> (TcpStream, ReadBuffer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let peer = TcpStream::connect(address).await.expect("listening");
    let (socket, _) = listener.accept().await.expect("a connection");
    (peer, ReadBuffer::new(socket.into_split().0, memory))
}

async fn reads() {
    let (mut peer, mut input) = connected(RequestMemory::new(1 << 20)).await;
    peer.write_all(&[7; READS]).await.expect("room");
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

#[tokio::test]
async fn who_brings_nothing_while_others_wait_for_room_has_to_go() {
    const KIB: usize = 1024;
    const TOTAL: usize = 100 * KIB;
    let limit = Duration::from_millis(20);
    let memory = RequestMemory::with_stall_limit(64 * KIB as u64, limit);
    let (mut peer, mut input) = connected(memory.clone()).await;
    peer.write_all(&[7; 60 * KIB]).await.expect("the buffer reads");
    while input.bytes.len() < 60 * KIB {
        assert_eq!(input.read_frame(TOTAL).await.expect("a connection"), Input::Bytes);
    }
    assert!(memory.used() >= 60 * KIB as u64);
    let alone = tokio::time::timeout(5 * limit, input.read_frame(TOTAL)).await;
    assert!(alone.is_err(), "while nobody else wants the room it has time");
    let mut other = memory.begin();
    let wish = Wish { least: 10_000, enough: 10_000, most: 10_000 };
    let waits = tokio::spawn(async move { other.grow_to(wish).await });
    let error = input.read_frame(TOTAL).await.expect_err("somebody waits");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(input);
    waits.await.expect("room");
    assert_eq!(memory.used(), 0);
}
