package import CanonicalJSON
package import GateVocabulary

/// What the gate answers to one send.
///
/// 202 when at least one destination will get it now, later or in a summary; 403 as a problem document
/// when none will, so that a client that looks only at the status never believes in a send that was not.
package struct SendAnswer: Hashable, Sendable {
    /// What became of the send at one destination.
    package struct Delivery: WireAnswer, Hashable {
        /// As its owner calls it; `nil` stands for "no destination at all".
        package var destination: String?
        package var outcome: Outcome
        package var reason: Reason
        package var detail: Detail?
        /// The lowest gate that decided; `nil` when none objected.
        package var gate: Gate?
        /// Set when something was put in the outbox.
        package var messageID: MessageID?
        /// The device key the body is sealed to.
        package var keyID: KeyID?
        package var notBefore: Instant?
        package var notes: DecisionNotes

        package init(
            destination: String?, outcome: Outcome, reason: Reason, detail: Detail?, gate: Gate?,
            messageID: MessageID? = nil, keyID: KeyID? = nil, notBefore: Instant? = nil,
            notes: DecisionNotes = []
        ) {
            self.destination = destination
            self.outcome = outcome
            self.reason = reason
            self.detail = detail
            self.gate = gate
            self.messageID = messageID
            self.keyID = keyID
            self.notBefore = notBefore
            self.notes = notes
        }

        package init(
            destination: String?, decision: Decision, messageID: MessageID? = nil, keyID: KeyID? = nil
        ) {
            self.init(
                destination: destination, outcome: decision.outcome, reason: decision.reason,
                detail: decision.detail, gate: decision.decidingGate, messageID: messageID, keyID: keyID,
                notBefore: decision.notBefore, notes: decision.notes)
        }

        /// Whether this delivery speaks for the whole send before `other` does: the better outcome, then the
        /// lower gate (a send no gate objected to before any other), then the destination's name.
        package func precedes(_ other: Delivery) -> Bool {
            if outcome != other.outcome { return outcome < other.outcome }
            let (left, right) = (
                gate.map { Int($0.rawValue) } ?? -1, other.gate.map { Int($0.rawValue) } ?? -1
            )
            if left != right { return left < right }
            switch (destination, other.destination) {
            case (.none, .none): return false
            case (.none, .some): return true
            case (.some, .none): return false
            // UTF-8 order, because Swift's own would follow Unicode equivalence.
            case (.some(let left), .some(let right)): return left.utf8.lexicographicallyPrecedes(right.utf8)
            }
        }

        /// The caller's name for it. A delivery without a destination is not listed in an answer.
        private var listedDestination: String {
            guard let destination else { preconditionFailure("a delivery to no destination was listed") }
            return destination
        }

        package static let name = "Delivery"
        package static let means = "What becomes of the send at one destination."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("destination", answer, { $0.listedDestination }, "The device or address.")
            fields.optional("detail", answer, \.detail, "What exactly was missing.")
            fields.optional("key_id", answer, \.keyID, "The device key the body is sealed to.")
            fields.optional(
                "message_id", answer, \.messageID,
                "Stable over every retry; `apns-id` and the envelope's `mid`.")
            fields.optional(
                "not_before", answer, \.notBefore, "RFC 3339; the earliest time it goes on, for a `defer`.")
            fields.optional(
                "notes",
                as: .list(of: .choice(DecisionNotes.names.map(\.name)), countMin: 1, countMax: 8), answer,
                { $0.notes.isEmpty ? nil : $0.notes.namesSet },
                "Other things worth knowing: `address_contested` where the number or address was verified for another person too, and no earlier."
            )
            fields.required("outcome", answer, \.outcome, "What becomes of it there.")
            fields.required("reason", answer, \.reason, "Why.")
        }
    }

    package var id: RequestID
    package var sendID: SendID
    package var outcome: Outcome
    package var reason: Reason
    package var detail: Detail?
    package var policy: PolicyDigest
    /// Empty when the gates refused before anything about the recipient was asked.
    package private(set) var deliveries: [Delivery]
    package var trail: TrailReference
    /// Whether the answer is that of an earlier request with the same id and content; nothing was sent again.
    package var isReplayed: Bool
    /// Whether another send was bound to the id since. Only a refusal that binds no id can meet that.
    package var isIDTaken = false
    /// Where the params do not fit their type, each with what would be right; never a value.
    package var violations: [Violation]
    /// What the registry says about a type that is switched off.
    package var hint: String?
    /// By which a duty to tell is still to be done after this send, any one of them; empty when none is owed.
    package var owed: [DischargeMeans]
    /// Whether it was decided and recorded alone: then the answer is 202 whatever was decided, because a copy of a send must
    /// not look like an error to the producer that goes on sending by itself.
    package var isShadow: Bool

    /// - Parameters:
    ///   - deliveries: At least one; the one that ``Delivery/precedes(_:)`` all others gives the top level.
    ///     A delivery without a destination stands for a send that has none, and is not listed.
    ///   - hidesRecipient: Whether one of gates 1 to 3 refused (``refusedBeforeRecipient(_:)``): the answer
    ///     then says nothing about the recipient, or a caller without rights could ask who has devices.
    package init(
        id: RequestID, sendID: SendID, policy: PolicyDigest, deliveries: [Delivery], hidesRecipient: Bool,
        trail: TrailReference, isReplayed: Bool = false, violations: [Violation] = [], hint: String? = nil,
        owed: [DischargeMeans] = [], isShadow: Bool = false
    ) {
        guard let best = deliveries.min(by: { $0.precedes($1) }) else {
            preconditionFailure("the send \(sendID) was answered without a single decision")
        }
        self.id = id
        self.sendID = sendID
        outcome = best.outcome
        reason = best.reason
        detail = best.detail
        self.policy = policy
        self.deliveries =
            hidesRecipient
            ? [] : deliveries.filter { $0.destination != nil }.sorted { $0.isListed(before: $1) }
        self.trail = trail
        self.isReplayed = isReplayed
        self.violations = violations
        self.hint = hint
        self.owed = owed
        self.isShadow = isShadow
    }

    /// Whether the send itself was refused, whatever its recipient: gates 1 to 3.
    package static func refusedBeforeRecipient(_ trace: Trace) -> Bool {
        trace[.type].verdict == .fail || trace[.caller].verdict == .fail || trace[.critical].verdict == .fail
    }

    /// The one place where an outcome becomes a status.
    package var status: Int { Self.status(of: outcome, inShadow: isShadow) }

    /// HTTP status and media type of the answer to a send of an outcome.
    package static func status(of outcome: Outcome, inShadow isShadow: Bool) -> Int {
        outcome.isPromise || isShadow ? 202 : 403
    }
    package static func contentType(of outcome: Outcome, inShadow isShadow: Bool) -> String {
        outcome.isPromise || isShadow ? MediaType.json : MediaType.problem
    }

    /// The three forms of an answer.
    private enum Form {
        case promise, refusal
        /// Of any outcome, and a promise of nothing.
        case shadow

        func includes(_ outcome: Outcome) -> Bool {
            self == .shadow || outcome.isPromise == (self == .promise)
        }
    }

    private var form: Form { isShadow ? .shadow : outcome.isPromise ? .promise : .refusal }

    /// The fields of an answer of a form.
    ///
    /// - Parameter isStreamLine: A line of a stream has no status line, so its body carries `status`.
    private static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, as form: Form, isStreamLine: Bool, to fields: inout Fields
    ) {
        fields.required(
            "deliveries", as: .list(of: Delivery.shape, countMax: WireLimits.destinationCountMax),
            answer,
            \.deliveries,
            "One per destination; empty when the send itself was refused.")
        fields.required(
            "detail", answer, { Nullable(value: $0.detail) },
            "What exactly was missing; `null` when the reason says it all.")
        fields.optional("hint", answer, { $0.hintText }, "What to do next, in words.")
        fields.required("id", answer, \.id, "The caller's id.")
        fields.required(
            "outcome", as: .choice(Outcome.allCases.filter { form.includes($0) }.map(\.name)),
            answer,
            \.outcome,
            "The best of the deliveries.")
        fields.optional(
            "owed", as: .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count),
            answer,
            { $0.owed.isEmpty ? nil : $0.owed },
            "A mandatory notice that this send does not discharge: it must go by one of these too, or an alarm is raised."
        )
        fields.required("policy", answer, \.policy, "Digest of the bundle that decided.")
        fields.required(
            "reason",
            as: .choice(Reason.allCases.filter { form.includes($0.outcome) }.map(\.rawValue)),
            answer,
            \.reason,
            "The reason of the best.")
        fields.flag(
            "replayed", answer, \.isReplayed,
            "True when this answers an earlier request with the same id and content.")
        fields.required("send_id", answer, \.sendID, "The gateway's id; paths and references use it.")
        if form == .shadow {
            fields.required(
                "shadow", as: .boolean, answer, \.isShadow,
                "True: decided and recorded alone. Nothing goes out by the gateway, so the producer's own sender sends it."
            )
        }
        if form != .refusal {
            fields.optional(
                "status", as: .integer(202...202), answer, { isStreamLine ? Int64($0.status) : nil },
                "In a line of a stream.")
        } else {
            fields.required(
                "status", as: .integer(403...403), answer, { Int64($0.status) }, "The HTTP status.")
            fields.required("title", answer, { $0.reason.title }, "The reason in words.")
        }
        fields.required("trail", answer, \.trail, "The evidence.")
        if form == .refusal {
            fields.required("type", answer, { RefusalURN(reason: $0.reason) }, "The reason as a URN.")
        }
        if form != .promise {
            fields.optional(
                "violations", as: .list(of: Violation.shape, countMax: WireLimits.violationCountMax),
                answer,
                { $0.violations.isEmpty ? nil : Array($0.violations.prefix(WireLimits.violationCountMax)) },
                "For `invalid_params`: everything in `params` that does not fit the type. Never a value.")
        }
        fields.required(
            "who_can_fix", answer, { $0.reason.whoCanFix($0.detail) },
            "Who can make the next attempt succeed.")
    }

    private func write(isStreamLine: Bool, to json: inout CanonicalWriter) {
        var fields = AnswerWriter<Self>(json)
        Self.show(self, as: form, isStreamLine: isStreamLine, to: &fields)
        json = fields.finish()
    }

    package func json(isStreamLine: Bool = false) -> JSONObject {
        JSONObject(written: { write(isStreamLine: isStreamLine, to: &$0) })
    }

    /// A refusal is repeated for as long as its id is remembered, whatever has changed since; a producer who is
    /// not told so would wait for ever. Said the first time too, so that both answers are the same, but for an id that was free
    /// then and is not any more.
    private var hintText: String? {
        guard !outcome.isPromise else { return hint }
        // A hint from the bundle may be whole sentences.
        let own = hint.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        let id =
            if reason.bindsID { Self.boundIDHint } else if isIDTaken { Self.takenIDHint } else {
                Self.freeIDHint
            }
        return [own, id].compactMap { $0 }.joined(separator: "; ")
    }

    package static let boundIDHint = "this id keeps this answer; once the reason is gone, send with a new id"
    package static let freeIDHint = "this id is free: put right what is wrong, and send with it again"
    package static let takenIDHint =
        "this id was used for other content since: put right what is wrong, and send with a new id"

    package func answer(isStreamLine: Bool = false) -> Answer {
        Answer(
            status: status, contentType: Self.contentType(of: outcome, inShadow: isShadow),
            body: bytes(isStreamLine: isStreamLine))
    }

    package func bytes(isStreamLine: Bool) -> [UInt8] {
        var body = CanonicalWriter(capacity: 1_024)
        write(isStreamLine: isStreamLine, to: &body)
        return body.finish()
    }

    package static var acceptedShape: Shape {
        shape(
            "SendAccepted",
            "At least one destination will get it: now, later (`defer`) or in a summary (`digest`).",
            as: .promise)
    }

    package static var shadowedShape: Shape {
        shape(
            "SendShadowed",
            "Decided and recorded on a listener in shadow, and nothing goes out: `outcome` says what enforcing would come to. The same id is answered the same way again.",
            as: .shadow)
    }

    package static var refusedShape: Shape {
        shape(
            "SendRefused",
            "No destination will get it. A problem document whose `detail` is a code. The same id is answered the same way again: use a new id once the reason is gone. After `unknown_type` and `invalid_params` the id is free for corrected content, until it is used for some.",
            as: .refusal)
    }

    private static func shape(_ name: String, _ means: String, as form: Form) -> Shape {
        .named(
            name,
            .object(
                AnswerShapes<Self>.object(means) {
                    show((), as: form, isStreamLine: true, to: &$0)
                }))
    }
}

/// The `type` of a refused send.
private struct RefusalURN: AnswerValue {
    let reason: Reason

    static var answerShape: Shape {
        .choice(Reason.allCases.filter { !$0.outcome.isPromise }.map { "urn:sendgate:reason:\($0.rawValue)" })
    }

    func write(answer json: inout CanonicalWriter) {
        json.quoted { json in
            json.raw("urn:sendgate:reason:")
            json.characters(reason.rawValue)
        }
    }
}

extension SendAnswer.Delivery {
    fileprivate func isListed(before other: SendAnswer.Delivery) -> Bool {
        (destination ?? "").utf8.lexicographicallyPrecedes((other.destination ?? "").utf8)
    }
}
