import ArgumentParser
import AuditTrail
import CanonicalJSON
import CommandTerminal
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import SealedFormat

/// `sendgate clock …`: what an operator decides about the time.
struct ClockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clock", abstract: "Accepts a clock that had stepped.", subcommands: [ClockAccept.self])
}

/// `sendgate clock accept`: goes on from the machine's clock as it is, with an entry.
struct ClockAccept: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Goes on from the machine's clock as it is, with an entry.",
        usage: """
            sendgate clock accept --config FILE [--json]
            sendgate clock accept --dev DIR [--json]
            """,
        discussion: """
            For a gateway that refuses everything because its newest entry lies in the future, or because the clock \
            has jumped. Set the clock right first, and stop the gateway. The entry `clock` says from which time to \
            which one the trail steps, and which uid asked. Writes nothing when nothing is wrong.
            """)

    static let example = "sendgate clock accept --config /etc/sendgate/sendgate.yaml"

    @OptionGroup var state: StateOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let accepted = try accept()
        switch accepted {
        case .unnecessary:
            if output.json { return Terminal.print(["accepted": false]) }
            Terminal.note("the clock and the newest entry agree; nothing was written")
        case .recorded(let index, let from, let to):
            if output.json {
                return Terminal.print([
                    "accepted": true, "index": .integer(Int64(index)), "from": .string(from.rfc3339),
                    "to": .string(to.rfc3339),
                ])
            }
            Terminal.print("entry \(index): time goes on from \(from.rfc3339) at \(to.rfc3339)")
        }
    }

    private func accept() throws -> ClockGuard.Acceptance {
        let (store, trail, limits) = try state.open()
        defer { store.close() }
        try requireNewest(store, beside: trail)
        return try ClockGuard(limits: limits).accept(SystemClock().reading(), by: getuid(), in: store)
    }

    /// The entry `clock` in an old copy of the databases would stand where one of the trail belongs, and no restore could
    /// go on from there.
    private func requireNewest(_ store: SQLiteStore, beside trail: String) throws {
        guard FileManager.default.fileExists(atPath: "\(trail)/tile") else { return }
        let note: [UInt8] = try auditing { try CopiedTrail(at: trail).reader.read(.checkpoint) } ?? []
        let published: Checkpoint
        do {
            published = try Checkpoint(parsing: SignedNote(parsing: note).text)
        } catch {
            throw CommandFailure(
                "the checkpoint of the trail `\(trail)` cannot be read: \(error)",
                hint: "nothing was written; compare with another copy of the trail", status: .foundDifference)
        }
        let count = try store.read { try $0.entryCount() }
        guard published.size <= count else {
            throw CommandFailure(
                "the databases know \(count) entries and the trail has \(published.size): an old copy of the databases was put in place",
                hint: "bring the missing entries back with `sendgate restore`, and then accept the clock")
        }
    }
}
