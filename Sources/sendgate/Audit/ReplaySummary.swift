import CanonicalJSON
import CommandTerminal
import GateSteps
import GateVocabulary
import SendPlanning

/// What deciding a whole trail again has shown.
struct ReplaySummary {
    /// Entries told one by one to a person; beyond them only counted. Two screens tell what is wrong with a trail.
    static let toldCountMax = 20

    /// `nil` tells every one: a program that reads JSON wants them all.
    let printedCountMax: Int?
    /// Whether another policy is asked, so that differences are answers and not alarms.
    let isHypothetical: Bool
    private(set) var sameCount: UInt64 = 0
    private(set) var differentCount: UInt64 = 0
    /// Decisions that could not be made again, by why.
    private(set) var obstacles: [String: UInt64] = [:]
    /// Entries of acts that the gate would have refused.
    private(set) var refusedCount: UInt64 = 0
    /// Entries that decide nothing.
    private(set) var otherCount: UInt64 = 0
    private var printedCount = 0

    init(isHypothetical: Bool, printedCountMax: Int?) {
        self.isHypothetical = isHypothetical
        self.printedCountMax = printedCountMax
    }

    /// One entry that is worth a line.
    struct Line {
        var index: UInt64
        var differences: [ReplayDifference]
        var obstacle: String?
        /// Why the gate would have refused what it records.
        var objection: ActObjection?

        var lines: [String] {
            let refused = objection.map {
                [
                    "entry \(index) records what the gate refuses: \($0.reason): \(Terminal.printable($0.detail))",
                    "  hint: \(Terminal.printable($0.hint))",
                ]
            }
            return refused ?? outcome
        }

        private var outcome: [String] {
            if let obstacle { return ["entry \(index): not replayable: \(obstacle)"] }
            return ["entry \(index) comes out otherwise:"]
                + differences.map {
                    "  \($0.pointer.text): \(Self.text($0.recorded)), now \(Self.text($0.replayed))"
                }
        }

        var json: JSONObject {
            var object: JSONObject = ["index": .integer(Int64(index))]
            if let obstacle { object["not_replayable"] = .string(obstacle) }
            if let objection {
                object["refused"] = [
                    "reason": .string(objection.reason), "detail": .string(objection.detail),
                    "hint": .string(objection.hint),
                ]
            }
            if !differences.isEmpty {
                object["differences"] = .array(
                    differences.map { difference in
                        var object: JSONObject = ["pointer": .string(difference.pointer.text)]
                        if let recorded = difference.recorded { object["recorded"] = recorded }
                        if let replayed = difference.replayed { object["replayed"] = replayed }
                        return .object(object)
                    })
            }
            return object
        }

        private static func text(_ value: JSONValue?) -> String {
            switch value {
            case nil: "absent"
            case .string(let text)?: Terminal.printable(text)
            case let value?: Terminal.printable(value.description)
            }
        }
    }

    /// - Returns: What to print of this entry; `nil` when it came out the same, or enough was printed.
    mutating func add(_ result: ReplayResult, of index: UInt64) -> Line? {
        var line = Line(index: index, differences: [], obstacle: nil)
        switch result {
        case .same:
            sameCount += 1
            return nil
        case .notReplayable(.decidesNothing):
            otherCount += 1
            return nil
        case .differs(let differences):
            differentCount += 1
            line.differences = differences
        case .notReplayable(let obstacle):
            obstacles[obstacle.description, default: 0] += 1
            // What another policy cannot be asked is a limit of the question, told once at the end.
            if isHypothetical { return nil }
            line.obstacle = obstacle.description
        }
        return printed(line)
    }

    /// - Returns: What to print of an entry that records what the gate refuses; `nil` when enough was printed.
    mutating func add(_ objection: ActObjection, of index: UInt64) -> Line? {
        refusedCount += 1
        return printed(Line(index: index, differences: [], objection: objection))
    }

    private mutating func printed(_ line: Line) -> Line? {
        printedCount += 1
        if let printedCountMax, printedCount > printedCountMax { return nil }
        return line
    }

    private var obstacleCount: UInt64 { obstacles.values.reduce(0, +) }

    /// Whether every decision came out as recorded, and the gate would have taken every act. What another policy cannot be
    /// asked does not count.
    var isClean: Bool { differentCount == 0 && refusedCount == 0 && (isHypothetical || obstacleCount == 0) }

    var lines: [String] {
        var lines: [String] = []
        if let printedCountMax, printedCount > printedCountMax {
            lines.append("… and \(printedCount - printedCountMax) more entries; `--json` prints every one")
        }
        let verb = isHypothetical ? "would be the same" : "reproduced byte for byte"
        lines.append(
            "\(sameCount) entries \(verb), \(differentCount) different, \(obstacleCount) not replayable; \(otherCount) decide nothing"
        )
        if refusedCount > 0 { lines.append("\(refusedCount) entries record what the gate refuses") }
        for (why, count) in obstacles.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            lines.append("  \(count): \(why)")
        }
        return lines
    }

    var json: JSONObject {
        [
            "refused": .integer(Int64(refusedCount)), "same": .integer(Int64(sameCount)),
            "different": .integer(Int64(differentCount)),
            "not_replayable": .integer(Int64(obstacleCount)), "decide_nothing": .integer(Int64(otherCount)),
            "obstacles": .object(JSONObject(obstacles.map { ($0.key, .integer(Int64($0.value))) })),
        ]
    }
}
