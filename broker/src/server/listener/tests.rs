use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const LIMIT: Duration = Duration::from_secs(120);

/// A listener that greets each of its clients and waits for their end.
async fn greeter(limits: &Arc<ConnectionLimits>, stop: &Stop, tasks: &TaskTracker) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let greet = |mut socket: TcpStream, _| async move {
        let _ = socket.write_all(b"!").await;
        let _ = socket.read_u8().await;
    };
    tasks.spawn(accept(listener, limits.clone(), stop.clone(), tasks.clone(), greet));
    address
}

async fn is_greeted(socket: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(LIMIT, socket.read_u8()).await;
    read.expect("greeted or closed in time").is_ok()
}

/// A listener that waits for clients takes no place from another.
#[tokio::test]
async fn the_only_place_goes_to_whichever_listener_has_a_client() {
    let limits = ConnectionLimits::new(|| Bounds { all: 1, per_address: 10 });
    let (stop, tasks) = (Stop::default(), TaskTracker::new());
    let first = greeter(&limits, &stop, &tasks).await;
    let second = greeter(&limits, &stop, &tasks).await;
    for address in [second, first, second] {
        let mut client = TcpStream::connect(address).await.expect("listening");
        assert!(is_greeted(&mut client).await);
    }
    let mut holds = TcpStream::connect(first).await.expect("listening");
    assert!(is_greeted(&mut holds).await);
    let mut waits = TcpStream::connect(second).await.expect("listening");
    let early = tokio::time::timeout(Duration::from_millis(20), waits.read_u8()).await;
    assert!(early.is_err(), "there is no second place");
    drop(holds);
    assert!(is_greeted(&mut waits).await);
    stop.begun.cancel();
    drop(waits);
    tasks.close();
    tokio::time::timeout(LIMIT, tasks.wait()).await.expect("all end");
}

#[tokio::test]
async fn who_does_not_end_is_cut_off() {
    let limits = ConnectionLimits::new(|| Bounds { all: 10, per_address: 10 });
    let (stop, tasks) = (Stop::default(), TaskTracker::new());
    let address = greeter(&limits, &stop, &tasks).await;
    let mut client = TcpStream::connect(address).await.expect("listening");
    assert!(is_greeted(&mut client).await);
    stop.begun.cancel();
    tasks.close();
    stop.over.cancel();
    tokio::time::timeout(LIMIT, tasks.wait()).await.expect("all end");
    assert!(!is_greeted(&mut client).await);
}
