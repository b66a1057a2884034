import Foundation

/// Runs everything and prints one line each: what, measured, floor, promise, verdict, separated by tabs.
///
///     swift run -c release GateBenchmarks POLICIES [PEOPLE]
///
/// `PEOPLE` is the larger number of registered people, one million unless given. Ends with 3 when a promise was missed.
/// Not part of `swift test`: a machine that does other work, too, misses promises that hold.
@main
struct GateBenchmarks {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard (2...3).contains(arguments.count),
            let many = arguments.count < 3 ? 1_000_000 : Int(arguments[2]),
            (10_000...10_000_000).contains(many)
        else {
            print("usage: GateBenchmarks POLICIES [PEOPLE], with 10000 to 10000000 people")
            exit(64)
        }
        #if DEBUG
            FileHandle.standardError.write(Data("this is a debug build; add -c release\n".utf8))
        #endif
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "sendgate-benchmarks-\(ProcessInfo.processInfo.processIdentifier)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var isMissed = false
        func show(_ findings: [Finding]) {
            for finding in findings {
                finding.show()
                if finding.isKept == false { isMissed = true }
            }
        }
        try show(Decisions(policies: arguments[1]).findings())
        try show(RuleBooks.findings(of: arguments[1], in: folder))
        try show(Sealing().findings())
        try show([Verification.finding()])
        try show([Lookups.finding(in: folder, people: (few: 10_000, many: many))])
        if isMissed {
            try? FileManager.default.removeItem(atPath: folder)
            exit(3)
        }
    }
}
