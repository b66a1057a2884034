package import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning
package import WireProtocol

// One event is told once: a type that declares `dedupe_by` names the param that tells one event from another.
// Events are compared among one caller's sends, or among all of the type where it declares `dedupe_scope: type`.
// The value is kept as a tag under the person's own key, so that it means nothing once they are forgotten.
//
// One type may tell an event on each channel. A type that is sent in place of another (`sub_of`) does not tell an event that
// the other told on any channel: a notice and a warning of one transfer would be two messages about one event.

extension RecipientSnapshot {
    /// The tag of the event that a send of a type tells this person; `nil` for a type that may be told again, or
    /// without the param (gate 1 refuses that).
    func eventTag(
        _ type: NotificationType?, _ params: JSONObject, of caller: CallerName, on channel: Channel,
        inShadow isShadow: Bool = false
    ) -> Tag? {
        guard let type, type.isDeduplicated, let param = type.dedupeBy, let value = params[param] else {
            return nil
        }
        return eventTag(type, value: value, of: caller, on: channel, inShadow: isShadow)
    }

    /// Only texts and integers are marked; ``CompliancePolicy`` checks that `dedupe_by` names nothing else.
    func eventTag(
        _ type: NotificationType, value: JSONValue, of caller: CallerName, on channel: Channel,
        inShadow isShadow: Bool = false
    ) -> Tag? {
        let text: String
        switch value {
        case .string(let value): text = value
        case .integer(let value): text = String(value)
        default: return nil
        }
        // What would have been told in shadow was told to nobody.
        let told = "\(type.dedupeNamespace(of: caller))\0\(channel.rawValue)\0\(text)"
        return subject.tag(.event, isShadow ? "shadow\0\(told)" : told)
    }
}

extension RecordReading {
    /// - Parameter send: The send that asks; what it told itself is no repetition.
    func repetition(of eventTag: Tag?, to subject: SubjectID, besides send: SendID) throws -> RepetitionFact {
        guard let eventTag, let record = try dedupeRecord(eventTag, to: subject) else { return .first }
        guard let teller = record.send else { return .acknowledged }
        return teller == send ? .first : .alreadySent
    }
}

extension RecipientSnapshot {
    /// The tags of the event that a send tells this person: on its own channel, and, for a type that is sent in place
    /// of another or has another sent in its place, on every other. Empty for a type that may be told again.
    func eventTags(
        _ type: NotificationType?, _ params: JSONObject, of caller: CallerName, on channel: Channel,
        inShadow isShadow: Bool, under policy: CompiledPolicy
    ) -> [Channel: Tag] {
        guard let type, let own = eventTag(type, params, of: caller, on: channel, inShadow: isShadow)
        else { return [:] }
        var tags = [channel: own]
        if policy.isOneOfSeveral(type) {
            for other in Channel.allCases where other != channel {
                tags[other] = eventTag(type, params, of: caller, on: other, inShadow: isShadow)
            }
        }
        return tags
    }
}

extension RecordReading {
    /// Whether an event was told before: on the channel of the send by any send of it, on another channel by another type.
    ///
    /// - Parameters:
    ///   - eventTags: See ``RecipientSnapshot/eventTags(_:_:of:on:inShadow:under:)``.
    ///   - send: The send that asks.
    ///   - replaced: The send it replaces after a failure, which is no reason against it.
    func repetition(
        of eventTags: [Channel: Tag], in request: AttestedRequest, to subject: SubjectID, by send: SendID,
        replacing replaced: SendID?
    ) throws -> RepetitionFact {
        guard !eventTags.isEmpty else { return .first }
        let own = try repetition(of: eventTags[request.channel], to: subject, besides: send)
        guard own == .first else { return own }
        for (channel, eventTag) in eventTags where channel != request.channel {
            // A send that is not remembered any more told it too long ago to count.
            guard let teller = try dedupeRecord(eventTag, to: subject)?.send, teller != replaced,
                let type = try self.send(teller)?.type, type != request.type
            else { continue }
            return .alreadySent
        }
        return .first
    }

    /// Whether what a send replaces is a push of the same caller's to the same person, and its entry. A push in shadow reached
    /// nobody, so only another send in shadow stands in for it.
    func fallback(
        for replaced: SendID?, of caller: CallerName, to subject: SubjectID?, inShadow isShadow: Bool
    ) throws -> (fact: FallbackFact, entry: UInt64?) {
        guard let replaced else { return (.notFallback, nil) }
        guard let subject, let send = try send(replaced), send.caller == caller, send.subject == subject,
            send.channel == .push, send.isShadow == isShadow
        else { return (.mismatch, nil) }
        return (.replacesOwnSend, send.entryIndex)
    }
}

extension StepContext {
    /// Records that an event need not be told any more, and withdraws the waiting messages that tell it.
    package func acknowledge(
        _ body: AcknowledgeBody, by caller: CallerName, at now: Instant
    ) throws -> Citing<AcknowledgeAnswer> {
        let type = try rules(at: now).acknowledged(body.type, by: caller)
        guard type.isDeduplicated, let param = type.dedupeBy, let given = body.params[param],
            let value = type.params[param]?.kind.canonical(given)
        else {
            let needed = type.dedupeBy.map { "`params` needs a valid `\($0)`" }
            throw Problem(
                .unknownEvent,
                detail: needed
                    ?? "every send of `\(type.id)` is told: it has no `dedupe_by`, or a law demands it")
        }
        guard let subject = try memory.subject(of: body.user),
            let person = try RecipientSnapshot.load(subject, from: memory)
        else { throw Problem(.notFound, detail: "no recipient of this name") }
        let eventTags = Dictionary(
            uniqueKeysWithValues: Channel.allCases.compactMap { channel in
                person.eventTag(type, value: value, of: caller, on: channel).map { (channel, $0) }
            })
        guard !eventTags.isEmpty else {
            throw Problem(.unknownEvent, detail: "`\(param)` of `\(type.id)` cannot tell events apart")
        }
        var withdrawn: [SendID] = []
        for channel in Channel.allCases {
            guard let eventTag = eventTags[channel] else { continue }
            let teller = try memory.dedupeRecord(eventTag, to: subject.id)?.send
            memory.putDedupe(DedupeRecord(eventTag: eventTag, send: nil, at: now), to: subject.id)
            guard let teller else { continue }
            var isWithdrawn = false
            for row in try memory.outbox(of: teller) {
                let action = try apply(.acknowledged, to: recall(row), of: person, at: now)
                if case .withdraw = action { isWithdrawn = true }
            }
            if isWithdrawn { withdrawn.append(teller) }
        }
        let trail = try record(
            AcknowledgementEntry(
                caller: caller, type: type.id, subject: subject.id, eventTags: eventTags,
                withdrawn: withdrawn.count), at: now)
        return { [withdrawn] in AcknowledgeAnswer(withdrawn: withdrawn, trail: $0[trail]) }
    }

    /// Called when a message has left the outbox without having been handed over. When no other message of its send
    /// is left and none arrived, its event may be told again, and a notice that the law demands raises the alarm.
    ///
    /// Call it after the row is out of the outbox and its event is written.
    func cameToNothing(_ row: OutboxRecord, at now: Instant) throws {
        guard try forgetUntold(row), let type = policy.type(row.request.type) else { return }
        try raiseUnreached(type, of: row.send, by: row.request.caller, to: row.subject, at: now)
    }

    /// - Returns: Whether nothing of the send is left and nothing of it arrived.
    @discardableResult
    func forgetUntold(_ row: OutboxRecord) throws -> Bool {
        // Another of its messages may wait, also one of this very batch.
        guard try memory.outbox(of: row.send).isEmpty else { return false }
        guard try !memory.events(of: row.send).contains(where: \.event.mayHaveArrived) else { return false }
        if let eventTag = row.eventTag, try memory.dedupeRecord(eventTag, to: row.subject)?.send == row.send {
            memory.removeDedupe(eventTag, to: row.subject)
        }
        return true
    }

    /// Raises the alarm for a mandatory notice that did not reach its recipient; does nothing for any other type.
    package func raiseUnreached(
        _ type: NotificationType, of send: SendID, by caller: CallerName, to subject: SubjectID?,
        at now: Instant
    ) throws {
        guard let rule = type.mandatory else { return }
        // Raised now, it need not be raised again when its time is over.
        if let subject { memory.removeDuties(of: send, to: subject) }
        try raiseUnreached(
            type.id, of: send, by: caller, to: subject, mustGoBy: rule.ifUnreachable,
            within: rule.mustReachWithin, at: now)
    }

    /// - Parameters:
    ///   - mustGoBy: The way it must go instead.
    ///   - within: How soon, in the words of its law.
    package func raiseUnreached(
        _ type: TypeID, of send: SendID, by caller: CallerName, to subject: SubjectID?, mustGoBy: String,
        within: String, at now: Instant
    ) throws {
        try record(
            MandatoryUnreachedEntry(
                send: send, type: type, subject: Nullable(subject), mustGoBy: mustGoBy, within: within,
                policy: policy.digest), at: now)
        memory.appendEvent(
            EventRecord(
                caller: caller, send: send, subject: subject, event: .mandatoryUnreached,
                destination: nil, at: now, reason: mustGoBy))
        observe(.unreached(type))
        alarm(
            "mandatory_unreached: `\(type)` of send \(send) is not done and must go by \(mustGoBy) within: \(within)"
        )
    }
}
