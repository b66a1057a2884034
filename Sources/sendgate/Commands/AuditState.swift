import ArgumentParser
import AuditTrail
import CanonicalJSON
import CommandTerminal
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore

/// `sendgate audit state`: whether the databases say what happened.
struct AuditState: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "state", abstract: "Holds the databases against the trail.",
        usage: """
            sendgate audit state --config FILE [--trail DIR] [--key FILE|KEY] [--json]
            sendgate audit state --dev DIR [--trail DIR] [--key FILE|KEY] [--json]
            """,
        discussion: """
            Works out from all entries what is known of each recipient, and compares what is stored: every person and their \
            mapping, consents, preferences and keys, every send id that is still kept, and which bundle was last in force. Ends with 3 \
            and names what differs: an old page or file that was put back, a withdrawal that was deleted, a consent that \
            nobody gave. Stop the gateway first; nothing is changed.
            """)

    static let example = "sendgate audit state --config /etc/sendgate/sendgate.yaml"

    @OptionGroup var state: StateOptions
    @Option(help: ArgumentHelp("The trail's folder, where it is not the configured one.", valueName: "dir"))
    var trail: String?
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let (store, configured, limits) = try state.openToRead()
        defer { store.close() }
        let copy = try CopiedTrail(at: trail ?? configured)
        let options = try AuditTrust(copy, trusted)
        options.warnAboutOwnWord()
        let found = try differences(copy, options, store, limits)
        if output.json {
            Terminal.print([
                "differences": .array(
                    found.map {
                        [
                            "subject": $0.subject.map { .string($0.hexadecimal) } ?? .null,
                            "what": .string($0.what),
                        ]
                    })
            ])
        } else {
            for difference in found { Terminal.print(difference.description) }
            if found.isEmpty { Terminal.note("what is stored is what the trail tells") }
        }
        if !found.isEmpty { throw ExitStatus.foundDifference }
    }

    private func differences(
        _ trail: CopiedTrail, _ options: AuditTrust, _ store: any GateStore, _ limits: EngineLimits
    ) throws -> [StateAudit.Difference] {
        var fold = EvidenceFold()
        let policies = trail.policiesReadOnce()
        func apply(_ bytes: [UInt8], _ index: UInt64) throws {
            do {
                try fold.apply(bytes, policies: policies)
            } catch let error as CommandFailure {
                throw error
            } catch {
                throw CommandFailure(
                    "entry \(index) cannot be applied: \(error)",
                    hint: "run `sendgate audit verify` on this trail", status: .foundDifference)
            }
        }
        var progress = Progress("reading entries")
        var next: UInt64 = 0
        let verifier = TrailVerifier(trail.reader, trusting: options.trust, examining: .envelope)
        let report = try auditing {
            try verifier.verify(
                visit: { entry in
                    try apply(Array(entry.bytes), entry.index)
                    next = entry.index + 1
                }, progress: { progress.show($0, of: $1) })
        }
        progress.end()
        if let damage = report.damage {
            throw CommandFailure(
                damage.message, hint: damage.hint ?? "run `sendgate audit verify` on this trail first",
                status: .foundDifference)
        }
        return try store.read { reading in
            let (published, count) = (try reading.publishedSize(), try reading.entryCount())
            guard published <= next else {
                throw CommandFailure(
                    "the trail has \(next) entries, and the databases published \(published)",
                    hint: "name the newest trail there is with `--trail`", status: .foundDifference)
            }
            guard next <= count else {
                return [
                    StateAudit.Difference(
                        what:
                            "the databases end at entry \(count), and the trail has \(next): an old copy was put back"
                    )
                ]
            }
            for entry in try reading.entries(from: next, limit: Int(count - next)) {
                try apply(entry.bytes, entry.index)
            }
            let keptSince = SystemClock().now().advanced(byMilliseconds: -limits.retentionMilliseconds)
            var progress = Progress("comparing people")
            defer { progress.end() }
            return try StateAudit(fold, reading, keptSince: keptSince).differences {
                progress.show(UInt64($0), of: UInt64(max(fold.people.count, $0)))
            }
        }
    }
}
