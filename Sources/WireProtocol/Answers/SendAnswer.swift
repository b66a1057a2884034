package import CanonicalJSON
package import GateVocabulary

/// Where in the trail something is recorded: a producer's own piece of evidence.
package struct TrailReference: Hashable, Sendable {
    /// The log's name, as its checkpoints sign it.
    package var origin: String
    package var index: UInt64
    /// SHA-256(0x00 ‖ entry), 32 bytes.
    package var leaf: [UInt8]

    package init(origin: String, index: UInt64, leaf: [UInt8]) {
        self.origin = origin
        self.index = index
        self.leaf = leaf
    }

    func write(to json: inout CanonicalWriter) {
        json.object { json in
            json.member("index", Int64(index))
            json.member("leaf") { $0.quoted { $0.hexadecimal(leaf) } }
            json.member("origin", origin)
        }
    }

    package var json: JSONObject { JSONObject(written: write) }

    package static let shape = Shape.answer(
        "TrailReference", "Where in the trail this is recorded, durably, before the answer was given.",
        [
            .required("origin", .anyText, "The log's name, as its checkpoints sign it."),
            .required("index", .count, "The entry's index."),
            .required("leaf", .sha256, "SHA-256 of 0x00 and the entry (RFC 6962)."),
        ])
}

/// What the gate answers to one send.
///
/// 202 when at least one destination will get it now, later or in a summary; 403 as a problem document
/// when none will, so that a client that looks only at the status never believes in a send that was not.
package struct SendAnswer: Hashable, Sendable {
    /// What became of the send at one destination.
    package struct Delivery: Hashable, Sendable {
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

        package init(
            destination: String?, outcome: Outcome, reason: Reason, detail: Detail?, gate: Gate?,
            messageID: MessageID? = nil, keyID: KeyID? = nil, notBefore: Instant? = nil
        ) {
            self.destination = destination
            self.outcome = outcome
            self.reason = reason
            self.detail = detail
            self.gate = gate
            self.messageID = messageID
            self.keyID = keyID
            self.notBefore = notBefore
        }

        package init(
            destination: String?, decision: Decision, messageID: MessageID? = nil, keyID: KeyID? = nil
        ) {
            self.init(
                destination: destination, outcome: decision.outcome, reason: decision.reason,
                detail: decision.detail, gate: decision.decidingGate, messageID: messageID, keyID: keyID,
                notBefore: decision.notBefore)
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

        func write(to json: inout CanonicalWriter) {
            json.object { json in
                json.member("destination", destination)
                json.member("detail", name: detail)
                json.member("key_id", hexadecimal: keyID)
                json.member("message_id", uuid: messageID)
                json.member("not_before", notBefore?.rfc3339)
                json.member("outcome", outcome.name)
                json.member("reason", name: reason)
            }
        }

        package var json: JSONObject { JSONObject(written: write) }

        static let members: [ObjectShape.Member] = [
            .required("destination", .anyText, "The device or address."),
            .required("outcome", .choice(Outcome.allCases.map(\.name)), "What becomes of it there."),
            .required("reason", .choice(of: Reason.self), "Why."),
            .optional("detail", .choice(of: Detail.self), "What exactly was missing."),
            .optional(
                "message_id", .uuid, "Stable over every retry; `apns-id` and the envelope's `mid`."),
            .optional("key_id", .keyID, "The device key the body is sealed to."),
            .optional("not_before", .anyText, "RFC 3339; the earliest time it goes on, for a `defer`."),
        ]

        package static let shape = Shape.answer(
            "Delivery", "What becomes of the send at one destination.", members)
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
    /// This answers an earlier request with the same id and content; nothing was sent again.
    package var isReplayed: Bool
    /// Where the params do not fit their type, each with what would be right; never a value.
    package var violations: [Violation]
    /// What the registry says about a type that is switched off.
    package var hint: String?
    /// By which a duty to tell is still to be done after this send, any one of them; empty when none is owed.
    package var owed: [DischargeMeans]

    /// - Parameters:
    ///   - deliveries: At least one; the one that ``Delivery/precedes(_:)`` all others gives the top level.
    ///     One with no destination stands for a send that has none, and is not listed.
    ///   - hidesRecipient: Whether one of gates 1 to 3 refused (``refusedBeforeRecipient(_:)``): the answer
    ///     then says nothing about the recipient, or a caller without rights could ask who has devices.
    package init(
        id: RequestID, sendID: SendID, policy: PolicyDigest, deliveries: [Delivery], hidesRecipient: Bool,
        trail: TrailReference, isReplayed: Bool = false, violations: [Violation] = [], hint: String? = nil,
        owed: [DischargeMeans] = []
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
    }

    /// Whether the send itself was refused, whoever it was for: gates 1 to 3.
    package static func refusedBeforeRecipient(_ trace: Trace) -> Bool {
        trace[.type].verdict == .fail || trace[.caller].verdict == .fail || trace[.critical].verdict == .fail
    }

    /// The one place where an outcome becomes a status.
    package var status: Int { Self.status(of: outcome) }

    /// HTTP status and media type of the answer to a send of an outcome.
    package static func status(of outcome: Outcome) -> Int { outcome.isPromise ? 202 : 403 }
    package static func contentType(of outcome: Outcome) -> String {
        outcome.isPromise ? MediaType.json : MediaType.problem
    }

    /// - Parameter isStreamLine: A line of a stream has no status line, so its body carries `status`.
    private func write(isStreamLine: Bool, to json: inout CanonicalWriter) {
        let isRefusal = !outcome.isPromise
        json.object { json in
            json.member("deliveries") { $0.array(deliveries) { $1.write(to: &$0) } }
            json.member("detail") { json in
                if let detail { json.text(detail.rawValue) } else { json.null() }
            }
            json.member("hint", hintText)
            json.member("id", id.text)
            json.member("outcome", outcome.name)
            if !owed.isEmpty { json.member("owed") { $0.array(owed) { $0.text($1.rawValue) } } }
            json.member("policy", policy.text)
            json.member("reason", name: reason)
            if isReplayed { json.member("replayed", true) }
            json.member("send_id", uuid: sendID)
            if isRefusal || isStreamLine { json.member("status", Int64(status)) }
            if isRefusal { json.member("title", reason.title) }
            json.member("trail") { trail.write(to: &$0) }
            if isRefusal {
                json.member("type") { json in
                    json.quoted { json in
                        json.raw("urn:sendgate:reason:")
                        json.characters(reason.rawValue)
                    }
                }
            }
            if !violations.isEmpty {
                json.member("violations") { json in
                    json.array(violations.prefix(WireLimits.violationCountMax)) { $0.value($1.json) }
                }
            }
            json.member("who_can_fix", name: reason.whoCanFix(detail))
        }
    }

    package func json(isStreamLine: Bool = false) -> JSONObject {
        JSONObject(written: { write(isStreamLine: isStreamLine, to: &$0) })
    }

    /// A refusal is repeated for as long as its id is remembered, whatever has changed since; a producer who is
    /// not told so would wait for ever. Said the first time too, so that both answers are the same.
    private var hintText: String? {
        guard !outcome.isPromise else { return hint }
        // A hint from the bundle may be whole sentences.
        let own = hint.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        return [own, Self.boundIDHint].compactMap { $0 }.joined(separator: "; ")
    }

    package static let boundIDHint = "this id keeps this answer; once the reason is gone, send with a new id"

    package func answer(isStreamLine: Bool = false) -> Answer {
        Answer(
            status: status, contentType: Self.contentType(of: outcome),
            body: bytes(isStreamLine: isStreamLine))
    }

    package func bytes(isStreamLine: Bool) -> [UInt8] {
        var body = CanonicalWriter(capacity: 1_024)
        write(isStreamLine: isStreamLine, to: &body)
        return body.finish()
    }

    private static let common: [ObjectShape.Member] = [
        .required("id", .anyText, "The caller's id."),
        .required("send_id", .uuid, "The gateway's id; paths and references use it."),
        .required(
            "detail", .nullable(.choice(of: Detail.self)),
            "What exactly was missing; `null` when the reason says it all."),
        .optional("hint", .anyText, "What to do next, in words."),
        .optional(
            "owed", .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count),
            "A mandatory notice that this send does not discharge: it must go by one of these too, or an alarm is raised."
        ),
        .required("who_can_fix", .choice(of: WhoCanFix.self), "Who can make the next attempt succeed."),
        .required("policy", .sha256, "Digest of the bundle that decided."),
        .required(
            "deliveries", .list(of: Delivery.shape, countMax: WireLimits.destinationCountMax),
            "One per destination; empty when the send itself was refused."),
        .required("trail", TrailReference.shape, "The evidence."),
        .optional(
            "replayed", .boolean, "True when this answers an earlier request with the same id and content."),
    ]

    package static let acceptedShape = Shape.answer(
        "SendAccepted",
        "At least one destination will get it: now, later (`defer`) or in a summary (`digest`).",
        common + [
            .required(
                "outcome", .choice(Outcome.allCases.filter(\.isPromise).map(\.name)),
                "The best of the deliveries."),
            .required(
                "reason", .choice(Reason.allCases.filter(\.outcome.isPromise).map(\.rawValue)),
                "The reason of the best."),
            .optional("status", .integer(202...202), "In a line of a stream."),
        ])

    package static let refusedShape = Shape.answer(
        "SendRefused",
        "No destination will get it. A problem document whose `detail` is a code. The same id is answered the same way again: use a new id once the reason is gone.",
        common + [
            .required(
                "type",
                .choice(
                    Reason.allCases.filter { !$0.outcome.isPromise }.map {
                        "urn:sendgate:reason:\($0.rawValue)"
                    }),
                "The reason as a URN."),
            .required("title", .anyText, "The reason in words."),
            .required("status", .integer(403...403), "The HTTP status."),
            .required(
                "outcome", .choice(Outcome.allCases.filter { !$0.isPromise }.map(\.name)),
                "The best of the deliveries."),
            .required(
                "reason", .choice(Reason.allCases.filter { !$0.outcome.isPromise }.map(\.rawValue)),
                "The reason of the best."),
            .optional(
                "violations", .list(of: Violation.shape, countMax: WireLimits.violationCountMax),
                "For `invalid_params`: everything in `params` that does not fit the type. Never a value."),
        ])
}

extension SendAnswer.Delivery {
    fileprivate func isListed(before other: SendAnswer.Delivery) -> Bool {
        (destination ?? "").utf8.lexicographicallyPrecedes((other.destination ?? "").utf8)
    }
}
