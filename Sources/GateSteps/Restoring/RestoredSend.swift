import BundleModel
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning
import WireProtocol

extension StepContext {
    /// The send of this id that came back from the trail after a restore: its answer is given again, and nothing goes out
    /// twice. `nil` for a new one.
    ///
    /// - Throws: ``Problem`` `idConflict` where what its entry says of the content is not what is asked for now. Params
    ///   are in no entry, so they are compared only where they mark an event.
    func restoredSend(
        _ request: SendRequest, as attested: AttestedRequest, inShadow isShadow: Bool
    ) throws -> SendRecord? {
        guard settings.hasRestoredSends, let subject = try memory.subject(of: request.user) else {
            return nil
        }
        let idTag = subject.requestTag(request.id, inShadow: isShadow)
        let key = idTag.ofRestoredSend(by: attested.caller)
        guard let id = try memory.dedupeRecord(key, to: subject.id)?.send, var earlier = try memory.send(id),
            earlier.isRestored
        else { return nil }
        let entry = try earlier.entry(in: memory.entry(earlier.entryIndex))
        let person = try RecipientSnapshot.load(subject, from: memory)
        guard
            entry.isSameContent(
                as: request, of: attested, of: subject, person, named: earlier.destinationNames,
                under: policy)
        else { throw Problem(idOf: earlier) }
        earlier.requestID = request.id.text
        return earlier
    }
}

extension Problem {
    /// An id that means another send.
    init(idOf earlier: SendRecord) {
        self.init(.idConflict, detail: "send `\(earlier.id)` has this id and other content; use a new id")
    }
}

extension Subject {
    /// The tag of a caller's id. In shadow another, because the id of a real send is free for one in shadow, and the other way
    /// round.
    func requestTag(_ id: RequestID, inShadow isShadow: Bool) -> Tag {
        tag(.request, isShadow ? "shadow\0\(id.text)" : id.text)
    }
}

extension SendEntry {
    /// Whether everything that the entry tells of a request's content is what a request says.
    ///
    /// - Parameters:
    ///   - person: As they are now; `nil` for a subject whose registration did not come back.
    ///   - names: What the destinations of the send were called, by their tags.
    fileprivate func isSameContent(
        as other: SendRequest, of attested: AttestedRequest, of subject: Subject,
        _ person: RecipientSnapshot?, named names: DestinationNames, under policy: CompiledPolicy
    ) -> Bool {
        func tag(_ kind: TagKind, _ text: String?) -> Tag? { text.map { subject.tag(kind, $0) } }
        return (request.type.map { $0 == other.type } ?? (request.typeTag == tag(.type, other.type.text)))
            && request.channel == other.channel && request.critical == other.critical
            && request.ttlSeconds == other.ttlSeconds
            && request.collapseTag == tag(.collapseKey, other.collapseKey)
            && request.deepLinkTag == tag(.deepLink, other.deepLink)
            && isSameDestination(as: other, of: subject, person, named: names)
            && isSameFallback(as: other.fallbackFor)
            && isSameEvent(as: other, of: attested, person, under: policy)
    }

    /// A destination that the recipient does not have is recorded by its name, as a device is; an address by its value,
    /// which may have been lost or replaced since.
    private func isSameDestination(
        as other: SendRequest, of subject: Subject, _ person: RecipientSnapshot?,
        named names: DestinationNames
    ) -> Bool {
        guard let recorded = request.destinationTag, let id = other.destination else {
            return request.destinationTag == nil && other.destination == nil
        }
        return recorded == subject.tag(.device, id.text) || names[recorded] == id.text
            || recorded == person?.destination(id, on: other.channel)?.tag
    }

    /// The entry leaves out a send that could not be replaced, and its facts say that one was named.
    private func isSameFallback(as other: SendID?) -> Bool {
        if let recorded = request.fallbackFor { return recorded == other }
        return deliveries.contains { $0.facts.fallback == .mismatch } == (other != nil)
    }

    /// A type may have begun or ceased to tell events apart since; then neither side says which event it is.
    private func isSameEvent(
        as other: SendRequest, of attested: AttestedRequest, _ person: RecipientSnapshot?,
        under policy: CompiledPolicy
    ) -> Bool {
        guard let recorded = request.eventTags[other.channel],
            let asked = person?.eventTag(
                policy.type(other.type),
                (try? policy.check(other.params, of: other.type).get())?.json ?? other.params,
                of: attested.caller, on: other.channel, inShadow: isShadow)
        else { return true }
        return recorded == asked
    }
}
