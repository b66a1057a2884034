import CommandTerminal
import GateRecords
import SealedFormat
import ArgumentParser
import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import SendPlanning
import TrailDirectory

/// `sendgate audit …`: for those who must not have to trust the operator. Works on a copy of the trail's folder.
struct Audit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Verifies, replays and shows a copied trail.",
        subcommands: [AuditVerify.self, AuditReplay.self, AuditState.self, AuditShow.self])
}

/// `sendgate audit verify`: rehashes everything.
struct AuditVerify: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Rehashes a trail and prints what is established.",
        usage: """
            sendgate audit verify DIR --authority KEY|FILE [--keyset FILE] [--since-keyset FILE] …
            sendgate audit verify DIR --key KEY|FILE [--since CHECKPOINT] [--no-schema]
            """,
        discussion: """
            With --authority the trail's keys are those of the keyset beside it, or of --keyset, which the offline authority \
            signed; --since-keyset names one that was seen before, whose version may not be above it. With --key they are \
            pinned one by one; witnesses' keys are given with --key in both cases.

            Ends with 3 at the first damage, naming the file and the entry, and with 1 where a newer sendgate wrote entries. What the signed tree does not hold is looked at \
            too: tiles beyond the checkpoint, and the archived policy of every entry.
            """)

    static let example = "sendgate audit verify /tmp/gate/trail --key /tmp/gate/trail/trail.pub"

    @Argument(help: ArgumentHelp("The trail's folder.", valueName: "dir")) var folder: String
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var keyset: AuthorityOptions
    @Option(help: ArgumentHelp("A checkpoint kept where the operator cannot reach it.", valueName: "file"))
    var since: String?
    @Flag(help: "Do not hold entries to the table of their kind.") var noSchema = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if trusted.key.isEmpty, keyset.authority.isEmpty {
            throw ValidationError(
                "`--authority` or `--key` is missing: a trail cannot vouch for itself. Its key is in `trail.pub`, best had by another way"
            )
        }
    }

    func run() async throws {
        let trail = try CopiedTrail(at: folder)
        let keyset = try keyset.verified(beside: trail)
        let options = try AuditTrust(trail, trusted, vouchedFor: keyset?.keyset)
        let external = try since.map {
            try CommandInput.bytes(of: $0, byteCountMax: SignedNote.byteCountMax)
        }
        let verifier = TrailVerifier(
            trail.reader, trusting: options.trust, examining: noSchema ? .envelope : .schema(.version1),
            since: external, version: BuildVersion(Sendgate.version))
        var progress = Progress("verifying")
        var policies: [String: UInt64] = [:]
        var approvals = keyset.map { ApprovalAudit($0.keyset) }
        var adopted: String?
        let report = try auditing {
            try verifier.verify(
                visit: { entry in
                    guard let read = entry.entry else { return }
                    try approvals?.look(at: read, policies: trail.policy)
                    if read.kind == .keyset, read.members["event"] == "adopt" {
                        adopted = read.members["digest"]?.stringValue
                    }
                    guard let digest = read.members["policy"]?.stringValue else { return }
                    if policies[digest] == nil { policies[digest] = entry.index }
                }, progress: { progress.show($0, of: $1) })
        }
        progress.end()
        var differences = [report.damage?.message].compactMap(\.self)
        if report.damage == nil, let size = report.checkpoint?.checkpoint.size {
            let remains = TrailRemains(
                trail: trail, size: size, keys: options.trust.keys, keyset: adopted, policies: policies
            ) {
                let note: [UInt8]? = try trail.reader.read(.checkpoint)
                return try TrustedCheckpoint(opening: note ?? [], trusting: options.trust).checkpoint.size
            }
            differences = try auditing { try remains.differences() }
            differences += approvals?.differences ?? []
        }
        if output.json {
            Terminal.print(Self.json(report, differences, keyset))
        } else {
            if let keyset {
                Terminal.print(
                    "keys of keyset version \(keyset.keyset.version), signed by \(keyset.signers.joined(separator: ", "))"
                )
            }
            show(report)
            for difference in differences {
                Terminal.error(difference, hint: hint(for: report))
            }
            if let newer = report.newerEntry { Terminal.error(newer.message, hint: NewerEntry.hint) }
        }
        if !differences.isEmpty { throw ExitStatus.foundDifference }
        // Nothing was found wrong, and not all was looked at.
        if report.newerEntry != nil { throw ExitStatus.failed }
    }

    private func show(_ report: TrailReport) {
        for fact in report.facts { Terminal.print(fact.message) }
        if let first = report.firstTime, let last = report.lastTime {
            Terminal.print("recorded from \(first.rfc3339) to \(last.rfc3339)")
        }
    }

    private func hint(for report: TrailReport) -> String {
        guard let damage = report.damage else {
            return "what the checkpoint signs is whole; compare this file with another copy"
        }
        if case .schema = damage, let later = report.laterVersion {
            return
                "the `start` entry before it says that sendgate \(later) wrote it, and this is \(Sendgate.version): verify with that version first"
        }
        return damage.hint ?? damage.firstEntry.map { "entries before \($0) are what was signed" }
            ?? "compare with a copy that was made earlier"
    }

    private static func json(
        _ report: TrailReport, _ differences: [String], _ keyset: KeysetPage?
    ) -> JSONObject {
        var object: JSONObject = [
            "established": .array(report.facts.map { .string($0.message) }),
            "entries": .integer(Int64(report.entryCount)), "bytes": .integer(Int64(report.entryByteCount)),
            "damaged": .boolean(!differences.isEmpty), "differences": .array(differences.map { .string($0) }),
        ]
        if let checkpoint = report.checkpoint?.checkpoint {
            object["origin"] = .string(checkpoint.origin)
            object["size"] = .integer(Int64(checkpoint.size))
            object["root"] = .string(Hexadecimal.encode(checkpoint.root.bytes))
        }
        if let keyset { object["keyset_version"] = .integer(Int64(keyset.keyset.version)) }
        if let entry = report.damage?.firstEntry { object["first_entry"] = .integer(Int64(entry)) }
        for (name, value) in report.prunedMembers { object[name] = value }
        if let newer = report.newerEntry { object["newer_entry"] = .integer(Int64(newer.index)) }
        return object
    }
}

/// `sendgate audit replay`: decides every entry again.
struct AuditReplay: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract:
            "Decides every entry again on the recorded facts.",
        usage: "sendgate audit replay DIR [--from-genesis | --with BUNDLE] [--key FILE|KEY]",
        discussion: """
            With the policy of its day, or with another one. Ends with 3 when a decision comes out otherwise, or \
            cannot be made because its policy is not archived. From genesis, it also works out from the entries before \
            it what was known of each recipient, and ends with 3 when a decision claims something else, or when an entry records \
            an act that the gate would have refused: by a caller without the grant, to a notice that nobody was shown, of the \
            future. In every mode a decision's policy has to be the one in force. The first \
            \(ReplaySummary.toldCountMax) entries that come out otherwise are shown and the others counted; `--json` \
            prints every one.
            """)

    static let example = "sendgate audit replay /tmp/gate/trail --with Policies"

    @Argument(help: ArgumentHelp("The trail's folder.", valueName: "dir")) var folder: String
    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("What would this bundle have done?", valueName: "bundle"))
    var bundle: String?
    @Flag(help: "Derive the facts of each decision from the entries before it, too.") var fromGenesis = false
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard fromGenesis, bundle != nil else { return }
        throw ValidationError(
            "`--from-genesis` asks what was known then, `--with` what another bundle would have done: ask one at a time"
        )
    }

    func run() async throws {
        let trail = try CopiedTrail(at: folder)
        let options = try AuditTrust(trail, trusted)
        options.warnAboutOwnWord()
        var fold = EvidenceFold()
        let other = try bundle.map { try Self.otherPolicy($0, for: trail) }
        var summary = ReplaySummary(
            isHypothetical: other != nil, printedCountMax: output.json ? nil : ReplaySummary.toldCountMax)
        let policy = trail.policiesReadOnce()
        var progress = Progress("replaying")
        let verifier = TrailVerifier(trail.reader, trusting: options.trust, examining: .envelope)
        let report = try auditing {
            try verifier.verify(
                visit: { entry in
                    if let read = entry.entry { try EntrySchema.version1.requireKind(of: read) }
                    guard entry.standing != .kept else {
                        if fromGenesis { _ = try fold.followed(by: entry, policies: policy) }
                        return
                    }
                    let bytes = Array(entry.bytes)
                    var result =
                        if let other {
                            try replay(bytes, policies: policy, with: other)
                        } else {
                            try replay(bytes, policies: policy)
                        }
                    var lines: [ReplaySummary.Line?] = []
                    if fromGenesis {
                        let found = try fold.followed(by: entry, policies: policy)
                        result.add(found.differences)
                        lines = [found.objection.flatMap { summary.add($0, of: entry.index) }]
                    }
                    for line in lines + [summary.add(result, of: entry.index)] {
                        guard let line else { continue }
                        progress.end()
                        output.json ? Terminal.print(line.json) : line.lines.forEach(Terminal.print)
                    }
                }, progress: { progress.show($0, of: $1) })
        }
        progress.end()
        if output.json {
            Terminal.print(JSONObject(Array(summary.json) + Array(report.prunedMembers)))
        } else {
            summary.lines.forEach(Terminal.print)
            if let remark = report.prunedRemark { Terminal.print(remark) }
        }
        if let damage = report.damage {
            Terminal.error(
                damage.message, hint: damage.hint ?? "run `sendgate audit verify` on this copy first")
            throw ExitStatus.foundDifference
        }
        if !summary.isClean { throw ExitStatus.foundDifference }
    }
}

extension ReplayResult {
    /// What is found besides; nothing can be added to what could not be read.
    fileprivate mutating func add(_ more: [ReplayDifference]) {
        guard !more.isEmpty else { return }
        switch self {
        case .same: self = .differs(more)
        case .differs(let differences): self = .differs(differences + more)
        case .notReplayable: break
        }
    }
}

extension AuditReplay {
    /// The bundle that is asked what it would have done.
    ///
    /// A trail of a gateway in development speaks of a caller no bundle knows. It is given to the other one too:
    /// the question is about rules, not about who tried them out.
    fileprivate static func otherPolicy(_ folder: String, for trail: CopiedTrail) throws -> CompiledPolicy {
        let digests = try trail.reader.policyDigests()
        let caller = try digests.lazy.compactMap { try trail.policy($0)?.bundle.developmentCaller }.first
        return CompiledPolicy(try PolicyLoading.bundle(at: folder, addingDevelopmentCaller: caller))
    }
}

/// `sendgate audit show`: one entry, proved to be in the signed tree.
struct AuditShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows an entry, or all about a send, with its proof.",
        usage: "sendgate audit show DIR INDEX|SEND_ID [--key FILE|KEY] [--json]",
        discussion: """
            By index it reads one entry and its proof, and of an entry that names a policy everything before it, which says \
            whether that policy was in force; by send id it goes through the whole trail.
            """)

    static let example = "sendgate audit show /tmp/gate/trail 0"

    @Argument(help: ArgumentHelp("The trail's folder.", valueName: "dir")) var folder: String
    @Argument(help: ArgumentHelp("An entry's index, or a `send_id`.", valueName: "index|send-id")) var what:
        String
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var language: LanguageOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard UInt64(what) != nil || SendID(uuidText: what) != nil else {
            throw ValidationError("`\(what)` is neither an index nor a send id")
        }
    }

    func run() async throws {
        let trail = try CopiedTrail(at: folder)
        let options = try AuditTrust(trail, trusted)
        options.warnAboutOwnWord()
        do {
            try auditing {
                if let index = UInt64(what) {
                    try showEntry(index, of: trail, options.trust)
                } else {
                    try showSend(what, of: trail, options.trust)
                }
            }
        } catch let damage as TrailDamage {
            throw CommandFailure(
                damage.message, hint: damage.hint ?? "run `sendgate audit verify` on this copy",
                status: .foundDifference)
        } catch let error as CheckpointError {
            throw CommandFailure(
                error.message, hint: "is this the trail's own key?", status: .foundDifference)
        }
    }

    private func showEntry(_ index: UInt64, of copy: CopiedTrail, _ trust: TrailTrust) throws {
        let trail = copy.reader
        guard let note: [UInt8] = try trail.read(.checkpoint) else { throw TrailDamage.missing(.checkpoint) }
        let checkpoint = try TrustedCheckpoint(opening: note, trusting: trust).checkpoint
        guard index < checkpoint.size else {
            throw CommandFailure(
                "the trail has \(checkpoint.size) entries",
                hint: "indices count from 0 to \(Int64(checkpoint.size) - 1)")
        }
        var path = TileLayout.bundle(holding: index, size: checkpoint.size)
        var found: [UInt8]? = try trail.read(path)
        if found == nil, path != path.full {
            // A partial bundle is cleared away once its full one is there.
            path = path.full
            found = try trail.read(path)
        }
        if found == nil, let size = try trail.snapshotHead()?.size, index < size {
            throw TrailError.pruned(index: index, below: size)
        }
        guard let bundle = found else { throw TrailDamage.missing(path) }
        guard let ranges = EntryBundle.ranges(in: bundle, count: path.width), ranges.count > Int(index & 255)
        else {
            throw TrailDamage.entry(index: index, in: path)
        }
        let bytes = Array(bundle[ranges[Int(index & 255)]])
        var hashes = TileHashes(trail, size: checkpoint.size)
        let proof = try hashes.inclusionProof(of: index)
        guard proof.proves(TreeHash.leaf(bytes), under: checkpoint.root) else {
            throw TrailDamage.entry(index: index, in: path)
        }
        try show(bytes, of: copy)
        if !output.json {
            Terminal.note(
                "proved: \(proof.hashes.count) hashes lead to the signed root of \(checkpoint.size) entries")
        }
        guard try TrailEntry(reading: bytes).members["policy"] != nil else { return }
        try requireInForce(at: index, of: copy, trust)
    }

    /// What puts a bundle in force may stand anywhere before the entry, and that nothing does in between is proved by all of it.
    private func requireInForce(at index: UInt64, of copy: CopiedTrail, _ trust: TrailTrust) throws {
        struct IsFound: Error {}
        var progress = Progress("looking for the policy in force")
        defer { progress.end() }
        do {
            let report = try TrailVerifier(copy.reader, trusting: trust, examining: .envelope).verify(
                visit: { if $0.index == index { throw IsFound() } },
                progress: { progress.show($0, of: $1) })
            if let damage = report.damage { throw damage }
        } catch is IsFound {}
    }

    private func showSend(_ send: String, of copy: CopiedTrail, _ trust: TrailTrust) throws {
        let trail = copy.reader
        let needle = Array("\"send_id\":\"\(send)\"".utf8)
        var count = 0
        var progress = Progress("searching")
        let report = try TrailVerifier(trail, trusting: trust, examining: .envelope).verify(
            visit: { entry in
                guard entry.bytes.containsSequence(needle) else { return }
                progress.end()
                count += 1
                try show(Array(entry.bytes), of: copy)
            }, progress: { progress.show($0, of: $1) })
        progress.end()
        if let damage = report.damage { throw damage }
        guard count > 0 else {
            throw CommandFailure(
                "no entry speaks of the send `\(send)`",
                hint: report.snapshot.map {
                    "the entries before \($0.size) were pruned; it may have been among them"
                } ?? "a `send_id` is what the gateway answered, not the caller's own id")
        }
    }

    /// In the words of the bundle that decided, where another language than English is asked for.
    private func words(for entry: TrailEntry, of trail: CopiedTrail) throws -> Explanation {
        guard let locale = language.language, let digest = entry.members["policy"]?.stringValue,
            let policy = try trail.policy(PolicyDigest(digest))
        else { return .english }
        return Explanation(policy.sentences(in: locale))
    }

    private func show(_ bytes: [UInt8], of trail: CopiedTrail) throws {
        if output.json { return Terminal.print(bytes + [UInt8(ascii: "\n")]) }
        let entry = try TrailEntry(reading: bytes)
        Terminal.print("entry \(entry.index), \(entry.kind), \(entry.time.rfc3339)")
        if let reason = entry.members["reason"]?.stringValue.flatMap(Reason.init(rawValue:)) {
            let detail = entry.members["detail"]?.stringValue.flatMap(Detail.init(rawValue:))
            let words = try words(for: entry, of: trail)
            Terminal.print(Terminal.printable("  \(words.sentence(reason, detail))"))
        }
        for line in IndentedJSON.lines(.object(entry.members)) {
            Terminal.print(Terminal.printable("  \(line)"))
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func containsSequence(_ needle: [UInt8]) -> Bool {
        withUnsafeBytes { bytes in
            needle.withUnsafeBytes { needle in
                guard bytes.count >= needle.count else { return false }
                for start in 0...(bytes.count - needle.count)
                where bytes[start] == needle[0] && bytes[start + 1] == needle[1] {
                    if bytes[start..<(start + needle.count)].elementsEqual(needle) { return true }
                }
                return false
            }
        }
    }
}
