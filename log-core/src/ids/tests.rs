use super::*;

#[test]
fn topic_id_prints_as_kafka_prints_a_uuid() {
    // org.apache.kafka.common.Uuid(0x0123456789abcdef, 0xfedcba9876543210).toString(), kafka-clients 4.3.1.
    let id = TopicId([
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32,
        0x10,
    ]);
    assert_eq!(id.to_string(), "ASNFZ4mrze_-3LqYdlQyEA");
    assert_eq!("ASNFZ4mrze_-3LqYdlQyEA".parse(), Ok(id));
    assert_eq!(TopicId([0xFF; 16]).to_string().parse(), Ok(TopicId([0xFF; 16])));
}

#[test]
fn topic_id_refuses_other_text() {
    for text in ["", "ASNFZ4mrze_-3LqYdlQyE", "ASNFZ4mrze_-3LqYdlQyEB", "ASNFZ4mrze/-3LqYdlQyEA"] {
        assert_eq!(text.parse::<TopicId>(), Err(InvalidTopicId), "{text}");
    }
}
