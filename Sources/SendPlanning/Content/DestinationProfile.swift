package import GateVocabulary
package import SealedFormat

/// One destination, as far as composing and sealing need to know it.
package struct DestinationProfile: Hashable, Sendable {
    /// The key a sealed body is sealed to.
    package struct SealingKey: Hashable, Sendable {
        package var id: KeyID
        package var suite: SealingSuite
        /// When it is to be replaced; `nil` while its app is not told.
        package var rotateBy: Instant?

        package init(id: KeyID, suite: SealingSuite, rotateBy: Instant? = nil) {
            self.id = id
            self.suite = suite
            self.rotateBy = rotateBy
        }
    }

    /// What is at the destination, with what its payload is composed and sealed for.
    package enum Kind: Hashable, Sendable {
        /// - Parameters:
        ///   - device: The device's id as its owner registered it: part of what an envelope is bound to.
        ///   - provider: `nil` for the platform's own service.
        ///   - app: Bundle id or package name.
        ///   - key: `nil` when the device has no usable one.
        case device(DestinationID, platform: Platform, provider: PushProvider?, app: String, key: SealingKey?)
        case phone
        case mailbox
    }

    package var tag: Tag
    package var kind: Kind

    package init(tag: Tag, kind: Kind) {
        self.tag = tag
        self.kind = kind
    }

    var key: SealingKey? {
        guard case .device(_, _, _, _, let key) = kind else { return nil }
        return key
    }
}
