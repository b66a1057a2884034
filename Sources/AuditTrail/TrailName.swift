import CanonicalJSON
package import GateVocabulary
import SealedFormat

/// The names that one trail has had: the configured one, and one more for each restore.
package enum TrailName {
    private static let mark = "/restored-"

    /// The name after a restore at a moment: `gate.example.com/prod/restored-20261121T120000Z`.
    package static func restored(_ gateway: String, at now: Instant) -> String {
        let time = now.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }
        return gateway + mark + time + "Z"
    }

    /// The configured name that a name began with.
    package static func gateway(of origin: String) -> String {
        guard let mark = origin.firstRange(of: mark) else { return origin }
        return String(origin[..<mark.lowerBound])
    }

    /// Whether a name is that of a gateway's trail, before or after a restore.
    package static func isName(_ origin: String, of gateway: String) -> Bool {
        CodeUnits.equal(Self.gateway(of: origin), gateway)
    }
}

extension TrailTrust {
    /// The same public keys under another name of the trail.
    package func renamed(_ origin: String) -> TrailTrust {
        TrailTrust(
            origin: origin,
            keys: keys.compactMap { key in
                key.algorithm == .cosignature
                    ? key : NoteVerifierKey(name: origin, algorithm: key.algorithm, publicKey: key.publicKey)
            })
    }
}
