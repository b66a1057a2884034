package import GateVocabulary
package import RecipientModel

/// One phone number or one mailbox, whoever registered it.
package struct AddressKey: Hashable, Sendable {
    package let channel: Channel
    /// In small letters: a mailbox is the same one in capitals.
    package let value: String

    package init(_ channel: Channel, _ value: String) {
        self.channel = channel
        self.value = value.lowercased()
    }

    package init(_ address: AddressRecord) { self.init(address.channel, address.value) }
}

/// What was answered to one reply of a recipient, kept as long as a send is, so that a carrier that tells it again gets the
/// same answer.
package struct ReplyRecord: Hashable, Sendable {
    /// The carrier's id for it, under the index key.
    package var key: RequestKey
    /// Of everything but the id; 32 bytes.
    package var contentMAC: [UInt8]
    package var entryIndex: UInt64
    package var isWithdrawal: Bool
    /// When it was taken.
    package var at: Instant

    package init(
        key: RequestKey, contentMAC: [UInt8], entryIndex: UInt64, isWithdrawal: Bool, at: Instant
    ) {
        self.key = key
        self.contentMAC = contentMAC
        self.entryIndex = entryIndex
        self.isWithdrawal = isWithdrawal
        self.at = at
    }
}
