package import AuditTrail
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import Glibc

/// Who vouches for a bundle: a C2SP signed note in `bundle.sig` beside the pages.
///
///     sendgate/policy/v1
///     {"digest":"…64 hex…","effective_from":"2026-11-09","name":"…","version":4}
///
///     — policy-9f86d081884c7d65 <base64(key id ‖ Ed25519 signature)>
///
/// The digest covers every page, so the other members could be read from them; they stand here for the person who
/// is asked what they are signing. The file itself is no page: it is in neither the digest nor the archive. Several
/// keys may sign one statement, one line each.
package enum PolicySignature {
    package static let fileName = "bundle.sig"
    /// 64 signatures of 128 characters.
    package static let byteCountMax = 16 * 1024
    static let firstLine = "sendgate/policy/v1\n"

    /// What is signed: which bundle, and where it stands among the versions of its name.
    package struct Statement: Hashable, Sendable {
        package var name: String
        package var version: Int
        package var effectiveFrom: CalendarDate
        /// Of the pages as they lie in the folder.
        package var digest: PolicyDigest

        package init(of bundle: PolicyBundle, digest: PolicyDigest) {
            name = bundle.name
            version = bundle.version
            effectiveFrom = bundle.effectiveFrom
            self.digest = digest
        }

        /// The note's text, with its final newline. One statement has one spelling, so that comparing bytes is
        /// comparing statements.
        package var text: [UInt8] {
            let object: JSONObject = [
                "digest": .string(digest.text), "effective_from": .string("\(effectiveFrom)"),
                "name": .string(name), "version": .integer(Int64(version)),
            ]
            return Array(firstLine.utf8) + CanonicalJSON.write(object) + [UInt8(ascii: "\n")]
        }
    }

    /// Checks that one of `keys` signed exactly this statement.
    ///
    /// - Parameter folder: The bundle's.
    /// - Returns: The keys that did.
    /// - Throws: What is wrong with the signature, as a problem of `bundle.sig`.
    @discardableResult
    package static func verify(
        _ statement: Statement, in folder: String, by keys: [NoteVerifierKey]
    ) throws(PolicyProblems) -> [NoteVerifierKey] {
        guard let note = try read(in: folder) else {
            throw refusal(
                "is missing, and only signed bundles are accepted here",
                hint: "sign the bundle with `sendgate policy sign BUNDLE --key FILE`")
        }
        let signers: [NoteVerifierKey]
        do throws(NoteError) {
            signers = try note.attestations(by: keys).map(\.key)
        } catch {
            throw refusal(describe(error, of: note), hint: hint(for: error))
        }
        // Only now do its words count for anything.
        guard note.text == statement.text else {
            throw refusal(
                "signs other contents than the folder has, whose digest is `\(statement.digest)`",
                hint: "restore what was signed, or review what is there and sign it")
        }
        return signers
    }

    /// - Returns: `nil` when the bundle has no signature.
    package static func read(in folder: String) throws(PolicyProblems) -> SignedNote? {
        let bytes: [UInt8]
        do throws(FolderError) {
            let folder = try BundleFolder(at: folder)
            guard
                try folder.entries(of: "", countMax: PolicyFileLimits.fileCountMax)
                    .contains(.file(path: fileName))
            else { return nil }
            bytes = try folder.contents(of: fileName, byteCountMax: byteCountMax)
        } catch {
            throw refusal(
                "cannot be read: \(error.reason)", hint: "check that the gateway's user may read it")
        }
        guard bytes.count <= byteCountMax else {
            throw refusal("is longer than \(byteCountMax) bytes", hint: "sign the bundle again")
        }
        do throws(NoteError) {
            return try SignedNote(parsing: bytes)
        } catch {
            throw refusal(error.message, hint: "sign the bundle again")
        }
    }

    /// Signs a bundle, beside those who signed the same contents before. A signature of other contents goes.
    package static func sign(_ statement: Statement, in folder: String, by signer: NoteSigner) throws {
        let key = signer.verifierKey
        var signatures: [NoteSignature] = []
        if let note = try? read(in: folder), note.text == statement.text {
            signatures = note.signatures.filter { $0.name != key.name || $0.keyID != key.keyID }
        }
        signatures.append(try signer.sign(statement.text))
        try write(SignedNote(text: statement.text, signatures: signatures).bytes, in: folder)
    }

    /// Writes beside and renames: a gateway that reads meanwhile finds the old signature or the new one.
    private static func write(_ bytes: [UInt8], in folder: String) throws(PolicyProblems) {
        let path = "\(folder)/\(fileName)"
        let temporary = "\(path).new"
        func failure() -> PolicyProblems {
            refusal(
                "cannot be written: \(String(cString: strerror(errno)))",
                hint:
                    "check that this user may write in `\(folder)`, and remove `\(temporary)` if it is there")
        }
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else {
                let problem = failure()
                unlink(temporary)
                throw problem
            }
            left = left.dropFirst(count)
        }
        guard fsync(descriptor) == 0, rename(temporary, path) == 0 else {
            let problem = failure()
            unlink(temporary)
            throw problem
        }
    }

    // MARK: Words

    private static func refusal(_ message: String, hint: String) -> PolicyProblems {
        PolicyProblems([PolicyProblem(file: fileName, message: message, hint: hint)])
    }

    private static func describe(_ error: NoteError, of note: SignedNote) -> String {
        guard error == .noKnownSignature else { return error.message }
        let names = note.signatures.map { "`\($0.name)`" }.joined(separator: ", ")
        return "is signed by \(names) and by no key that is pinned here"
    }

    private static func hint(for error: NoteError) -> String {
        switch error {
        case .noKnownSignature: "sign the bundle with a pinned key, or pin the key that signed it"
        default: "sign the bundle again"
        }
    }
}
