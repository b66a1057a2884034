import Foundation

/// The seed of a random test: `SENDGATE_SEED`, or the number of today's day, so that a run repeats within the day and the days
/// differ. Printed, so that a failure can be had again.
package func seedOfToday(_ what: String) -> UInt64 {
    let given = ProcessInfo.processInfo.environment["SENDGATE_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64(Date().timeIntervalSince1970 / 86_400)
    FileHandle.standardError.write(Data("\(what): SENDGATE_SEED=\(seed)\n".utf8))
    return seed
}
