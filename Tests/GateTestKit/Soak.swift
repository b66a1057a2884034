import Foundation

/// How long the long tests are: `make soak` runs them whole, every other run a short form of each. The one place that says so,
/// for the tests of every module.
package enum Soak {
    /// Set to `1` by `Tests/run_tests.py` for the parts of `make soak`.
    package static let isWhole = variable("SENDGATE_SOAK") == "1"

    /// The number of today's day since 1970, UTC: what is drawn differs from day to day and repeats within one.
    private static let today = UInt64(Date().timeIntervalSince1970 / 86_400)

    /// `SENDGATE_SEED`, else today: to have a failure of another day again, set what that run printed.
    private static let drawn = variable("SENDGATE_SEED").flatMap { UInt64($0) } ?? today

    /// The seed of a random test, printed where the test's output is kept.
    ///
    /// - Parameter what: The test, as the line names it.
    package static func seed(_ what: String) -> UInt64 {
        tell(what)
        return drawn
    }

    /// How often something random is done.
    package static func count(_ whole: Int, short: Int) -> Int { isWhole ? whole : short }

    /// The elements of a table that this run tries: all in a whole run, else as many as asked for, of which every day has others
    /// until all had their turn.
    ///
    /// - Parameter count: How many a short run tries; at least 1.
    package static func part<Table: Collection>(of table: Table, _ count: Int, _ what: String) -> [Table
        .Element]
    {
        let all = Array(table)
        guard !isWhole, count < all.count else { return all }
        tell(what)
        let first = Int(drawn % UInt64(all.count)) * count
        return (0..<count).map { all[(first + $0) % all.count] }
    }

    private static func tell(_ what: String) {
        let form = isWhole ? "whole" : "short"
        FileHandle.standardError.write(Data("\(what), \(form): SENDGATE_SEED=\(drawn)\n".utf8))
    }

    private static func variable(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }
}
