import CanonicalJSON
import CommandTerminal
import Foundation
package import GateVocabulary
import SealedPush
import Synchronization

/// Rotates the keys of a gateway while sealed sends go on, at a rate that it can keep up with.
package struct RotationRun {
    /// Purposes whose keys can be rotated while a gateway runs.
    package static let purposes: [KeyPurpose] = [.origin, .trail, .link, .root, .data]

    let gateway: BenchGateway
    let phones: [BenchPhone]
    let recipientCount: Int
    let connections: Int
    let rate: Double?
    let seconds: Double
    let refusedPercent: Int

    /// A key that is rotated in milliseconds is rotated several times, so that there are sends to be measured.
    private static let rotationCount = 5
    /// Envelopes opened after each load.
    private static let sampleCount = 200
    /// How long a load goes on at most while rows are sealed anew.
    private static let secondsMax = 600.0

    /// One rotation, by `Load.now()`.
    private struct Span {
        var begin: UInt64
        var end: UInt64
    }

    func run(_ purposes: [KeyPurpose]) async throws -> RotationReport {
        var perSecond = rate ?? 0
        if rate == nil {
            let sends = sends("rotate at most")
            let load = Load(
                socket: gateway.socket, connections: connections, isStream: false, arrival: .closed(depth: 1),
                seconds: seconds)
            perSecond = max(1, (try await load.run { sends.request($0) }.perSecond / 2).rounded())
            try await gateway.drained(within: 60)
        }
        let alone = try await load("rotate nothing", perSecond) {
            try await Task.sleep(for: .seconds(seconds))
        }
        var rows: [RotationReport.Row] = []
        for purpose in purposes {
            var progress = Progress("rotating \(purpose.rawValue)")
            defer { progress.end() }
            progress.show(0, of: 1)
            rows.append(try await rotate(purpose, perSecond))
        }
        return RotationReport(
            recipients: recipientCount, offeredPerSecond: perSecond,
            without: .init(alone.measured.answers.map(Self.microseconds)), rows: rows)
    }

    private func rotate(_ purpose: KeyPurpose, _ perSecond: Double) async throws -> RotationReport.Row {
        let offset = try gateway.handedOverByteCount()
        let count = purpose == .data ? 1 : Self.rotationCount
        let pause = Duration.seconds(seconds / Double(count + 1))
        let (measured, done) = try await load("rotate \(purpose.rawValue)", perSecond) {
            var spans: [Span] = []
            var resealed: (rows: Int, perSecond: Int)?
            for _ in 0..<count {
                try await Task.sleep(for: pause)
                let begin = Load.now()
                try await promoteAnother(purpose)
                if purpose == .data { resealed = try await resealing() }
                spans.append(Span(begin: begin, end: Load.now()))
            }
            try await Task.sleep(for: pause)
            return (spans, resealed)
        }
        let (spans, resealed) = done
        let during = measured.answers.filter { answer in
            spans.contains { answer.startedAt <= $0.end && answer.answeredAt >= $0.begin }
        }
        let accepted = measured.countByStatus[202, default: 0]
        let decided = accepted + measured.countByStatus[403, default: 0]
        let all = measured.countByStatus.values.reduce(0, +)
        let envelopes = try gateway.envelopes(after: offset)
        let (opened, unreadable) = try await open(envelopes)
        return RotationReport.Row(
            purpose: purpose, rotationCount: spans.count,
            longestMilliseconds: Int((spans.map { $0.end - $0.begin }.max() ?? 0) / 1_000_000),
            sendCount: all, failedCount: all - decided, acceptedCount: accepted,
            handedOverCount: Set(envelopes.map(\.send)).count, during: .init(during.map(Self.microseconds)),
            openedCount: opened, unreadableCount: unreadable, rowCount: resealed?.rows,
            rowsPerSecond: resealed?.perSecond)
    }

    private static func microseconds(_ answer: Load.TimedAnswer) -> Int {
        Int((answer.answeredAt - answer.startedAt) / 1_000)
    }

    private func sends(_ label: String) -> BenchSends {
        BenchSends(.sealed, people: phones.count, refusedPercent: refusedPercent, label: label)
    }

    /// Runs the load for as long as `body` takes, and until all of it was handed over.
    private func load<Result>(
        _ label: String, _ perSecond: Double, during body: () async throws -> Result
    ) async throws -> (measured: Load.Measurement, result: Result) {
        let load = Load(
            socket: gateway.socket, connections: connections, isStream: false,
            arrival: .open(perSecond: perSecond), seconds: Self.secondsMax, keepsAnswers: true)
        let ending = LoadEnding()
        let sends = sends(label)
        async let sent = load.run({ sends.request($0) }, isOver: { ending.isOver })
        let result: Result
        do {
            result = try await body()
        } catch {
            ending.end()
            _ = try? await sent
            throw error
        }
        ending.end()
        let measured = try await sent
        try await gateway.drained(within: 60)
        return (measured, result)
    }

    // MARK: Keys

    /// Makes a key and promotes it; where that takes a second caller, any of the bundle's that may.
    private func promoteAnother(_ purpose: KeyPurpose) async throws {
        let added = try await gateway.post("/v1/keys", ["purpose": .string(purpose.rawValue)])
        guard added.status == 200, let key = added.object["key"]?.stringValue else {
            throw CommandFailure("the gateway answered \(added.status) to making a \(purpose.rawValue) key")
        }
        var promoted = try await gateway.post("/v1/keys/\(key)/promote", [:])
        if promoted.status == 202 {
            for socket in try gateway.callerSockets where promoted.status != 200 {
                promoted = try await gateway.post("/v1/keys/\(key)/promote", [:], to: socket)
            }
        }
        guard promoted.status == 200 else {
            throw CommandFailure(
                "the gateway answered \(promoted.status) to promoting `\(key)`",
                hint: purpose == .root ? "the bundle needs a caller with the grant `keys.rotate`" : nil)
        }
    }

    /// How often the gateway is asked how many rows are left, which reads all of them.
    private static let lagInterval = Duration.milliseconds(200)

    /// Waits until the last row is sealed anew. The rate counts from when the first was seen to be.
    private func resealing() async throws -> (rows: Int, perSecond: Int) {
        var begin = Load.now()
        var whole: Int?
        while true {
            guard
                case .object(let lag) = try CanonicalJSON.read(try await gateway.get("/v1/keys/lagging")),
                let rows = lag["rows"]?.integerValue, let isDone = lag["done"]?.booleanValue
            else { throw CommandFailure("the gateway does not say how many rows are left") }
            let now = Load.now()
            let first = whole ?? Int(rows)
            whole = first
            if isDone {
                return (first, Int(Double(first) * 1e9 / Double(max(now - begin, 1))))
            }
            if rows >= first { begin = now }
            try await Task.sleep(for: Self.lagInterval)
        }
    }

    // MARK: Envelopes

    /// Opens an evenly spread sample, each message as the phone of its recipient would that trusts the gateway's origin keys.
    private func open(
        _ envelopes: [BenchGateway.HandedOverEnvelope]
    ) async throws -> (opened: Int, unreadable: Int) {
        let origins = try await gateway.originKeys()
        let step = max(1, envelopes.count / Self.sampleCount)
        var (opened, unreadable) = (0, 0)
        for index in stride(from: 0, to: envelopes.count, by: step) {
            let message = envelopes[index]
            do {
                _ = try phones[message.person].opener(trusting: origins)
                    .open(message.envelope, now: BenchPhone.now)
                opened += 1
            } catch {
                unreadable += 1
            }
        }
        guard opened + unreadable > 0 else { throw CommandFailure("no sealed message was handed over") }
        return (opened, unreadable)
    }
}

/// Tells a load that it is over.
private final class LoadEnding: Sendable {
    private let hasEnded = Atomic(false)
    var isOver: Bool { hasEnded.load(ordering: .relaxed) }
    func end() { hasEnded.store(true, ordering: .relaxed) }
}
