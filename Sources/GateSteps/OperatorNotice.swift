package import GateRecords

/// What an operator reads in the log, once it is durable. Nothing in it is personal.
package enum OperatorNotice: Hashable, Sendable {
    /// Something that somebody has to look after.
    case alarm(String)
    /// What an alarm was about is over.
    case over(String)
    /// A ``LoggedEntry`` was recorded.
    case recorded(EntryKind, StoredEntry)
}
