import Foundation

/// What one thing costs, in processor time of this thread: other programs on the machine do not count, waiting for
/// the disk neither.
enum Stopwatch {
    /// A round takes at least this long, so that the clock's own cost and grain do not show.
    private static let roundNanoseconds = 30e6

    /// The best of several rounds, in nanoseconds a call: noise only ever adds.
    ///
    /// As many calls to a round as it takes to last 30 ms, so that a slow build takes no longer than a fast one.
    static func nanoseconds(rounds: Int = 7, _ body: (_ call: Int) throws -> Void) throws -> Double {
        var calls = 1
        var call = 0
        func round() throws -> Double {
            let start = threadNanoseconds()
            for _ in 0..<calls {
                try body(call)
                call += 1
            }
            return threadNanoseconds() - start
        }
        var taken = try round()
        while taken < roundNanoseconds {
            calls *= 2
            taken = try round()
        }
        var best = taken
        for _ in 1..<rounds { best = min(best, try round()) }
        return best / Double(calls)
    }

    private static func threadNanoseconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }

    /// Keeps the optimiser from leaving out what is not used.
    @inline(never)
    static func consume(_ value: borrowing some ~Copyable) {}
}

/// One line of the report: what was measured, its floor, and the promise it is held to.
struct Finding {
    var what: String
    /// With its unit.
    var measured: String
    var floor: String
    /// What the promise says, and whether it was kept; `nil` where none was given.
    var promise: String?
    var isKept: Bool?

    /// - Parameter atLeast: The share of the floor's speed that was promised.
    static func ratio(
        _ what: String, nanoseconds: Double, floor: Double, _ floorName: String, atLeast: Double?
    ) -> Finding {
        let share = floor / nanoseconds
        return Finding(
            what: what, measured: "\(Int(nanoseconds)) ns",
            floor: "\(Int(100 * share)) % of \(floorName), \(Int(floor)) ns",
            promise: atLeast.map { "at least \(Int(100 * $0)) %" }, isKept: atLeast.map { share >= $0 })
    }

    func show() {
        let verdict = isKept.map { $0 ? "kept" : "MISSED" } ?? ""
        // At once, also in a pipe: the last measurement takes minutes.
        let line = [what, measured, floor, promise ?? "", verdict].joined(separator: "\t") + "\n"
        FileHandle.standardOutput.write(Data(line.utf8))
    }
}
