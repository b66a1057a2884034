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
        let (store, configured) = try state.openToRead()
        defer { store.close() }
        let copy = try CopiedTrail(at: trail ?? configured)
        let options = try AuditTrust(copy, trusted)
        options.warnAboutOwnWord()
        let found = try differences(copy, options, store)
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
        _ trail: CopiedTrail, _ options: AuditTrust, _ store: any GateStore
    ) throws -> [StateAudit.Difference] {
        let shareCount = try StateComparison.shareCount(in: store)
        return try (0..<shareCount).flatMap { index in
            let share = StateFold.Share(index: index, count: shareCount)
            var progress = Progress(shareCount == 1 ? "comparing" : "comparing \(index + 1) of \(shareCount)")
            defer { progress.end() }
            var comparison = StateComparison(
                store: store, trail: trail.reader, trust: options.trust, clock: SystemClock())
            comparison.progress = {
                if case .comparing(let done, let total) = $0 {
                    progress.show(UInt64(done), of: UInt64(total))
                }
            }
            var found: [StateAudit.Difference] = []
            try auditing { try comparison.compare(share) { found += $0 } }
            return found
        }
    }
}
