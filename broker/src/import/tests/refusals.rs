//! What is refused before anything is written.

use super::*;

#[test]
fn what_is_no_stopped_brokers_is_refused() {
    let (_dir, from, to) = folders();
    fs::create_dir_all(&from).expect("made");
    let refused = imported(&to, &from);
    assert!(matches!(refused, Err(ImportError::NotKafkas(_))), "{refused:?}");
    assert!(!to.exists());
    alone(source(&from));
    fs::remove_file(from.join("orders-0/partition.metadata")).expect("removed");
    let refused = imported(&to, &from).expect_err("no id").to_string();
    assert!(refused.contains("no topic id in partition.metadata"), "{refused}");
}

/// A folder that was copied by hand has the id of the topic that it was copied from.
#[test]
fn two_topics_of_one_id_are_refused_before_anything_is_copied() {
    let (_dir, from, to) = folders();
    alone(source(&from));
    copy(&from.join("orders-0"), &from.join("orders_copy-0"));
    let refused = imported(&to, &from).expect_err("one id").to_string();
    assert!(refused.contains("orders_copy") && refused.contains("topic orders:"), "{refused}");
    assert!(!to.join("orders-0.import").exists() && !to.join("orders-0").exists());

    fs::remove_dir_all(from.join("orders_copy-0")).expect("removed");
    imported(&to, &from).expect("imported");
    fs::rename(from.join("orders-0"), from.join("renamed-0")).expect("renamed");
    let refused = imported(&to, &from).expect_err("known under another name").to_string();
    assert!(refused.contains("topic renamed:"), "{refused}");
}

/// What a folder's name and its bytes say is not believed.
#[test]
fn numbers_that_no_broker_has_given_are_refused_before_anything_is_copied() {
    let (_dir, from, to) = folders();
    alone(source(&from));
    let refused = |why: &str| {
        let refused = imported(&to, &from).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
        assert!(!to.exists());
    };
    for (name, why) in [
        ("orders-2147483646", "a topic may have 100000 partitions"),
        ("orders-100000", "a topic may have 100000 partitions"),
        ("orders-05", "expected the name orders-5"),
        ("orders-+5", "expected the name orders-5"),
    ] {
        copy(&from.join("orders-0"), &from.join(name));
        refused(why);
        fs::remove_dir_all(from.join(name)).expect("removed");
    }
    let epochs = from.join("orders-0/leader-epoch-checkpoint");
    let sound = fs::read(&epochs).expect("a file");
    fs::write(&epochs, "0\n1\n2147483647 0\n").expect("written");
    refused("epoch 2147483647");
    fs::write(&epochs, sound).expect("written");
    alone(async {
        let node = start(&from).await;
        let topic = node.controller.image().topic("orders").expect("it").id;
        append_of(&node, topic, (1 << 62) - 1, 0).await;
        node.stop().await;
    });
    refused("the producer id 4611686018427387903");
}
