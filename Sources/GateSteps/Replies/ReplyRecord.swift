package import GateVocabulary

/// The answer to one reply of a recipient. Kept as long as a send is, so that a carrier that reports the reply again
/// gets the same answer.
package struct ReplyRecord: Hashable, Sendable {
    /// The carrier's id for it, under the index key.
    package var key: RequestKey
    /// MAC of everything but the id; 32 bytes.
    package var contentMAC: [UInt8]
    package var entryIndex: UInt64
    package var effect: ReplyEffect
    /// `nil` where no text confirmed it.
    package var confirmation: ReplyConfirmation?
    /// When it was taken.
    package var at: Instant

    package init(
        key: RequestKey, contentMAC: [UInt8], entryIndex: UInt64, effect: ReplyEffect,
        confirmation: ReplyConfirmation? = nil, at: Instant
    ) {
        self.key = key
        self.contentMAC = contentMAC
        self.entryIndex = entryIndex
        self.effect = effect
        self.confirmation = confirmation
        self.at = at
    }
}

/// Records that a withdrawal was confirmed, so that the same number is not sent a second text for repeating it.
package struct ReplyConfirmation: Hashable, Sendable {
    /// The number's, under the index key; 32 bytes. See ``IndexKey/addressHash(_:)``.
    package var addressHash: [UInt8]
    /// The language it was confirmed in.
    package var locale: String

    package init(addressHash: [UInt8], locale: String) {
        self.addressHash = addressHash
        self.locale = locale
    }
}
