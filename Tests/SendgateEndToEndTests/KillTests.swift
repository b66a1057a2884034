import Foundation
import Testing

extension Alone {
    @Suite struct KillTests {
        /// How often the gateway is killed. Each life is about a second.
        static let killCount = 50

        @Test func `fifty kills at any moment under load lose nothing that was acknowledged`() throws {
            let seed = seedOfThisRun("kills")
            var random = SeededRandom(seed)
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch, faultSeed: seed)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            let flood = try Flood(gate, in: scratch, seed: seed)

            // The first life is ready already.
            for kill in 1...Self.killCount {
                // One in four comes while it starts, and so while it recovers from the kill before.
                let isAfterReady = kill % 4 != 0
                if isAfterReady, kill > 1 {
                    try step("life \(kill) of seed \(seed)") { try gate.waitUntilReady() }
                }
                // The one sleep that is meant: the moment is what is random.
                usleep(UInt32.random(in: 0..<(isAfterReady ? 600_000 : 900_000), using: &random))
                gate.kill()
                try gate.launch()
            }
            try step("the last life of seed \(seed)") { try gate.waitUntilReady() }
            let promised = try flood.finish()
            try layer.waitForMessages(promised)
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            let evidence = try Evidence.check(gate, journal: flood.journal, record: layer.record, in: scratch)
            #expect(evidence.isSound, "seed \(seed): \(evidence)")
            // That much was really compared; a tenth of what an idle machine does.
            #expect(evidence["sends acknowledged"] ?? 0 > 500, "\(evidence)")
            #expect(evidence["deliveries"] ?? 0 > 100, "\(evidence)")
            #expect(evidence["entries of start"] ?? 0 > Self.killCount / 2, "\(evidence)")
            try expectVerifies(gate, in: scratch)
        }

    }
}

extension EndToEnd {
    @Suite struct EvidenceCheckerTests {
        @Test func `the checker finds every kind of loss it is there for`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            let flood = try Flood(gate, in: scratch, seed: 1, producers: 2)
            try layer.waitForMessages(20)
            try layer.waitForMessages(try flood.finish())
            try gate.stop()
            let journal = try String(contentsOfFile: flood.journal, encoding: .utf8)
            let record = try String(contentsOfFile: layer.record, encoding: .utf8)
            let delivered = record.split(separator: "\n").map(String.init)
            let answered = journal.split(separator: "\n").map(String.init)
            let accepted = try #require(
                answered.last {
                    $0.contains(#""status": 202"#) && $0.contains(#""allowed""#) && !$0.contains("replayed")
                })
            let foreignMessage = delivered[0].replacing(/"message_id": "..../, with: #""message_id": "0000"#)
            let cases: [(name: String, journal: String, record: String)] = [
                (
                    "another leaf",
                    journal.replacing(/"leaf": "..../, with: #""leaf": "0000"#, maxReplacements: 1), record
                ),
                ("another index", accepted.replacing(/"index": \d+/, with: #""index": 999999"#), record),
                ("another reason", journal + accepted.replacing("allowed", with: "generic_only"), record),
                (
                    "an answer given twice",
                    journal + accepted.replacing(/"index": \d+/, with: #""index": 1"#), record
                ),
                (
                    "an id that was decided and not told", answered.dropLast(10).joined(separator: "\n"),
                    record
                ),
                ("a message that never arrived", journal, delivered.dropLast().joined(separator: "\n")),
                ("a message nobody decided", journal, "\(record)\(foreignMessage)\n"),
                (
                    "a repeat with another content", journal,
                    record + delivered[0].replacing(/"token": "/, with: #""token": "x"#) + "\n"
                ),
            ]
            let sound = try Evidence.check(gate, journal: flood.journal, record: layer.record, in: scratch)
            #expect(sound.isSound, "\(sound)")
            for (name, journal, record) in cases {
                let evidence = try Evidence.check(
                    gate, journal: try scratch.write("journal", journal),
                    record: try scratch.write("record", record),
                    in: scratch)
                #expect(!evidence.isSound && evidence["differences"] ?? 0 > 0, "\(name): \(evidence)")
            }
        }
    }
}

/// What `peers/check_evidence.py` found.
struct Evidence: CustomStringConvertible {
    private var counts: [String: Int]
    private var differences: String
    private var ending: ChildProcess.Ending

    /// Compares every acknowledged answer with a copy of the trail, and the messages with what was handed over.
    ///
    /// - Parameter foreign: Sends that are in the trail and not in the journal.
    static func check(
        _ gate: GateProcess, journal: String, record: String? = nil, foreign: Int = 0, in scratch: Scratch
    ) throws -> Evidence {
        let copy = try gate.copyOfTrail("evidence-\(UUID().uuidString.prefix(8))")
        let finished = try Finished.run(
            [Machine.python, Machine.peer("check_evidence.py"), copy, "--journal", journal]
                + (record.map { ["--record", $0] } ?? []) + ["--foreign", "\(foreign)"], in: scratch,
            within: 60)
        let counts = try? JSONDecoder().decode([String: Int].self, from: Data(finished.output.utf8))
        return Evidence(counts: counts ?? [:], differences: finished.errors, ending: finished.ending)
    }

    var isSound: Bool { ending == .exit(0) && counts["differences"] == 0 }
    subscript(_ name: String) -> Int? { counts[name] }
    var description: String {
        "\(counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))\n\(differences)"
    }
}

/// The trail of a gateway that has stopped verifies and replays, to sendgate's own auditor and to Go's.
func expectVerifies(
    _ gate: GateProcess, in scratch: Scratch, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let copy = try gate.copyOfTrail("audited-\(UUID().uuidString.prefix(8))")
    let key = try #require(gate.ready?.trailKey)
    let runs = [
        [Machine.sendgate, "audit", "verify", copy, "--key", key],
        [Machine.sendgate, "audit", "replay", copy, "--key", key],
        [Machine.verifyTiles, copy, key],
    ]
    for command in runs {
        let finished = try Finished.run(command, in: scratch, within: 120)
        #expect(
            finished.ending == .exit(0), "\(command.dropFirst()): \(finished.output)\(finished.errors)",
            sourceLocation: sourceLocation)
    }
}

/// A seed from `SENDGATE_SEED`, or a new one; printed, so that a failure can be had again.
func seedOfThisRun(_ what: String) -> UInt64 {
    let given = ProcessInfo.processInfo.environment["SENDGATE_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...999_999_999)
    FileHandle.standardError.write(Data("\(what): SENDGATE_SEED=\(seed)\n".utf8))
    return seed
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same moments for the same seed.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
