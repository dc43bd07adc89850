//! The keys that one node answers alone, against what a Kafka of one node says.

use super::admin_cases::{Difference, Rows, check, decoded, put};
use super::*;
use crate::kafka::codec::messages as wire;

const DIFFERENCES: &[Difference] = &[
    (r#""log.retention.ms","value":"100000"}]}],"validateOnly":false"#, "4/", 0, "no such feature"),
    (r#""configurationKeys":["log.retention.ms"]"#, "4//log.retention.ms", 0, "as above"),
    (r#""resourceType":4,"resourceName":"","configs":[]}"#, "4/", 0, "as above"),
    (r#""ops":[{"key":"producer_byte_rate","value":5.0"#, QUOTA, 42, "nothing acts on quotas"),
];

const QUOTA: &str = r#"[EntityData { entity_type: "user", entity_name: Some("alice") }]"#;

/// Takes an answer apart, without what no two nodes have in common.
pub(super) fn rows_of(rows: &mut Rows, api_key: ApiKey, version: i16, frame: &Bytes) {
    match api_key {
        ApiKey::DeleteRecords => {
            for topic in decoded::<wire::DeleteRecordsResponse>(frame, version).topics {
                for partition in &topic.partitions {
                    let key = format!("{}-{}", topic.name, partition.partition_index);
                    put(rows, key, partition.error_code, partition);
                }
            }
        }
        ApiKey::AlterConfigs => {
            for resource in decoded::<wire::AlterConfigsResponse>(frame, version).responses {
                let key = format!("{}/{}", resource.resource_type, resource.resource_name);
                put(rows, key, resource.error_code, &resource);
            }
        }
        ApiKey::DescribeLogDirs => log_dirs(rows, decoded(frame, version)),
        ApiKey::AlterReplicaLogDirs => {
            for topic in decoded::<wire::AlterReplicaLogDirsResponse>(frame, version).results {
                for partition in &topic.partitions {
                    let key = format!("{}-{}", topic.topic_name, partition.partition_index);
                    put(rows, key, partition.error_code, partition);
                }
            }
        }
        ApiKey::ElectLeaders => {
            let response: wire::ElectLeadersResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &());
            for topic in response.replica_election_results {
                for partition in &topic.partition_result {
                    let key = format!("{}-{}", topic.topic, partition.partition_id);
                    put(rows, key, partition.error_code, partition);
                }
            }
        }
        ApiKey::AlterPartitionReassignments => {
            let response: wire::AlterPartitionReassignmentsResponse = decoded(frame, version);
            let allowed = response.allow_replication_factor_change;
            put(rows, "all", response.error_code, &(&response.error_message, allowed));
            for topic in response.responses {
                for partition in &topic.partitions {
                    let key = format!("{}-{}", topic.name, partition.partition_index);
                    put(rows, key, partition.error_code, partition);
                }
            }
        }
        ApiKey::ListPartitionReassignments => {
            let response: wire::ListPartitionReassignmentsResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response);
        }
        other => of_cluster(rows, other, version, frame),
    }
}

fn of_cluster(rows: &mut Rows, api_key: ApiKey, version: i16, frame: &Bytes) {
    match api_key {
        ApiKey::ListConfigResources => {
            let mut response: wire::ListConfigResourcesResponse = decoded(frame, version);
            response.config_resources.sort_by_key(|resource| {
                (resource.resource_type, resource.resource_name.to_string())
            });
            put(rows, "all", response.error_code, &response);
        }
        ApiKey::DescribeClientQuotas => {
            let response: wire::DescribeClientQuotasResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response);
        }
        ApiKey::AlterClientQuotas => {
            for entry in decoded::<wire::AlterClientQuotasResponse>(frame, version).entries {
                let key = format!("{:?}", entry.entity);
                put(rows, key, entry.error_code, &entry);
            }
        }
        ApiKey::DescribeUserScramCredentials => {
            let response: wire::DescribeUserScramCredentialsResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response.error_message);
            for user in response.results {
                put(rows, &*user.user, user.error_code, &user);
            }
        }
        ApiKey::AlterUserScramCredentials => {
            for user in decoded::<wire::AlterUserScramCredentialsResponse>(frame, version).results {
                put(rows, &*user.user, user.error_code, &user);
            }
        }
        ApiKey::DescribeAcls => {
            let response: wire::DescribeAclsResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response);
        }
        ApiKey::CreateAcls => {
            let response: wire::CreateAclsResponse = decoded(frame, version);
            put(rows, "all", response.results[0].error_code, &response);
        }
        ApiKey::DeleteAcls => {
            let response: wire::DeleteAclsResponse = decoded(frame, version);
            put(rows, "all", response.filter_results[0].error_code, &response);
        }
        ApiKey::UnregisterBroker => {
            let response: wire::UnregisterBrokerResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response);
        }
        ApiKey::UpdateFeatures => {
            let response: wire::UpdateFeaturesResponse = decoded(frame, version);
            put(rows, "all", response.error_code, &response);
        }
        ApiKey::DescribeQuorum => quorum(rows, decoded(frame, version)),
        other => panic!("{other:?} has no cases"),
    }
}

/// Paths and sizes of disks are each node's own.
fn log_dirs(rows: &mut Rows, response: wire::DescribeLogDirsResponse) {
    put(rows, "all", response.error_code, &response.results.len());
    for mut dir in response.results {
        assert!(dir.log_dir.starts_with('/'), "{}", dir.log_dir);
        assert_eq!(dir.total_bytes < 0, dir.usable_bytes < 0);
        (dir.total_bytes, dir.usable_bytes) = (dir.total_bytes.signum(), dir.usable_bytes.signum());
        for mut topic in std::mem::take(&mut dir.topics) {
            topic.partitions.sort_by_key(|partition| partition.partition_index);
            put(rows, &*topic.name, 0, &topic);
        }
        dir.log_dir = "".into();
        put(rows, "dir", dir.error_code, &dir);
    }
}

/// How far a quorum is, and since when, is its own.
fn quorum(rows: &mut Rows, response: wire::DescribeQuorumResponse) {
    put(rows, "all", response.error_code, &response.error_message);
    for topic in response.topics {
        for mut partition in topic.partitions {
            if partition.error_code == 0 {
                assert!(partition.high_watermark > 0 && partition.leader_epoch >= 0);
                (partition.high_watermark, partition.leader_epoch) = (1, 0);
            }
            for voter in &mut partition.current_voters {
                assert!(voter.log_end_offset > 0);
                assert_eq!(voter.last_fetch_timestamp, voter.last_caught_up_timestamp);
                *voter = wire::describe_quorum_response::ReplicaState {
                    replica_id: voter.replica_id,
                    ..Default::default()
                };
            }
            let key = format!("{}-{}", topic.topic_name, partition.partition_index);
            put(rows, key, partition.error_code, &partition);
        }
    }
    for node in response.nodes {
        let names: Vec<_> = node.listeners.iter().map(|listener| &*listener.name).collect();
        put(rows, "nodes", 0, &(node.node_id, names));
    }
}

#[tokio::test]
async fn one_node_answers_as_kafkas_does() {
    check("node.txt", DIFFERENCES, 60).await;
}
