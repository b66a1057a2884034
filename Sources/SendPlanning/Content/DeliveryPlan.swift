package import GateVocabulary
package import PayloadComposition
package import SealedFormat

/// One message to one destination, ready but for the seal: everything layer 3 has to do, as data. A class, because it is handed
/// from the decision to the thread that completes the body.
package final class DeliveryPlan: Sendable {
    package let message: MessageID
    /// Provider headers as canonical JSON; an empty object where there are none.
    package let headers: [UInt8]
    package let body: PayloadBody
    /// What gate 12 weighed.
    package let byteCount: Int
    /// Set for every push.
    package let order: OriginOrder?

    init(
        message: MessageID, headers: [UInt8], body: PayloadBody, byteCount: Int, order: OriginOrder?
    ) {
        self.message = message
        self.headers = headers
        self.body = body
        self.byteCount = byteCount
        self.order = order
    }

    /// The key the body is sealed to.
    package var key: KeyID? { order?.seal?.key.id }

    /// The provider's body.
    ///
    /// - Parameter inserted: The envelope or the mark that the sealer made of ``order``; `nil` exactly when there is no
    ///   order.
    /// - Throws: When it is not as long as the decision was made on; that one send then fails.
    package func filled(with inserted: [UInt8]?) throws(CompositionError) -> [UInt8] {
        try body.filled(with: inserted)
    }
}

/// What the origin key has to do for one push. Pure data: the sealer brings the key.
package enum OriginOrder: Sendable {
    /// Set exactly when the form is sealed.
    case seal(SealOrder)
    case sign(SignOrder)

    package var seal: SealOrder? { if case .seal(let order) = self { order } else { nil } }
}

/// What to sign of an open push, bound to what.
package struct SignOrder: Sendable {
    package var app: String
    package var device: DestinationID
    package var message: MessageID
    /// Unix seconds.
    package var expiresAt: UInt64
    var push: WeighedPush

    package var content: OpenPushContent {
        get throws(CompositionError) { try push.signedContent() }
    }
}

/// What to seal, to whom, bound to what. Pure data: the sealer brings the origin key and the randomness.
package struct SealOrder: Sendable {
    package var key: SealingKey
    package var app: String
    package var device: DestinationID
    package var purpose: SealingPurpose
    package var message: MessageID
    /// Unix seconds.
    package var expiresAt: UInt64
    var push: WeighedPush

    /// At most 1,974 bytes of canonical JSON.
    package var content: [UInt8] { push.sealedContent }
}
