package import GateVocabulary
package import OpenSSLCrypto

/// A person as the trail knows them, and the key that makes their tags.
///
/// A class, because the pads of the key are hashed once for all tags while the person is held in memory.
package final class Subject: Sendable {
    package let id: SubjectID
    /// K_s: destroying it makes every tag of this person meaningless.
    package let tagKey: SecretBytes
    private let keyed = LazyHMACKey()

    package static let tagKeyByteCount = 32
    /// What a person takes of ``SecretMemory`` once they have a tag: K_s and its two hashed pads.
    package static let secretByteCount = tagKeyByteCount + HMACKey.secretByteCount

    package init(id: SubjectID, tagKey: SecretBytes) {
        (self.id, self.tagKey) = (id, tagKey)
    }

    /// K_s with its pads hashed, which is half of a tag's work, and every send of a caller has a tag. Made with the first one,
    /// because most steps make none, and zeroed where K_s is: when the last reference to the person ends.
    var hashedTagKey: HMACKey { keyed.of(tagKey) }
}
