import ArgumentParser
import AuditTrail
import CommandTerminal
import CompliancePolicy
import Foundation
import GateRecords
import GateVocabulary
import OpenSSLCrypto
import PolicyFiles
import SealedFormat
import TrailDirectory

/// A trail's folder as an auditor has it: tiles, checkpoint, `trail.pub` and the archive of policies, copied away from
/// the gateway. Reads only; nothing of ours need run.
struct CopiedTrail {
    let reader: TrailDirectoryReader
    let path: String

    /// - Throws: When there is no checkpoint: beside tiles it was taken away, else it is some other folder.
    init(at path: String) throws {
        self.path = path
        let reader = try TrailDirectoryReader(openingAt: path)
        self.reader = reader
        guard try auditing({ try reader.byteCount(of: .checkpoint) }) == nil else { return }
        let message = "`\(path)` has no `checkpoint`"
        guard FileManager.default.fileExists(atPath: "\(path)/tile") else {
            throw CommandFailure(message, hint: "name the trail's folder itself, e.g. `/tmp/gate/trail`")
        }
        throw CommandFailure(
            message, hint: "its tiles are there; compare with a copy that was made earlier",
            status: .foundDifference)
    }

    /// The archived bundle that decided under a digest; `nil` when there is none.
    func policy(_ digest: PolicyDigest) throws -> CompiledPolicy? {
        guard let bytes = try auditing({ try reader.policy(digest) }) else { return nil }
        do throws(PolicyArchiveError) {
            return CompiledPolicy(try PolicyArchive.read(bytes, filedUnder: digest))
        } catch {
            throw CommandFailure(
                "\(error)", hint: "copy `\(path)/policies` again from the gateway", status: .foundDifference)
        }
    }

    /// ``policy(_:)``, which reads and compiles each bundle once.
    func policiesReadOnce() -> (PolicyDigest) throws -> CompiledPolicy? {
        var archive: [PolicyDigest: CompiledPolicy?] = [:]
        return { digest in
            if let known = archive[digest] { return known }
            let found = try policy(digest)
            archive[digest] = .some(found)
            return found
        }
    }
}

/// Looks at a copied trail. Something in the folder that no trail has there is a difference; a folder that cannot be
/// read is a failure.
func auditing<Result>(_ body: () throws -> Result) throws -> Result {
    do {
        return try body()
    } catch let error as TrailError where error.isDifference {
        throw CommandFailure(
            error.message, hint: "compare with another copy of the trail", status: .foundDifference)
    } catch let error as UnknownEntryKind {
        throw CommandFailure("\(error)", hint: UnknownEntryKind.hint)
    } catch let error as NewerEntry {
        throw CommandFailure(error.message, hint: NewerEntry.hint)
    }
}

/// Whose signatures are believed, and the name of what they signed.
struct TrustOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A verifier key, or a file of them. Repeatable.", valueName: "file|key"))
    var key: [String] = []
    @Option(help: ArgumentHelp("The trail's name, when it is not the key's.", valueName: "name"))
    var origin: String?
}

/// Whom the auditor believes about one trail.
struct AuditTrust {
    let trust: TrailTrust
    /// Whether the keys came from the folder under audit itself, and are as good as the way it came.
    private let isOwnWord: Bool

    /// - Parameters:
    ///   - options: Without a key, the folder's own `trail.pub`; without a name, that of the keyset or of the first key.
    ///   - keyset: What an authority signed: its trail keys are believed beside those of the options.
    init(_ trail: CopiedTrail, _ options: TrustOptions, vouchedFor keyset: Keyset? = nil) throws {
        let (texts, origin) = (options.key, options.origin)
        isOwnWord = texts.isEmpty && keyset == nil
        let vouched = try keyset?.believed(.trail).map { key in
            guard let publicKey = try? Ed25519PublicKey(rawBytes: key.publicKey),
                let verifier = NoteVerifierKey(name: keyset?.gateway ?? "", publicKey: publicKey)
            else { throw CommandFailure("the trail key `\(key.id)` of the keyset is not usable") }
            return verifier
        }
        let keys =
            isOwnWord ? try trail.reader.verifierKeys() : try (vouched ?? []) + texts.flatMap(Self.keys)
        guard let own = keys.first(where: { $0.algorithm == .ed25519 }) else {
            throw CommandFailure(
                isOwnWord
                    ? "`\(trail.path)/\(VerifierKeyFile.name)` holds no key"
                    : "no key of the trail itself is given",
                hint: "give the trail's own key with --key; witnesses' keys alone cannot vouch for a trail")
        }
        if origin == nil { try Self.requireName(own.name, of: trail) }
        let named = TrailTrust(origin: origin ?? own.name, keys: keys)
        // After a restore the trail has another name and the same keys; the auditor who pinned them says which name.
        let isRestored = origin.map {
            $0 != own.name && TrailName.isName($0, of: TrailName.gateway(of: own.name))
        }
        trust = isRestored == true ? named.renamed(named.origin) : named
    }

    /// A keyset and keys that were pinned before a restore have the name from before it. The checkpoint's word is not
    /// believed: it is only what an auditor is asked to confirm.
    private static func requireName(_ name: String, of trail: CopiedTrail) throws {
        let note: [UInt8] = try auditing { try trail.reader.read(.checkpoint) } ?? []
        // A checkpoint that cannot be read is damage, which the verification names.
        guard let found = try? Checkpoint(parsing: SignedNote(parsing: note).text).origin, found != name,
            TrailName.isName(found, of: TrailName.gateway(of: name))
        else { return }
        throw CommandFailure(
            "the checkpoint is of the trail `\(found)`, and the keys given are of `\(name)`",
            hint:
                "a trail has another name after `sendgate restore`; when the gateway's operator confirms this one, add `--origin \(found)`",
            status: .foundDifference)
    }

    static func keys(_ text: String) throws -> [NoteVerifierKey] {
        if let key = NoteVerifierKey(parsing: text) { return [key] }
        let bytes = try CommandInput.bytes(of: text, byteCountMax: VerifierKeyFile.byteCountMax)
        do throws(TrailError) {
            return try VerifierKeyFile.keys(in: bytes)
        } catch {
            throw CommandFailure(
                "`\(text)`: \(error.message)",
                hint: "a key reads `name+8 hex digits+base64`, as in the trail's `\(VerifierKeyFile.name)`")
        }
    }

    func warnAboutOwnWord() {
        guard isOwnWord else { return }
        Terminal.warning("no --key is given, so the folder's own `\(VerifierKeyFile.name)` is believed")
    }
}

/// Which offline authority says what a trail's keys are.
struct AuthorityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The authority's verifier key, or a file of them. Repeatable.", valueName: "key|file"))
    var authority: [String] = []
    @Option(help: ArgumentHelp("The signed keyset; the trail's own `keyset` when absent.", valueName: "file"))
    var keyset: String?
    @Option(help: ArgumentHelp("A keyset that was seen before: versions only rise.", valueName: "file"))
    var sinceKeyset: String?

    func validate() throws {
        if authority.isEmpty, keyset != nil || sinceKeyset != nil {
            throw ValidationError(
                "`--keyset` and `--since-keyset` go with `--authority`, which says whom to believe")
        }
    }

    /// - Returns: `nil` when no authority is given.
    /// - Throws: A difference for a keyset that the authority did not sign, that expired, or that is older than one seen.
    func verified(beside trail: CopiedTrail) throws -> KeysetPage? {
        guard !authority.isEmpty else { return nil }
        let page: KeysetPage
        if let keyset {
            page = try KeysetPage(at: keyset)
        } else if let note = try auditing({ try trail.reader.keysetNote() }) {
            page = try KeysetPage(note, named: "\(trail.path)/\(KeysetFile.name)")
        } else {
            throw CommandFailure(
                "`\(trail.path)` has no `\(KeysetFile.name)`",
                hint: "copy it from the gateway, or give another copy with --keyset", status: .foundDifference
            )
        }
        try page.verify(by: authority.flatMap(AuditTrust.keys), at: SystemClock().now())
        if let sinceKeyset,
            let refusal = page.keyset.refusal(toFollow: try KeysetPage(at: sinceKeyset).keyset)
        {
            throw CommandFailure(
                "\(refusal)",
                hint: "somebody shows an old list of keys; ask the gateway for the one in force",
                status: .foundDifference)
        }
        return page
    }
}
