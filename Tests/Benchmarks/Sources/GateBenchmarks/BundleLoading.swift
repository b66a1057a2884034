import BundleModel
import BundleModel
import CompliancePolicy
import Dispatch
import Foundation
import PolicyFiles
import PolicyProof

/// Putting a bundle in force: reading and checking its pages, making it ready to decide, proving it.
struct BundleLoading {
    /// Pages that name nothing another page may not name as well, one of each category.
    private static let models = ["transaction.failed", "social.like", "promo.offer", "security.new_login"]

    /// - Parameters:
    ///   - policies: The product's own bundle.
    ///   - folder: An existing one, with room for a hundred megabytes.
    static func findings(of policies: String, in folder: String) throws -> [Finding] {
        try [
            proof(of: policies),
            loading(1_000, like: policies, in: "\(folder)/thousand", secondsMax: 1),
            loading(10_000, like: policies, in: "\(folder)/ten-thousand", secondsMax: 10),
        ]
    }

    private static func proof(of policies: String) throws -> Finding {
        let policy = CompiledPolicy(
            try PolicyBundle.read(documents: PolicyDirectory.read(at: policies)).get())
        var report: ProofReport?
        let seconds = best(of: 5) {
            report = BundleProof(of: policy).run(on: { count, body in
                DispatchQueue.concurrentPerform(iterations: count, execute: body)
            })
        }
        guard let report, report.holds else { preconditionFailure("the product's own bundle is refuted") }
        let processors = ProcessInfo.processInfo.activeProcessorCount
        return Finding(
            what: "prove the bundle", measured: "\(report.stateCount) states in \(shown(seconds))",
            floor:
                "\(Int(seconds * Double(processors) * 1e9) / Int(report.stateCount)) ns a state and processor",
            promise: "at least 2^24 states in at most 2 s",
            isKept: report.stateCount >= 1 << 24 && seconds <= 2)
    }

    private static func loading(
        _ count: Int, like policies: String, in folder: String, secondsMax: Double
    ) throws -> Finding {
        try write(count, like: policies, to: folder)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let reading = try best(of: 3) { _ = try PolicyDirectory.read(at: folder) }
        let seconds = try best(of: 3) {
            let bundle = try PolicyBundle.read(documents: PolicyDirectory.read(at: folder)).get()
            precondition(CompiledPolicy(bundle).types.count == count)
        }
        return Finding(
            what: "load \(count) types", measured: "\(shown(seconds)) besides the proof",
            floor: "\(Int(100 * reading / seconds)) % of it reading YAML, \(shown(reading))",
            promise: "at most \(Int(secondsMax)) s", isKept: seconds <= secondsMax)
    }

    /// The bundle with copies of its models under names of their own, until it has `count` types.
    private static func write(_ count: Int, like policies: String, to folder: String) throws {
        let files = FileManager.default
        try files.copyItem(atPath: policies, toPath: folder)
        let own = try files.contentsOfDirectory(atPath: "\(folder)/types").count
        let copies = (own..<count).map { (name: "copied.type_\($0)", model: models[$0 % models.count]) }
        for copy in copies {
            let page = try text(of: "\(policies)/types/\(copy.model).yaml")
                .replacing("type: \(copy.model)\n", with: "type: \(copy.name)\n")
            try write(page, to: "\(folder)/types/\(copy.name).yaml")
        }
        let cover = try text(of: "\(folder)/bundle.yaml")
        try write(
            cover + copies.map { "  - types/\($0.name).yaml\n" }.joined(), to: "\(folder)/bundle.yaml")
        for page in try files.contentsOfDirectory(atPath: "\(folder)/messages") {
            let words = try text(of: "\(folder)/messages/\(page)")
            let ofModels = Dictionary(uniqueKeysWithValues: models.map { ($0, lines(under: $0, in: words)) })
            let more = copies.map { "\($0.name):\n\(ofModels[$0.model]!)" }
            try write(words + more.joined(), to: "\(folder)/messages/\(page)")
        }
    }

    /// The indented lines below a key of a page.
    private static func lines(under key: String, in page: String) -> String {
        let below = page.split(separator: "\n", omittingEmptySubsequences: false).drop { $0 != "\(key):" }
        return below.dropFirst().prefix { $0.hasPrefix(" ") }.map { "\($0)\n" }.joined()
    }

    private static func text(of path: String) throws -> String {
        try String(contentsOfFile: path, encoding: .utf8)
    }

    private static func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    /// Wall time of the fastest round, in seconds: several threads work, and the caller waits for them.
    private static func best(of rounds: Int, _ body: () throws -> Void) rethrows -> Double {
        let clock = ContinuousClock()
        let times = try (0..<rounds).map { _ in try clock.measure { try body() } }
        return times.min()! / .seconds(1)
    }

    private static func shown(_ seconds: Double) -> String {
        "\(seconds.formatted(.number.precision(.fractionLength(2)))) s"
    }
}
