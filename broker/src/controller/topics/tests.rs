use super::*;
use crate::config::values::Values;

fn imported(topics: &[(TopicId, &str, i32)]) -> Imported {
    let topic = |(id, name, partitions): &(TopicId, &str, i32)| {
        let (name, partitions, overrides) = ((*name).into(), *partitions, Overrides::new());
        (*id, NewTopic { name, partitions, overrides, door: Door::Node })
    };
    let topics = topics.iter().map(topic).collect();
    Imported { topics, leader_epoch: -1, next_producer_id: 0 }
}

/// Imports into `image`; which topic was refused, and why.
fn import(image: &mut Image, topics: &[(TopicId, &str, i32)]) -> Result<(), (String, String)> {
    let records = decide_import(image, imported(topics))
        .map_err(|(name, error)| (name.to_string(), error.to_string()))?;
    for record in records {
        image.apply(record).expect("it fits");
    }
    Ok(())
}

#[test]
fn an_imported_topic_has_an_id_that_no_other_has_or_had() {
    let (id, gone) = (TopicId([1; 16]), TopicId([2; 16]));
    let mut image = Image::empty(Values::default());
    let name = Some("gone".into());
    image.apply(MetadataRecord::DeletedTopic { id: gone, name }).expect("it fits");
    let refused = |image: &mut Image, topics: &[(TopicId, &str, i32)], why: &str| {
        let (name, reason) = import(image, topics).expect_err("refused");
        assert!(name == "copy" && reason.contains(why), "{name}: {reason}");
        assert!(image.topic("copy").is_none());
    };
    refused(&mut image, &[(id, "orders", 1), (id, "copy", 1)], "is that of topic orders");
    refused(&mut image, &[(gone, "copy", 1)], "is that of topic gone");
    refused(&mut image, &[(TopicId::ZERO, "copy", 1)], "is reserved");
    refused(&mut image, &[(METADATA_TOPIC_ID, "copy", 1)], "is reserved");
    import(&mut image, &[(id, "orders", 1)]).expect("imported");
    refused(&mut image, &[(id, "copy", 1)], "is that of topic orders");
    import(&mut image, &[(id, "orders", 1)]).expect("it is here already");
    assert_eq!(image.topic("orders").expect("it").partition_count(), 1);
}

/// A broker's other log directory may hold partitions behind those of the first.
#[test]
fn an_imported_topic_grows_to_the_greater_count_unless_groups_are_found_by_it() {
    let (id, offsets) = (TopicId([1; 16]), TopicId([2; 16]));
    let mut image = Image::empty(Values::default());
    import(&mut image, &[(id, "orders", 3), (offsets, names::OFFSETS_TOPIC, 2)]).expect("made");
    import(&mut image, &[(id, "orders", 5), (offsets, names::OFFSETS_TOPIC, 1)]).expect("grown");
    assert_eq!(image.topic("orders").expect("it").numbers, [0, 1, 2, 5, 6]);
    assert_eq!(image.topic(names::OFFSETS_TOPIC).expect("it").numbers, [3, 4]);
    let refused = import(&mut image, &[(offsets, names::OFFSETS_TOPIC, 3)]).expect_err("refused");
    assert!(refused.1.contains("2 partitions here and 3 there"), "{refused:?}");
    let refused = import(&mut image, &[(id, "orders", TOPIC_PARTITIONS_MAX + 1)]);
    assert!(refused.expect_err("refused").1.contains("100001 partitions"));
}
