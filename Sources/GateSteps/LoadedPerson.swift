package import GateVocabulary
package import GateRecords

/// What a batch knows of one person: as stored, or as its steps left it. `nil` is not known.
///
/// An object, so that a send looks for the person once. Confined to the thread of its ``BatchState``.
package final class LoadedPerson {
    package let id: SubjectID
    package internal(set) var subject: BatchState.Unboxed<Subject?>?
    package internal(set) var state: BatchState.Unboxed<RecipientState?>?
    /// As stored; what the batch has added is beside it.
    package internal(set) var forwards: BatchState.Unboxed<LoadedForwards>?
    var addedForwards: [ForwardRecord] = []

    init(_ id: SubjectID) { self.id = id }

    package var knowsState: Bool { state != nil }

    package func take(_ state: BatchState.Unboxed<RecipientState?>) { self.state = state }

    package func take(_ subject: BatchState.Unboxed<Subject?>) { self.subject = subject }

    package func take(_ forwards: BatchState.Unboxed<LoadedForwards>) { self.forwards = forwards }

    package func knowsForwards(since: Instant) -> Bool {
        switch forwards {
        case .success(let loaded): loaded.since <= since
        case .failure: true
        case nil: false
        }
    }
}

/// Forwards to one person, newest first, and since when they were looked for.
package struct LoadedForwards {
    /// Forwards of one person that are looked at: one more than the highest cap there may be.
    package static let countMax = 1_000_001

    var since: Instant
    var records: [ForwardRecord]

    package init(since: Instant, records: [ForwardRecord]) {
        self.since = since
        self.records = records
    }
}
