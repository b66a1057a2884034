package import AuditTrail
import GateVocabulary
import OpenSSLCrypto

/// Where policy bundles are kept by digest, so that any decision can be replayed with the policy of its day.
enum PolicyArchive {
    static let directory = "policies"
    /// The canonical form of a bundle. As much as a folder of pages can come to (`PolicyFileLimits`), so that what can
    /// come into force can also be archived; 1,000 types take about 2 MB.
    static let byteCountMax = 128 * 1_024 * 1_024

    /// - Precondition: `digest` is a digest's spelling; ``isDigest(_:)`` tells.
    static func path(of digest: PolicyDigest) -> String {
        precondition(isDigest(digest), "a policy was to be filed as `\(digest)`")
        return "\(directory)/\(digest.text).json"
    }

    /// 64 lower-case hexadecimal digits, and so a file name that leads nowhere else.
    static func isDigest(_ digest: PolicyDigest) -> Bool {
        digest.text.utf8.count == 2 * SHA256Digest.byteCount && Hexadecimal.decode(digest.text) != nil
    }

    static func isDigest(_ digest: PolicyDigest, of canonical: [UInt8]) -> Bool {
        isDigest(digest) && Hexadecimal.decode(digest.text) == SHA256.digest(canonical).bytes
    }
}

/// The file auditors pin: the public keys of the trail, one verifier key a line.
package enum VerifierKeyFile {
    package static let name = "trail.pub"
    /// 64 keys with long names.
    package static let byteCountMax = 65_536

    static func bytes(of keys: [NoteVerifierKey]) -> [UInt8] {
        keys.reduce(into: []) { $0 += Array($1.text.utf8) + [0x0A] }
    }

    /// Reads a key file from wherever an auditor keeps it. Empty lines and lines starting with `#` are passed
    /// over.
    package static func keys(in bytes: [UInt8]) throws(TrailError) -> [NoteVerifierKey] {
        guard bytes.count <= byteCountMax else { throw .notTrailFile(path: name) }
        var keys: [NoteVerifierKey] = []
        for (offset, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            guard let text = String(validating: line, as: UTF8.self), let key = NoteVerifierKey(parsing: text)
            else { throw .malformedVerifierKey(line: offset + 1) }
            keys.append(key)
        }
        return keys
    }
}

/// The file that says which keys are genuine, beside the checkpoint: a signed note by the offline authority.
///
/// A process that can change the trail can put an earlier one there, and nothing else.
package enum KeysetFile {
    package static let name = "keyset"
}
