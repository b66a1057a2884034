import SealedFormat
package import AuditTrail
package import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import OpenSSLCrypto
import PolicyPages

/// Who approved a bundle: a C2SP signed note for each role, `compliance.sig`, `security.sig` and `legal.sig`, beside
/// the pages.
///
///     sendgate/policy/v2
///     {"digest":"…64 hex…","effective_from":"2026-11-09","name":"…","role":"compliance","version":4}
///
///     — policy-9f86d081884c7d65 <base64(key id ‖ Ed25519 signature)>
///
/// `compliance` signs the digest of every page. The other roles sign `pages`, an object of the paths of their own pages
/// or parts of pages (`messages/en.yaml#card.blocked`), and the SHA-256 of each one's canonical form, and neither digest nor version: their signatures stay valid as long as
/// those pages do. Which combination of pages is in force, and that its version rises, is `compliance`'s to sign.
///
/// The files are no pages: they are in neither the digest nor the archive. Several keys may sign one statement, one line
/// each.
package enum PolicySignature {
    package static func fileName(of role: ApprovalRole) -> String { "\(role.rawValue).sig" }
    private static let fileNames = ApprovalRole.allCases.map(fileName(of:))
    /// Whether the file at the path is no page but one of these, or what becomes one: while it is written its name goes on
    /// after `.sig`.
    static func isFile(_ path: String) -> Bool {
        fileNames.contains { path == $0 || path.hasPrefix("\($0).") }
    }
    /// As much as a note may be: some thousand mandatory types.
    package static let byteCountMax = SignedNote.byteCountMax
    static let firstLine = "sendgate/policy/v2\n"

    /// What is signed.
    package struct Statement: Hashable, Sendable {
        package var role: ApprovalRole
        private var members: JSONObject
        /// Of the pages the role signs one by one; `nil` for the whole bundle.
        fileprivate var pages: [String: String]?

        package init(_ role: ApprovalRole, of bundle: PolicyBundle) {
            self.role = role
            members = ["name": .string(bundle.name), "role": .string(role.rawValue)]
            guard let parts = bundle.parts(signedAs: role) else {
                members["digest"] = .string(bundle.reviewedDigest.text)
                members["effective_from"] = .string("\(bundle.effectiveFrom)")
                members["version"] = .integer(Int64(bundle.version))
                return
            }
            let pages = parts.mapValues { Hexadecimal.encode(SHA256.digest(CanonicalJSON.write($0)).bytes) }
            self.pages = pages
            members["pages"] = .object(JSONObject(pages.map { ($0.key, .string($0.value)) }))
        }

        /// The note's text, with its final newline. One statement has one spelling, so that comparing bytes is
        /// comparing statements.
        package var text: [UInt8] {
            Array(firstLine.utf8) + CanonicalJSON.write(members) + [UInt8(ascii: "\n")]
        }

        /// The pages that a signed text has otherwise, or that only one of the two has.
        fileprivate func changed(since signed: [UInt8]) -> [String] {
            guard let pages, signed.starts(with: firstLine.utf8), signed.last == UInt8(ascii: "\n"),
                let object = try? CanonicalJSON.read(
                    Array(signed.dropFirst(firstLine.utf8.count).dropLast()), limits: .document),
                let before = object["pages"]?.objectValue
            else { return [] }
            let old = Dictionary(before.map { ($0.key, $0.value.stringValue ?? "") }) { $1 }
            return Set(old.keys).union(pages.keys).filter { old[$0] != pages[$0] }.sorted()
        }
    }

    /// What lies beside a bundle for one role. No key is asked: for showing, never for deciding.
    package enum Claim: Hashable, Sendable {
        case unsigned
        /// Names of the keys that signed these very pages.
        case signed(keys: [String])
        /// What was signed is not what is there.
        case otherContents
    }

    /// Checks that each role's part of a bundle is signed by one of the keys pinned for the role.
    ///
    /// - Parameters:
    ///   - folder: The bundle's.
    ///   - keys: Of each role; a role without keys can approve nothing.
    /// - Returns: The signatures that count, in the order of roles.
    /// - Throws: What is wrong with the signatures of every role, as problems of their files.
    package static func verify(
        _ bundle: PolicyBundle, in folder: String, by keys: [ApprovalRole: [NoteVerifierKey]]
    ) throws(PolicyDiagnostics) -> [Approval] {
        var approvals: [Approval] = []
        var diagnostics: [PolicyDiagnostic] = []
        for role in ApprovalRole.allCases {
            do throws(PolicyDiagnostics) {
                approvals += try verify(
                    Statement(role, of: bundle), of: bundle, in: folder, by: keys[role] ?? [])
            } catch {
                diagnostics += error.diagnostics
            }
        }
        guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
        return approvals
    }

    private static func verify(
        _ statement: Statement, of bundle: PolicyBundle, in folder: String, by keys: [NoteVerifierKey]
    ) throws(PolicyDiagnostics) -> [Approval] {
        let role = statement.role
        guard let note = try read(role, in: folder) else {
            let what = bundle.isStarter ? "the starter bundle" : "the bundle"
            throw refusal(
                role,
                "is missing: \(what) is not signed as `\(role.rawValue)`, and unsigned ones are for `serve --dev`",
                hint:
                    "review it and sign it with `sendgate policy sign \(folder) --role \(role.rawValue) --key FILE`"
            )
        }
        let signers: [NoteVerifierKey]
        do throws(NoteError) {
            signers = try note.attestations(by: keys).map(\.key)
        } catch {
            throw refusal(role, describe(error, of: note, role), hint: hint(for: error, role))
        }
        // Only now do its words count for anything.
        guard note.text == statement.text else {
            let pages = statement.changed(since: note.text).prefix(8).map { "`\($0)`" }.joined(
                separator: ", ")
            throw refusal(
                role,
                pages.isEmpty
                    ? "signs other contents than the folder has, whose digest is `\(bundle.reviewedDigest)`"
                    : "signs other contents than the folder has: \(pages) changed",
                hint: "restore what was signed, or review what is there and sign it as `\(role.rawValue)`")
        }
        return signers.map { key in
            let signature = note.signatures.first {
                $0.keyID == key.keyID && $0.name == key.name
                    && key.publicKey.isValid(signature: $0.bytes, for: note.text)
            }
            return Approval(role: role, key: key.name, signature: signature?.bytes ?? [])
        }
    }

    /// Tells what lies beside a bundle, for each role.
    package static func claims(
        on bundle: PolicyBundle, in folder: String
    ) throws(PolicyDiagnostics) -> [(role: ApprovalRole, claim: Claim)] {
        var claims: [(role: ApprovalRole, claim: Claim)] = []
        for role in ApprovalRole.allCases {
            guard let note = try read(role, in: folder) else {
                claims.append((role, .unsigned))
                continue
            }
            let isSame = note.text == Statement(role, of: bundle).text
            claims.append((role, isSame ? .signed(keys: note.signatures.map(\.name)) : .otherContents))
        }
        return claims
    }

    /// - Returns: `nil` when there is no signature as the role.
    private static func read(
        _ role: ApprovalRole, in folder: String
    ) throws(PolicyDiagnostics) -> SignedNote? {
        let name = fileName(of: role)
        let bytes: [UInt8]
        do throws(FolderError) {
            let folder = try BundleFolder(at: folder)
            guard
                try folder.entries(of: "", countMax: PolicyFileLimits.fileCountMax)
                    .contains(.file(path: name))
            else { return nil }
            bytes = try folder.contents(of: name, byteCountMax: byteCountMax)
        } catch {
            throw refusal(
                role, "cannot be read: \(error.reason)", hint: "check that the gateway's user may read it")
        }
        guard bytes.count <= byteCountMax else {
            throw refusal(role, "is longer than \(byteCountMax) bytes", hint: "sign the bundle again")
        }
        do throws(NoteError) {
            return try SignedNote(parsing: bytes)
        } catch {
            throw refusal(role, error.message, hint: "sign the bundle again")
        }
    }

    /// A role's file with one more signature, beside those of the same contents that are there. A signature of other
    /// contents goes.
    ///
    /// - Returns: What ``fileName(of:)`` is to have in the folder.
    package static func signed(
        _ role: ApprovalRole, of bundle: PolicyBundle, in folder: String, by signer: NoteSigner
    ) throws -> [UInt8] {
        let statement = Statement(role, of: bundle)
        let key = signer.verifierKey
        var signatures: [NoteSignature] = []
        if let note = try? read(role, in: folder), note.text == statement.text {
            signatures = note.signatures.filter { $0.name != key.name || $0.keyID != key.keyID }
        }
        signatures.append(try signer.sign(statement.text))
        let bytes = SignedNote(text: statement.text, signatures: signatures).bytes
        guard bytes.count <= byteCountMax, signatures.count <= SignedNote.signatureCountMax else {
            throw refusal(
                role, "would be \(bytes.count) bytes with \(signatures.count) signatures",
                hint: "at most \(byteCountMax) bytes and \(SignedNote.signatureCountMax) signatures are read")
        }
        return bytes
    }

    // MARK: Words

    private static func refusal(_ role: ApprovalRole, _ message: String, hint: String) -> PolicyDiagnostics {
        PolicyDiagnostics([PolicyDiagnostic(file: fileName(of: role), message: message, hint: hint)])
    }

    private static func describe(_ error: NoteError, of note: SignedNote, _ role: ApprovalRole) -> String {
        guard error == .noKnownSignature else { return error.message }
        let names = note.signatures.map { "`\($0.name)`" }.joined(separator: ", ")
        return "is signed by \(names) and by no key that is pinned here for `\(role.rawValue)`"
    }

    private static func hint(for error: NoteError, _ role: ApprovalRole) -> String {
        switch error {
        case .noKnownSignature:
            "sign with a key pinned for `\(role.rawValue)`, or pin the key that signed under `policy_signing`"
        default: "sign the bundle again"
        }
    }
}
