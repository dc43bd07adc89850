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
    let limits = ConnectionLimits::new(|| Bounds::new(1, 10));
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
    let limits = ConnectionLimits::new(|| Bounds::new(10, 10));
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

#[test]
fn new_connections_come_at_their_rate_and_for_ten_seconds_at_once() {
    let (mut rate, start) = (CreationRate::default(), Instant::now());
    let at = |ms| start + Duration::from_millis(ms);
    for _ in 0..20 {
        assert_eq!(rate.wait(2, start), Duration::ZERO);
    }
    assert_eq!(rate.wait(2, start), Duration::from_millis(500));
    assert_eq!(rate.wait(2, at(100)), Duration::from_millis(400), "who waits is not counted");
    assert_eq!(rate.wait(2, at(500)), Duration::ZERO);
    assert_eq!(rate.wait(2, at(500)), Duration::from_millis(500));
    assert_eq!(rate.wait(4, at(500)), Duration::from_millis(250), "as it is by now");
    assert_eq!(rate.wait(u32::MAX, at(500)), Duration::ZERO);
    for _ in 0..20 {
        assert_eq!(rate.wait(2, at(500)), Duration::ZERO, "begun anew");
    }
}

#[test]
fn addresses_have_bounds_of_their_own() {
    let read = overrides_per_address("127.0.0.1:5, [::1]:6,::2:7").expect("valid");
    let mut bounds = Bounds::new(9, 8);
    bounds.of_addresses = read.into();
    for (address, bound) in
        [("127.0.0.1", 5), ("::ffff:127.0.0.1", 5), ("::1", 6), ("::2", 7), ("10.0.0.1", 8)]
    {
        assert_eq!(bounds.of(address.parse().expect("an address")), bound, "{address}");
    }
    for (text, wanted) in [
        ("5", "begin 0, end -1, length 1"),
        ("host:5", "expected an IP address before the last colon, got \"host\""),
        ("127.0.0.1:x", "For input string: \"x\""),
    ] {
        assert_eq!(overrides_per_address(text), Err(wanted.to_owned()));
    }
}
