import BundleModel
package import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import GateRecords
import PayloadComposition
import SealedFormat

/// The payload of one send at one destination, weighed in every form that could go and composed in the one that does, so
/// that its size is a fact before anything is decided.
package struct ContentPlan: Sendable {
    package let message: MessageID
    private let destination: Destination
    /// `nil` when there is no usable one.
    private let key: SealingKey?
    package let sizes: PayloadSizes
    /// How strongly the decision will ask to interrupt, should it let the send pass.
    package let interruption: Interruption
    private let composedAt: Instant
    private let expiresAt: Instant
    private let tier: Tier
    /// What was decided while every size was taken for 0.
    private let preview: Decision
    /// In the form of ``preview``; `nil` unless it goes now.
    private let payload: ComposedPayload?

    /// Weighs, composes what goes, and writes the sizes into `facts`.
    ///
    /// - Parameters:
    ///   - content: `nil` when nothing can be said (an unknown type, params that do not fit): then no size
    ///     becomes known and gate 12 fails, after the gate that says why.
    ///   - ownCollapse: A keyed tag of this message alone, for one that collapses with no other.
    ///   - facts: Complete but for `sizes`.
    ///   - terms: What the policy says of the material's request.
    ///   - unsubscribeLink: Put in where the category asks for one (S1). Asked whether the body may leave; of one that goes
    ///     nowhere only the length counts, so any text as long as a link will do.
    package init(
        _ material: borrowing SendMaterial, saying content: SendContent?, to destination: Destination,
        sealedTo key: SealingKey?, as message: MessageID, ownCollapse: @autoclosure () -> Tag,
        unsubscribeLink: (_ mayLeave: Bool) -> CountedText?,
        facts: inout Facts, under terms: borrowing RequestTerms, of policy: CompiledPolicy
    ) {
        self.message = message
        let now = facts.now ?? material.sentAt
        composedAt = now
        expiresAt = material.expiresAt
        tier = terms.type?.tier ?? .informational
        // Urgency is part of the payload, so it must be known before the payload's size. The decision itself
        // is asked what it would carry if only the size were right: gate 12 is the one gate that looks at it.
        facts.sizes = PayloadSizes(sealed: 0, generic: 0, full: 0)
        let preview = decide(given: facts, under: terms.rule, of: policy)
        self.preview = preview
        interruption = preview.outcome.isPromise ? preview.interruption : terms.rule.interruption

        var payload: ComposedPayload?
        var sizes = PayloadSizes()
        if let content, let forms = terms.needs?.forms {
            let onlyForm = Self.onlyForm(of: preview, facts)
            // A full body has no closed one's headers; of a body that goes nowhere only the length counts, and every tag has
            // the same.
            let isOpenAlone = onlyForm.map { $0 == .full } ?? (forms.count == 1 && forms[0] == .full)
            let closedCollapse =
                isOpenAlone
                ? nil
                : material.collapse ?? (preview.outcome == .forward ? ownCollapse() : Tag(high: 0, low: 0))
            if let notification = try? content.notification(
                material, message: message, closedCollapse: closedCollapse,
                interruption: interruption, privacy: facts.privacy, composedAt: now,
                unsubscribeLink: { unsubscribeLink(preview.outcome == .forward) },
                rotateKeyBy: key?.rotateBy, of: policy)
            {
                let target = destination.target(suite: key?.suite ?? .p256)
                for form in forms where onlyForm == nil || form == onlyForm {
                    // A send that does not go now is not composed; only its size is computed.
                    if preview.outcome == .forward, form == preview.form, form != .sealed || key != nil {
                        payload = try? compose(notification, for: target, as: form)
                        sizes[form] = payload?.byteCount
                    } else {
                        sizes[form] = try? composedByteCount(notification, for: target, as: form)
                    }
                }
            }
        }
        (self.destination, self.key) = (destination, key)
        self.payload = payload
        self.sizes = sizes
        facts.sizes = sizes == PayloadSizes() ? nil : sizes
    }

    /// The one form whose size has to be known: the one a promise will take. A refused send shows in its trace
    /// whether any of its forms would have fitted, and so does one whose reader's privacy is not known.
    private static func onlyForm(of preview: Decision, _ facts: Facts) -> BodyForm? {
        preview.outcome.isPromise && (preview.form == .sealed || facts.privacy != nil) ? preview.form : nil
    }

    /// The decision on the facts with this plan's sizes in them.
    package func decision(
        given facts: Facts, under rule: CompiledRule, of policy: CompiledPolicy
    ) -> Decision {
        preview.again(given: facts, under: rule, of: policy)
    }

    /// What is to be done about a promise.
    ///
    /// - Parameter decision: Made on the facts this plan's sizes are in.
    /// - Returns: `nil` when nothing goes to this destination now.
    package func delivery(for decision: Decision) -> DeliveryPlan? {
        guard decision.outcome == .forward else { return nil }
        precondition(
            decision.interruption == interruption,
            "a payload composed as \(interruption) was decided as \(decision.interruption)")
        // No size changes the form.
        guard let payload, decision.form == preview.form else {
            preconditionFailure("a form that was not composed (\(decision.form)) passed the size gate")
        }
        return DeliveryPlan(
            message: message, headers: payload.headers, body: payload.body, byteCount: payload.byteCount,
            order: order(for: payload, as: decision.form))
    }

    private func order(for payload: ComposedPayload, as form: BodyForm) -> OriginOrder? {
        guard let content = payload.content else { return nil }
        guard case .device(let devices, let place) = destination else {
            preconditionFailure("a push was composed for a destination that is no device")
        }
        let (app, device) = (devices[place].app, devices[place].id)
        // That of an envelope and of a generic push is a class of its tier. The exact time of a sealed one is inside.
        let statedExpiry =
            form == .full
            ? self.expiresAt
            : composedAt.advanced(
                bySeconds: ExpiryClass.seconds(until: self.expiresAt, from: composedAt, tier: tier))
        let expiresAt = UInt64(max(0, statedExpiry.seconds))
        switch content {
        case .open(let push):
            return .sign(
                SignOrder(app: app, device: device, message: message, expiresAt: expiresAt, push: push))
        case .sealed(let push):
            guard let key else {
                preconditionFailure("a sealed payload was composed for a destination without a key")
            }
            return .seal(
                SealOrder(
                    key: key, app: app, device: device, purpose: .notification, message: message,
                    expiresAt: expiresAt, push: push))
        }
    }
}

extension Destination {
    /// Where a payload goes.
    ///
    /// - Parameter suite: That of the key. Without one there is nothing to seal to, and the size of a sealed body is still worth
    ///   knowing, by any suite: gate 11 then is the only one that objects.
    fileprivate func target(suite: SealingSuite) -> PayloadTarget {
        switch self {
        case .address(let addresses, let place): addresses[place].channel == .sms ? .sms : .email
        case .device(let devices, let place):
            switch (devices[place].provider, devices[place].platform) {
            case (.expo, let platform): .expo(platform, suite: suite)
            case (nil, .ios): .apns(topic: devices[place].app, suite: suite)
            case (nil, .android): .fcm(package: devices[place].app, suite: suite)
            }
        }
    }
}

extension PayloadSizes {
    fileprivate subscript(form: BodyForm) -> Int? {
        get {
            switch form {
            case .sealed: sealed
            case .generic: generic
            case .full: full
            case .never: nil
            }
        }
        set {
            switch form {
            case .sealed: sealed = newValue
            case .generic: generic = newValue
            case .full: full = newValue
            case .never: break
            }
        }
    }
}
