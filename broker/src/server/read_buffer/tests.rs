use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// More than a task may do in one turn.
const READS: usize = 1000;

/// A peer, and what reads from it with room of `memory`.
async fn connected(memory: &RequestMemory) -> (TcpStream, ReadBuffer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let peer = TcpStream::connect(address).await.expect("listening");
    let (socket, _) = listener.accept().await.expect("a connection");
    (peer, ReadBuffer::new(socket.into_split().0, memory.clone()))
}

async fn reads() {
    let (mut peer, mut input) = connected(&RequestMemory::new(1 << 20)).await;
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
    ended.recv_timeout(Duration::from_secs(20)).expect("all is read in time");
}

const FRAME_BYTES: usize = 10 * 1024 * 1024;

/// Reads a frame of `FRAME_BYTES` to its end.
async fn read_all(input: &mut ReadBuffer) -> io::Result<()> {
    while input.bytes.len() < FRAME_BYTES {
        if input.read_frame(FRAME_BYTES).await? == Input::End {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_length_alone_takes_little_room_from_others() {
    let memory = RequestMemory::new(2 * FRAME_BYTES as u64);
    let mut idle = Vec::new();
    for _ in 0..20 {
        let (mut peer, mut input) = connected(&memory).await;
        peer.write_all(&[7; 10]).await.expect("room");
        let read = tokio::time::timeout(Duration::from_secs(20), input.read_frame(FRAME_BYTES));
        assert_eq!(read.await.expect("what came").expect("a connection"), Input::Bytes);
        idle.push((peer, input));
    }
    assert!(memory.used() <= 20 * FIRST_ROOM_BYTES as u64, "{}", memory.used());
    let (mut peer, mut input) = connected(&memory).await;
    let sent = tokio::spawn(async move { peer.write_all(&vec![7; FRAME_BYTES]).await });
    read_all(&mut input).await.expect("there is room");
    sent.await.expect("a writer").expect("all is read");
}

/// Two frames that are too large for the room together, both half there: one of them has to go.
#[tokio::test]
async fn frames_that_wait_for_each_others_room_do_not_wait_for_ever() {
    let memory = RequestMemory::new(FRAME_BYTES as u64 + 1024);
    let half = FRAME_BYTES / 2;
    let (mut first_peer, mut first) = connected(&memory).await;
    let (mut second_peer, mut second) = connected(&memory).await;
    for (peer, input) in [(&mut first_peer, &mut first), (&mut second_peer, &mut second)] {
        while input.bytes.len() < half {
            peer.write_all(&[7; 4096]).await.expect("room");
            input.read_frame(FRAME_BYTES).await.expect("there is room");
        }
    }
    first.room_limit = Duration::from_millis(50);
    let refused = read_all(&mut first).await.expect_err("there is no room");
    assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory);
    drop(first);
    let sent = tokio::spawn(async move { second_peer.write_all(&vec![7; FRAME_BYTES]).await });
    read_all(&mut second).await.expect("there is room now");
    drop(second);
    let _ = sent.await.expect("a writer");
    assert_eq!(memory.used(), 0);
}
