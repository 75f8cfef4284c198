//! Sorts Kafka's errors by what must happen next. Called by the producers and `flow::dispatch`;
//! pure tables, so that every row can be tested without a broker.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Whose fault a failed delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// Nobody's: it was purged with others, or the connection broke. Try again.
    Nobody,
    /// Perhaps this record's: the broker judges whole batches, so it is guilty only if it fails alone.
    Suspect(Guilt),
    /// This record's: it was alone in its batch.
    Guilty(Guilt),
    /// The partition did not answer in time.
    Silent,
    /// The topic's: it cannot be written now.
    Topic(&'static str),
    /// The topic's name can never exist.
    Name,
}

/// What a record is suspected of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guilt {
    /// Larger than the topic takes.
    Size,
    /// The topic refuses its content, as a compacted topic refuses a null key.
    Content,
}

/// Whose fault it is that a record was not produced.
pub fn blame(code: Code) -> Blame {
    #[allow(clippy::wildcard_enum_match_arm)] // more than a hundred codes mean "try again"
    match code {
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => {
            Blame::Suspect(Guilt::Size)
        }
        Code::InvalidRecord | Code::InvalidMessage | Code::InvalidTimestamp => {
            Blame::Suspect(Guilt::Content)
        }
        Code::MessageTimedOut => Blame::Silent,
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            Blame::Topic("the topic does not exist")
        }
        Code::TopicAuthorizationFailed => Blame::Topic("not authorized to write to the topic"),
        Code::PolicyViolation => Blame::Topic("a policy of the broker forbids it"),
        Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => {
            Blame::Topic("not enough replicas in sync")
        }
        Code::InvalidTopic => Blame::Name,
        _ => Blame::Nobody,
    }
}

/// What a failed transaction call means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Make the same call again.
    Retriable,
    /// The transaction must be aborted; the producer is fine.
    Abortable,
    /// The producer can no longer be used.
    Fatal,
}

/// How bad an error of a transaction call is. What is neither retriable nor abortable is fatal.
pub fn severity(error: &KafkaError) -> Severity {
    match error {
        KafkaError::Transaction(error) if error.is_fatal() => Severity::Fatal,
        KafkaError::Transaction(error) if error.txn_requires_abort() => Severity::Abortable,
        KafkaError::Transaction(error) if error.is_retriable() => Severity::Retriable,
        _ => Severity::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purged_records_are_nobodys_fault_and_sizes_only_a_suspicion() {
        assert_eq!(blame(Code::PurgeQueue), Blame::Nobody);
        assert_eq!(blame(Code::PurgeInflight), Blame::Nobody);
        assert_eq!(blame(Code::BrokerTransportFailure), Blame::Nobody);
        assert_eq!(
            blame(Code::MessageSizeTooLarge),
            Blame::Suspect(Guilt::Size)
        );
        assert_eq!(blame(Code::InvalidRecord), Blame::Suspect(Guilt::Content));
        assert_eq!(blame(Code::MessageTimedOut), Blame::Silent);
        assert!(matches!(
            blame(Code::TopicAuthorizationFailed),
            Blame::Topic(_)
        ));
    }

    #[test]
    fn an_error_without_a_class_is_fatal() {
        assert_eq!(severity(&KafkaError::Canceled), Severity::Fatal);
    }
}
