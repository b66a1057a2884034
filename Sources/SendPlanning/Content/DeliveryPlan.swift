package import GateVocabulary
package import PayloadComposition
package import SealedFormat

/// One message to one destination, ready but for the seal: everything layer 3 has to do, as data.
package struct DeliveryPlan: Hashable, Sendable {
    package var message: MessageID
    package var destination: Tag
    package var form: BodyForm
    package var interruption: Interruption
    /// Provider headers as canonical JSON; an empty object where there are none.
    package var headers: [UInt8]
    package var body: PayloadBody
    /// What gate 12 weighed.
    package var byteCount: Int
    /// Set exactly when ``form`` is sealed.
    package var order: SealOrder?

    /// The key the body is sealed to.
    package var key: KeyID? { order?.key.id }

    /// The provider's body.
    ///
    /// - Parameter envelope: What the sealer made of ``order``; `nil` exactly when there is no order.
    /// - Throws: When the envelope is not as long as the decision was made on; that one send then fails.
    package func filled(with envelope: [UInt8]?) throws(CompositionError) -> [UInt8] {
        try body.filled(with: envelope)
    }
}

/// What to seal, to whom, bound to what. Pure data: the sealer brings the origin key and the randomness.
package struct SealOrder: Hashable, Sendable {
    package var key: DestinationProfile.SealingKey
    package var app: String
    package var device: DestinationID
    package var purpose: SealingPurpose
    package var message: MessageID
    /// Unix seconds.
    package var expiresAt: UInt64
    /// At most 1,974 bytes of canonical JSON.
    package var content: [UInt8]
}
