//! Importing a second time, after the first has ended or was stopped.

use super::*;

#[test]
fn who_imports_again_changes_nothing_and_whoever_has_the_name_keeps_it() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    imported(&to, &from).expect("imported");
    alone(async {
        let node = start(&to).await;
        assert_eq!(append(&node, topic, 3).await, 3);
        node.stop().await;
    });
    let again = imported(&to, &from).expect("nothing to do");
    assert_eq!((again.topics[0].bytes, &*again.topics[0].kept), (0, [0].as_slice()), "it is told");
    alone(async {
        let node = start(&to).await;
        assert_eq!(append(&node, topic, 4).await, 4);
        node.stop().await;
    });

    let other = to.with_file_name("other");
    alone(async {
        let node = start(&other).await;
        create(&node, "orders", &[]).await;
        node.stop().await;
    });
    let refused = imported(&other, &from);
    assert!(matches!(refused, Err(ImportError::Topic { .. })), "{refused:?}");
    assert!(!other.join("orders-0").exists() && !other.join("orders-0.import").exists());
}

#[test]
fn what_an_earlier_import_left_half_copied_is_not_mixed_in() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    started_once(&to);
    let copy = to.join("orders-0.import");
    fs::create_dir(&copy).expect("made");
    fs::write(copy.join("00000000000000000040.log"), "of a segment that is gone").expect("written");
    imported(&to, &from).expect("imported");
    assert!(!to.join("orders-0/00000000000000000040.log").exists());
    alone(async {
        let node = start(&to).await;
        assert_eq!(append(&node, topic, 3).await, 3);
        node.stop().await;
    });
}

#[test]
fn an_interrupted_import_is_run_again_before_the_node_is_served() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    imported(&to, &from).expect("imported");
    // As if it had been stopped when the topics were known.
    let (place, copy) = (to.join("orders-0"), to.join("orders-0.import"));
    fs::rename(&place, &copy).expect("renamed");
    let refused = alone(try_start(&to)).expect_err("half imported").to_string();
    assert!(refused.contains("orders-0.import lies there: run it again"), "{refused}");
    assert!(to.join(CLEAN_SHUTDOWN_FILE).exists(), "nothing was touched");
    imported(&to, &from).expect("completed");
    assert!(place.exists() && !copy.exists());
    alone(async {
        let node = start(&to).await;
        assert_eq!(append(&node, topic, 3).await, 3);
        node.stop().await;
    });
}

/// An earlier build served a node whose import was interrupted.
#[test]
fn a_copy_beside_what_was_written_since_is_told() {
    let (_dir, from, to) = folders();
    alone(source(&from));
    imported(&to, &from).expect("imported");
    copy(&to.join("orders-0"), &to.join("orders-0.import"));
    let refused = imported(&to, &from).expect_err("both are there").to_string();
    assert!(refused.contains("orders-0.import: left by an import"), "{refused}");
    assert!(to.join("orders-0").exists() && to.join("orders-0.import").exists());
    fs::remove_dir_all(to.join("orders-0.import")).expect("removed");
    imported(&to, &from).expect("nothing to do");
}

/// A second copy would be one partition in two places, with which no node starts.
#[test]
fn what_was_moved_to_another_log_directory_is_not_copied_again() {
    let (_dir, from, to) = folders();
    let other = to.with_file_name("other");
    alone(source(&from));
    let two = || config_of(&[&to, &other]);
    alone(run(two(), std::slice::from_ref(&from))).expect("imported");
    fs::rename(to.join("orders-0"), other.join("orders-0")).expect("moved");
    let again = alone(run(two(), std::slice::from_ref(&from))).expect("nothing to do");
    assert_eq!(again.topics[0].kept, [0]);
    assert!(!to.join("orders-0").exists());
    alone(async {
        let node = Node::start(
            Arc::new(two()),
            Arc::new(FileDisk::new(64, 16)),
            Events::silent(NodeId(1)),
        );
        node.await.expect("a node").stop().await;
    });
}
