import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// A write that goes with nothing that is there.
struct UnfitWrite: Error, CustomStringConvertible {
    var description: String
}

/// Whether changes can be written one after the other.
struct ChangeCheck {
    private let contents: StoreContents
    /// Messages that the changes so far have added or taken away.
    private var messages: [MessageID: Bool] = [:]
    private var sends: Set<SendID> = []
    private var requests: Set<RequestKey> = []
    private var states: [SubjectID: RecipientState] = [:]
    private var entryCount: UInt64
    private var publishedCount: UInt64

    private init(_ contents: StoreContents) {
        self.contents = contents
        entryCount = UInt64(contents.entries.count)
        publishedCount = contents.publishedCount
    }

    /// - Throws: What a store throws that cannot write them.
    static func check(_ changes: [Change], over contents: StoreContents) throws {
        var check = ChangeCheck(contents)
        for (position, change) in changes.enumerated() {
            try check.count(change.entries)
            do {
                try check.take(change)
            } catch {
                throw RefusedChange(change: position, error: error)
            }
        }
    }

    private mutating func count(_ entries: [StoredEntry]) throws(StoreError) {
        for entry in entries {
            guard entry.index == entryCount else {
                throw .unavailable(
                    "entry \(entry.index) is not the next of the trail, which is \(entryCount)")
            }
            entryCount += 1
        }
    }

    private mutating func take(_ change: Change) throws(UnfitWrite) {
        for (subject, write) in change.states.pairs {
            let state = write.after
            for key in state.keys {
                let owner = self.owner(of: key.key)
                guard key.subject == subject, owner?.subject ?? subject == subject,
                    owner?.key(key.key)?.device ?? key.device == key.device
                else { throw UnfitWrite(description: "key \(key.key) belongs to another device") }
            }
            states[subject] = state
        }
        for send in change.sends {
            let key = RequestKey(caller: send.caller, idHash: send.idHash)
            guard contents.sends[send.id] == nil, contents.requests[key] == nil,
                sends.insert(send.id).inserted, requests.insert(key).inserted
            else { throw UnfitWrite(description: "send \(send.id) is there already") }
        }
        for (_, forward) in change.forwards {
            guard let send = forward.send, sends.contains(send) || contents.sends[send] != nil else {
                throw UnfitWrite(description: "a forward of no send")
            }
        }
        for write in change.messages { try take(write) }
        for subject in change.erased {
            for row in contents.outbox.values where row.subject == subject { messages[row.message] = false }
        }
        if let size = change.publishedSize {
            guard size >= publishedCount, size <= entryCount else {
                throw UnfitWrite(description: "a published size of \(size)")
            }
            publishedCount = size
        }
    }

    private func owner(of key: KeyID) -> RecipientState? {
        states.values.first { $0.key(key) != nil }
            ?? contents.states.values.first { states[$0.subject] == nil && $0.key(key) != nil }
    }

    private mutating func take(_ write: Change.MessageWrite) throws(UnfitWrite) {
        let (message, isNew): (MessageID, Bool)
        switch write {
        case .insert(let record), .offer(let record): (message, isNew) = (record.message, true)
        case .update(let record): (message, isNew) = (record.message, false)
        case .attempt(let id, _), .postpone(let id, _): (message, isNew) = (id, false)
        case .remove(let id):
            messages[id] = false
            return
        }
        let isThere = messages[message] ?? (contents.outbox[message] != nil)
        guard isThere != isNew else {
            throw UnfitWrite(
                description: "message \(message) is \(isNew ? "there already" : "not there")")
        }
        messages[message] = true
    }
}
