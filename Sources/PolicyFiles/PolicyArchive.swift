package import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
import PolicyPages

/// An archived bundle that cannot be used.
package enum PolicyArchiveError: Error, Hashable, CustomStringConvertible {
    /// The bytes are not those that were archived under this digest.
    case digestMismatch(expected: PolicyDigest, found: PolicyDigest)
    /// The bytes are not a canonical JSON object, which no archive of ours holds.
    case notCanonical(reason: String)
    /// The build does not accept the bundle, which was archived by one that knew other rules.
    case refused(PolicyDiagnostics)

    package var description: String {
        switch self {
        case .digestMismatch(let expected, let found):
            "the archived policy `\(expected)` has other contents, whose digest is `\(found)`"
        case .notCanonical(let reason):
            "the archived policy is not in canonical form: \(reason)"
        case .refused(let diagnostics):
            "the archived policy does not fit this build:\n\(diagnostics)"
        }
    }
}

/// The bytes that keep a bundle for replay: its canonical form, filed under its digest.
///
/// The form is one JSON object, path to page, in the bytes of RFC 8785 (`PolicyBundle/canonicalJSON`); a
/// notice stands in it as a text. Comments, quoting, the order of members and the place of a line are not
/// part of it: two bundles with one digest decide and say the same. Where the bytes are kept is
/// `TrailDirectory`'s business.
package enum PolicyArchive {
    /// - Parameters:
    ///   - bytes: What was archived.
    ///   - digest: What it was filed under; checked before anything is parsed.
    package static func read(
        _ bytes: [UInt8], filedUnder digest: PolicyDigest
    ) throws(PolicyArchiveError) -> PolicyBundle {
        let found = PolicyDigest(Hexadecimal.encode(SHA256.digest(bytes).bytes))
        guard found == digest else { throw .digestMismatch(expected: digest, found: found) }
        let json: JSONValue
        do throws(JSONError) {
            json = try CanonicalJSON.readCanonical(bytes, limits: limits)
        } catch {
            throw .notCanonical(reason: "\(error)")
        }
        guard case .object = json else { throw .notCanonical(reason: "it is no object") }
        switch PolicyBundle.read(archive: json) {
        case .success(let bundle): return bundle
        case .failure(let diagnostics): throw .refused(diagnostics)
        }
    }

    /// Two levels more than a page may have: the object of all pages, and the page itself.
    private static let limits = JSONLimits(
        byteCountMax: PolicyFileLimits.archiveByteCountMax, depthMax: PolicyFileLimits.depthMax + 2,
        memberCountMax: PolicyFileLimits.fileByteCountMax)
}
