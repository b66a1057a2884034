package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// What the gate answers to one send.
///
/// 202 when at least one destination will get it now, later or in a summary; 403 as a problem document
/// when none will, so that a client that looks only at the status never believes in a send that was not.
package struct SendAnswer: Hashable, Sendable {
    /// What became of the send at one destination.
    package struct Delivery: ShownRecord {
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
            (self.destination, self.outcome, self.reason, self.detail) = (
                destination, outcome, reason, detail
            )
            (self.gate, self.messageID, self.keyID) = (gate, messageID, keyID)
            (self.notBefore, self.notes) = (notBefore, notes)
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

        package static let shownName = "Delivery"
        package static let shownMeans = "What becomes of the send at one destination."

        package static let fields = Fields<Self> { fields in
            fields.joined("destination", "The device or address.") { $0.listedDestination }
            fields.joined("detail", \.detail, "What exactly was missing.")
            fields.joined("key_id", \.keyID, "The device key the body is sealed to.")
            fields.joined(
                "message_id", \.messageID, "Stable over every retry; `apns-id` and the envelope's `mid`.")
            fields.joined("not_before", \.notBefore, "RFC 3339; the earliest time it goes on, for a `defer`.")
            fields.joined(
                "notes",
                "Other things worth knowing: `address_contested` where the number or address was verified for another person too, and no earlier.",
                shape: .list(of: .choice(DecisionNotes.names.map(\.name)), countMin: 1, countMax: 8)
            ) { $0.notes.isEmpty ? nil : $0.notes.namesSet }
            fields.joined("outcome", \.outcome, "What becomes of it there.")
            fields.joined("reason", \.reason, "Why.")
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
    /// Whether it was decided and recorded only: then the answer is 202 whatever was decided, because a copy of a send must
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

    /// What all forms have.
    private static func declareCommon(as form: Form, in fields: inout FieldDeclarations<Self>) {
        fields.joined(
            "deliveries", \.deliveries, "One per destination; empty when the send itself was refused.",
            shape: .list(of: Delivery.shownShape, countMax: WireLimits.destinationCountMax))
        fields.joined("detail", "What exactly was missing; `null` when the reason says it all.") {
            Nullable($0.detail)
        }
        fields.joined("hint", "What to do next, in words.") { $0.hintText }
        fields.joined("id", \.id, "The caller's id.")
        fields.joined(
            "outcome", \.outcome, "The best of the deliveries.",
            shape: .choice(Outcome.allCases.filter { form.includes($0) }.map(\.name)))
        fields.joined(
            "owed",
            "A mandatory notice that this send does not discharge: it must go by one of these too, or an alarm is raised.",
            shape: .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count)
        ) { $0.owed.isEmpty ? nil : $0.owed }
        fields.joined("policy", \.policy, "Digest of the bundle that decided.")
        fields.joined(
            "reason", \.reason, "The reason of the best.",
            shape: .choice(Reason.allCases.filter { form.includes($0.outcome) }.map(\.rawValue)))
        fields.flag("replayed", "True when this answers an earlier request with the same id and content.") {
            $0.isReplayed
        }
        fields.joined("send_id", \.sendID, "The gateway's id; paths and references use it.")
        fields.joined("trail", \.trail, "The evidence.")
        fields.joined("who_can_fix", "Who can make the next attempt succeed.") {
            $0.reason.whoCanFix($0.detail)
        }
    }

    private static func declareStatus(in fields: inout FieldDeclarations<Self>) {
        fields.joined("status", "In a line of a stream.", shape: .integer(202...202)) { Optional($0.status) }
    }

    private static func declareViolations(in fields: inout FieldDeclarations<Self>) {
        fields.joined(
            "violations",
            "For `invalid_params`: everything in `params` that does not fit the type. Never a value.",
            shape: .list(of: Violation.shownShape, countMax: WireLimits.violationCountMax)
        ) { $0.violations.isEmpty ? nil : Array($0.violations.prefix(WireLimits.violationCountMax)) }
    }

    /// A line of a stream has no status line, so its body carries `status`.
    private static let acceptedLine = Fields<Self> { fields in
        declareCommon(as: .promise, in: &fields)
        declareStatus(in: &fields)
    }

    private static let shadowedLine = Fields<Self> { fields in
        declareCommon(as: .shadow, in: &fields)
        declareStatus(in: &fields)
        declareViolations(in: &fields)
        fields.joined(
            "shadow", \.isShadow,
            "True: decided and recorded only. Nothing goes out by the gateway, so the producer's own sender sends it."
        )
    }

    private static let accepted = acceptedLine.without(["status"])
    private static let shadowed = shadowedLine.without(["status"])

    private static let refused = Fields<Self> { fields in
        declareCommon(as: .refusal, in: &fields)
        declareViolations(in: &fields)
        fields.joined("status", "The HTTP status.", shape: .integer(403...403)) { $0.status }
        fields.joined("title", "The reason in words.") { $0.reason.title }
        fields.joined(
            "type", "The reason as a URN.",
            shape: .choice(
                Reason.allCases.filter { !$0.outcome.isPromise }.map { "urn:sendgate:reason:\($0.rawValue)" })
        ) { "urn:sendgate:reason:\($0.reason.rawValue)" }
    }

    private func write(isStreamLine: Bool, to json: inout CanonicalWriter) {
        let fields =
            if isShadow {
                isStreamLine ? Self.shadowedLine : Self.shadowed
            } else if outcome.isPromise {
                isStreamLine ? Self.acceptedLine : Self.accepted
            } else {
                Self.refused
            }
        fields.write(shown: self, to: &json)
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
        acceptedLine.shownShape(
            as: "SendAccepted",
            "At least one destination will get it: now, later (`defer`) or in a summary (`digest`).")
    }

    package static var shadowedShape: Shape {
        shadowedLine.shownShape(
            as: "SendShadowed",
            "Decided and recorded on a listener in shadow, and nothing goes out: `outcome` says what enforcing would come to. The same id is answered the same way again."
        )
    }

    package static var refusedShape: Shape {
        refused.shownShape(
            as: "SendRefused",
            "No destination will get it. A problem document whose `detail` is a code. The same id is answered the same way again: use a new id once the reason is gone. After `unknown_type` and `invalid_params` the id is free for corrected content, until it is used for some."
        )
    }
}

extension SendAnswer.Delivery {
    fileprivate func isListed(before other: SendAnswer.Delivery) -> Bool {
        (destination ?? "").utf8.lexicographicallyPrecedes((other.destination ?? "").utf8)
    }
}
