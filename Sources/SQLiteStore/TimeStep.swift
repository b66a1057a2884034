import GateSteps
import GateVocabulary
import GatewayPipeline

/// Where time went back in the tables that are in the order of arrival: the first send and the first event that came
/// after an operator had accepted a clock. The setting `time_steps` has one `send:event` for each.
struct TimeStep: Equatable {
    static let settingName = "time_steps"
    /// Steps remembered; of more, the oldest are forgotten, whose rows then wait for those in front of them.
    static let countMax = 64

    var send: Int64
    var event: Int64

    var text: String { "\(send):\(event)" }

    init(send: Int64, event: Int64) {
        self.send = send
        self.event = event
    }

    /// - Returns: `nil` for what is no such text.
    init?(_ text: Substring) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) }
        guard parts.count == 2, let send = parts[0], let event = parts[1] else { return nil }
        self.init(send: send, event: event)
    }

    /// The numbers between two steps, oldest first. Together they are all numbers.
    ///
    /// - Parameter starts: The first number after each step.
    static func ranges(_ starts: [Int64]) -> [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        var lower = Int64.min
        for start in Set(starts).sorted() where start > lower {
            ranges.append(lower...start - 1)
            lower = start
        }
        return ranges + [lower...Int64.max]
    }
}

extension GateTransaction {
    /// Notes that what comes from here on may be older than what came before.
    func addTimeStep() throws {
        let steps =
            try timeSteps() + [TimeStep(send: sequences.sendNumber + 1, event: sequences.eventCursor + 1)]
        try setSetting(
            TimeStep.settingName, to: steps.suffix(TimeStep.countMax).map(\.text).joined(separator: " "))
    }

    /// A setting that cannot be read costs time only: rows are pruned later than they could be.
    func timeSteps() throws -> [TimeStep] {
        guard let text = try setting(TimeStep.settingName) else { return [] }
        return text.split(separator: " ").compactMap { TimeStep($0) }
    }
}
