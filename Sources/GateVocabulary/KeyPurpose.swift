/// What a key of the gateway is for.
package enum KeyPurpose: String, CaseIterable, Sendable, Hashable {
    /// Ed25519: signs the content inside every envelope.
    case origin
    /// Ed25519: signs checkpoints of the trail.
    case trail
    /// Ed25519: signs policy bundles.
    case policy
    /// HMAC-SHA256: unsubscribe links.
    case link
    /// AES-256-GCM: rows at rest.
    case data
    /// HMAC-SHA256: user ids and request ids as lookup keys.
    case index
    /// AES-256-GCM: wraps the symmetric ones.
    case root
    /// Ed25519: signs the list of the others' public keys. Made and kept offline.
    case authority

    /// The purposes that a key ceremony makes keys for, for one gateway. A policy key is a role's and an authority speaks for
    /// many gateways: both are made apart, and a gateway does not start beside one.
    package static let ofGateway: [KeyPurpose] = allCases.filter { !$0.isOffline }

    /// Whether the key is made in a directory of its own and never lies beside those of a gateway.
    package var isOffline: Bool { self == .authority || self == .policy }

    /// What is not possible without it.
    package var use: String {
        switch self {
        case .origin: "it signs what phones are sent"
        case .trail: "it signs the trail's checkpoints"
        case .policy: "it signs bundles"
        case .link: "it signs unsubscribe links"
        case .data: "it seals what is stored of people"
        case .index: "people are found under it"
        case .root: "it opens the others"
        case .authority: "it says which public keys are genuine"
        }
    }

    /// What `keyring.yaml` calls the algorithm.
    package var suite: String {
        switch self {
        case .origin, .trail, .policy, .authority: "Ed25519"
        case .link, .index: "HMAC-SHA256"
        case .data, .root: "AES-256-GCM"
        }
    }

    /// Whether there is a public part to show.
    package var isAsymmetric: Bool { suite == "Ed25519" }
}
