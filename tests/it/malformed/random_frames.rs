//! Ten thousand frames of random bytes, some behind a header that decodes.

use duolog_tests::raw_client::Connection;
use duolog_tests::seed::Seeded;

use super::{Attacked, LIMIT};

const FRAMES: usize = 10_000;
/// A connection that was not closed after so many frames is left for a new one.
const FRAMES_PER_CONNECTION: usize = 25;
const SEED: u64 = 0xD10;
const KAFKA_KEYS: usize = 93;
const KAFKA_VERSIONS: usize = 19;

fn kafka_frame(random: &mut Seeded) -> Vec<u8> {
    let length = random.within(0..400);
    let mut frame = Vec::new();
    if random.within(0..4) > 0 {
        frame.extend(u16::try_from(random.within(0..KAFKA_KEYS)).unwrap().to_be_bytes());
        frame.extend(u16::try_from(random.within(0..KAFKA_VERSIONS)).unwrap().to_be_bytes());
        frame.extend([0, 0, 0, 7, 0, 1, b'x']);
    }
    frame.extend(random.bytes(length));
    if frame.is_empty() { vec![0] } else { frame }
}

fn remoting_frame(random: &mut Seeded) -> Vec<u8> {
    const CODES: [i32; 16] =
        [10, 11, 14, 15, 17, 29, 34, 38, 46, 105, 200, 202, 208, 310, 320, 361];
    let length = random.within(0..300);
    let body = random.bytes(length);
    let mut frame = Vec::new();
    match random.within(0..3) {
        // A JSON header that decodes, with fields that do not.
        0 => {
            let code = CODES[random.within(0..CODES.len())];
            let header = format!(
                r#"{{"code":{code},"language":"JAVA","version":513,"opaque":1,"flag":0,"extFields":{{"topic":"t","queueId":"{}","a":"g","b":"t"}}}}"#,
                random.bits()
            );
            frame.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
            frame.extend(header.as_bytes());
        }
        // A binary header of random bytes, its length right.
        1 => frame.extend((0x0100_0000 | u32::try_from(body.len()).unwrap()).to_be_bytes()),
        _ => {}
    }
    frame.extend(body);
    if frame.is_empty() { vec![0] } else { frame }
}

fn attack(address: &str, random: &mut Seeded, make: fn(&mut Seeded) -> Vec<u8>, frames: usize) {
    let mut sent = 0;
    while sent < frames {
        let mut connection = Connection::open(address, LIMIT).unwrap();
        for _ in 0..FRAMES_PER_CONNECTION {
            sent += 1;
            // Refused by a closed connection: the next one goes on.
            if connection.send_frame(&make(random)).is_err() {
                break;
            }
        }
    }
}

#[test]
fn random_frames_harm_nobody() {
    let mut attacked = Attacked::start().unwrap();
    let mut random = Seeded::new(SEED);
    let (kafka, namesrv, broker) =
        (attacked.node.kafka(), attacked.node.namesrv(), attacked.node.broker());
    for round in 0..10 {
        attack(&kafka, &mut random, kafka_frame, FRAMES / 20);
        attack(&broker, &mut random, remoting_frame, FRAMES / 40);
        attack(&namesrv, &mut random, remoting_frame, FRAMES / 40);
        attacked.unharmed(&format!("round {round} of seed {SEED:#x}")).unwrap();
    }
}
