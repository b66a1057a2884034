import Foundation
import GateTestKit
import Testing

extension Alone {
    @Suite struct KillTests {
        /// How often the gateway is killed. Each life is about a second.
        static let killCount = Soak.count(50, short: 12)

        /// What must have occurred for the checker to have seen it, in a whole run and in a short one; far less than what an idle
        /// machine does. A short run ends before some of it must come.
        private static let occurrences: [String: (whole: Int, short: Int)] = [
            "sends acknowledged": (500, 50), "edits acknowledged": (50, 5), "deliveries": (100, 10),
            "entries of start": (25, 6),
            // Answers that were lost and asked for again, and messages that came again.
            "lost and found": (1, 0), "replays": (10, 1), "repeats": (10, 1),
            // Every way a message can take.
            "messages handed_over": (100, 10), "messages of defer": (5, 1), "deferred and due": (1, 0),
            "messages of digest": (5, 0), "waiting when switched off": (1, 0),
            "messages refused later": (1, 0), "messages cancelled": (1, 0), "messages erased": (1, 0),
            "waiting at the end": (1, 0),
            // What people changed, and what followed.
            "entries of consent": (5, 0), "entries of erasure": (5, 0),
            "decided suppress user_preference": (1, 0), "decided suppress frequency_cap": (1, 0),
            "decided reject unknown_recipient": (1, 0),
        ]
        static let required = occurrences.mapValues { Soak.count($0.whole, short: $0.short) }
            .filter { $0.value > 0 }

        @Test
        func `kills at any moment under load, fifty in a whole run, lose nothing that was acknowledged`()
            throws
        {
            let seed = Soak.seed("kills")
            var random = SeededRandom(seed)
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch, faultSeed: seed)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            let flood = try Flood(gate, in: scratch, seed: seed)

            // Quiet hours end at a full minute, and several lives of a whole run must come after it: what is due is decided a moment
            // after a start.
            let lateEnough = Soak.isWhole ? (Int(Date().timeIntervalSince1970) / 60 + 1) * 60 + 8 : 0
            var kill = 0
            while kill < Self.killCount || Int(Date().timeIntervalSince1970) < lateEnough {
                kill += 1
                // The first life is ready already; one in four ends while it starts, and so while it recovers.
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
            try flood.finish()
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")

            let evidence = try Evidence.check(
                gate, journal: flood.journal, record: layer.record, requiring: Self.required, in: scratch)
            #expect(evidence.isSound, "seed \(seed): \(evidence)")
            try expectVerifies(gate, in: scratch)
        }
    }
}

extension EndToEnd {
    @Suite struct EvidenceCheckerTests {
        /// Of each case of `peers/spoil_evidence.py`, the rules that the checker must name, and no others.
        static let cases: [String: Set<String>] = [
            "leaf": ["leaf"], "origin": ["origin"], "entry beyond the end": ["lost"],
            "answer without evidence": ["evidence"], "another caller": ["caller"],
            "another send": ["send", "unanswered"], "another reason": ["reason"],
            "another outcome": ["outcome"], "another policy": ["policy"], "another status": ["status"],
            "another message": ["promise"], "another answer to a repeat": ["repeat"],
            "send nobody was told of": ["unanswered"], "one send for two ids": ["twice"],
            "answers in another order": ["order"], "edit of somebody else": ["person"],
            "another edit": ["edit"], "another consent": ["edit"], "another count of cancelled": ["edit"],
            "erasure of nobody": ["forgotten"], "root": ["root"], "another index": ["index"],
            "time going back": ["time"], "entry about an erased person": ["erased"],
            "send decided twice": ["send"], "message of a refused send": ["arrival", "refused"],
            "third offer of a week": ["cap"], "offer without consent": ["law"],
            "notice past a switch": ["law"], "fact account_preference": ["fact account_preference"],
            "fact push_enabled": ["fact push_enabled"], "fact os_permission": ["fact os_permission"],
            "fact privacy": ["fact privacy"], "fact age": ["fact age"],
            "fact recipient": ["fact recipient"], "fact type_count": ["fact type_count"],
            "fact category_count": ["fact category_count"],
            "fact everything_count": ["fact everything_count"], "fact consent": ["fact consent"],
            "switched off and waiting on": ["act"], "cancelled and waiting on": ["act"],
            "erased and waiting on": ["act"], "waiting message lost": ["waiting"],
            "gathered message lost": ["waiting"], "more waiting than promised": ["waiting"],
            "send of somebody known forgotten": ["forgotten"], "delivery after the end": ["ended"],
            "message that never arrived": ["arrival"], "message nobody decided": ["undecided"],
            "message of another send": ["promise"], "repeat with another content": ["content"],
            "hand over without an entry": ["unrecorded"], "switched off and handed over": ["withdrawn"],
            "cancelled and handed over": ["withdrawn"], "erased and handed over": ["withdrawn"],
            "deferred and handed over at once": ["early"], "gathered and handed over alone": ["early"],
            "send of somebody known not found": ["forgotten"],
            "end of a message nobody decided": ["undecided"], "due before its time": ["early"],
            "nothing lost": ["required"],
        ]

        /// What may be told as well: the message that takes another's place may say something else, and a limit may count it.
        static let besides: [String: Set<String>] = [
            "message of another send": ["content"], "switched off and handed over": ["content"],
            "cancelled and handed over": ["content"], "erased and handed over": ["content"],
            "deferred and handed over at once": ["content"], "gathered and handed over alone": ["content"],
            // Another time or another send in a window is another count.
            "third offer of a week": ["fact everything_count"],
            "due before its time": ["fact type_count", "fact everything_count"],
        ]

        @Test func `the checker finds every kind of loss it is there for, and names it`() throws {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch, faultSeed: 1)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            // Quiet hours that end too late to let anything go before the end.
            let flood = try Flood(
                gate, in: scratch, seed: 3, producers: 2, ["--acts", "300", "--quiet-minutes", "2"])
            try flood.finish()
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            let sound = try Evidence.check(
                gate, journal: flood.journal, record: layer.record, in: scratch)
            #expect(sound.isSound, "\(sound)")

            let copy = try gate.copyOfTrail("spoiled")
            let finished = try Finished.run(
                [Machine.python, Machine.peer("spoil_evidence.py"), copy, flood.journal, layer.record],
                in: scratch, within: 120)
            #expect(finished.ending == .exit(0), "\(finished.errors)")
            struct Told: Decodable {
                var `case`: String
                var rules: Set<String>
            }
            var told: [String: Set<String>] = [:]
            for line in finished.output.split(separator: "\n") {
                let one = try JSONDecoder().decode(Told.self, from: Data(line.utf8))
                told[one.case] = one.rules
            }
            #expect(Set(told.keys) == Set(Self.cases.keys))
            for (name, rules) in Self.cases {
                let besides = told[name]?.subtracting(rules).subtracting(Self.besides[name] ?? [])
                #expect(
                    told[name]?.isSuperset(of: rules) == true && besides == [], "\(name): \(told[name] ?? [])"
                )
            }
        }
    }
}

/// What `peers/check_evidence.py` found.
struct Evidence: CustomStringConvertible {
    private struct Found: Decodable {
        var counts: [String: Int]
        var differences: [String: Int]
    }
    private var found: Found
    private var told: String
    private var ending: ChildProcess.Ending

    /// Compares every acknowledged answer with a copy of the trail, and the messages with what was handed over.
    ///
    /// - Parameters:
    ///   - foreign: Sends that are in the trail and not in the journal.
    ///   - required: How often each of these must have occurred.
    static func check(
        _ gate: GateProcess, journal: String, record: String, foreign: Int = 0,
        requiring required: [String: Int] = [:], in scratch: Scratch
    ) throws -> Evidence {
        let copy = try gate.copyOfTrail("evidence-\(UUID().uuidString.prefix(8))")
        let finished = try Finished.run(
            [
                Machine.python, Machine.peer("check_evidence.py"), copy, "--journal", journal, "--record",
                record,
            ]
                + ["--foreign", "\(foreign)", "--require"] + required.map { "\($0.key)=\($0.value)" },
            in: scratch, within: 60)
        let found = try step("\(finished.ending) \(finished.errors)") {
            try JSONDecoder().decode(Found.self, from: Data(finished.output.utf8))
        }
        return Evidence(found: found, told: finished.errors, ending: finished.ending)
    }

    var isSound: Bool { ending == .exit(0) && found.differences.isEmpty }
    subscript(_ name: String) -> Int? { found.counts[name] }
    var description: String {
        "\(found.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))\n\(told)"
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
        [Machine.sendgate, "audit", "replay", copy, "--key", key, "--from-genesis"],
        [Machine.verifyTiles, copy, key],
    ]
    for command in runs {
        let finished = try Finished.run(command, in: scratch, within: 120)
        #expect(
            finished.ending == .exit(0), "\(command.dropFirst()): \(finished.output)\(finished.errors)",
            sourceLocation: sourceLocation)
    }
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
