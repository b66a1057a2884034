import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import Synchronization
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// No row of regions.yaml can be lost, softened or put off without a problem that says so.
@Suite struct DemandedRowTests {
    /// A category of a row, by its place on the page.
    struct Cell: Sendable, CustomTestStringConvertible {
        var index: Int
        var region: String
        var channel: String
        var category: String
        var rule: PermissionRule

        var testDescription: String { "\(region) \(channel) \(category)" }
    }

    /// Rows whose loss makes the answer only stricter, each with why. Nothing else may be lost.
    static let onlyStricter = [
        "US email marketing":
            "CAN-SPAM lets a commercial e-mail go out until somebody objects. Without the row the table asks for an opt-in."
    ]

    private static func rows(_ bundle: TestBundle) throws -> [JSONValue] {
        try #require(bundle.documents["regions.yaml"]?["permission_rows"]?.arrayValue)
    }

    private static func cells() throws -> [Cell] {
        try rows(BundleMutantTests.repository.get()).enumerated().flatMap { index, row in
            (row["categories"]?.arrayValue ?? []).map { category in
                Cell(
                    index: index, region: row["region"]?.stringValue ?? "",
                    channel: row["channel"]?.stringValue ?? "", category: category.stringValue ?? "",
                    rule: row["rule"]?.stringValue.flatMap { PermissionRule(rawValue: $0) } ?? .noneNeeded)
            }
        }
    }

    /// The repository's bundle with one category of one row otherwise; `nil` takes it away.
    private static func bundle(
        _ cell: Cell, _ change: (inout JSONObject) -> Void?
    ) throws -> TestBundle {
        var bundle = try BundleMutantTests.repository.get()
        var rows = try rows(bundle)
        var rest = rows[cell.index].objectValue ?? JSONObject()
        var own = rest
        rest["categories"] = .array(
            (rest["categories"]?.arrayValue ?? []).filter { $0 != .string(cell.category) })
        own["categories"] = [.string(cell.category)]
        let kept: [JSONValue] = rest["categories"] == [] ? [] : [.object(rest)]
        let changed: [JSONValue] = change(&own) == nil ? [] : [.object(own)]
        rows.replaceSubrange(cell.index...cell.index, with: kept + changed)
        bundle.replace("regions.yaml", ["permission_rows"], with: .array(rows))
        return bundle
    }

    /// By the check, by what the proof says of pages, or by a broken statute.
    private static func isRefused(_ bundle: TestBundle) -> Bool {
        guard case .success(let read) = bundle.read() else { return true }
        if !StatuteBook(read).flaws().isEmpty { return true }
        return !BundleProof(of: CompiledPolicy(read), grain: .effects).run(on: Threads.all).holds
    }

    private static func passing(
        _ variants: [(name: String, bundle: @Sendable () throws -> TestBundle)]
    ) -> Set<String> {
        let passed = Mutex<Set<String>>([])
        DispatchQueue.concurrentPerform(iterations: variants.count) { index in
            do {
                let isRefused = isRefused(try variants[index].bundle())
                if !isRefused { passed.withLock { _ = $0.insert(variants[index].name) } }
            } catch {
                passed.withLock { _ = $0.insert("\(variants[index].name): \(error)") }
            }
        }
        return passed.withLock { $0 }
    }

    @Test func `every row that is lost is missed, but those whose loss is only stricter`() throws {
        let all = try Self.cells()
        #expect(all.count > 70)
        let cells = Soak.part(of: all, 20, "lost rows")
        let passed = Self.passing(
            cells.map { cell in (cell.testDescription, { try Self.bundle(cell) { _ in nil } }) })
        #expect(passed == Set(cells.map(\.testDescription)).intersection(Self.onlyStricter.keys))
        // And of those the difference says so: what went out goes out no more.
        let whole = try BundleMutantTests.repository.get().compile()
        for cell in cells where Self.onlyStricter[cell.testDescription] != nil {
            let changes = PolicyDifference(
                from: whole, to: try Self.bundle(cell) { _ in nil }.compile()
            ).changes
            #expect(!changes.isEmpty)
            for change in changes {
                #expect(
                    change.before.outcome.isPromise && !change.after.outcome.isPromise
                        || change.before.outcome == change.after.outcome, "\(change.sentence)")
            }
        }
    }

    @Test func `every row that begins after the bundle does is missed until then`() throws {
        let cells = Soak.part(of: try Self.cells(), 20, "late rows")
        let late = { (cell: Cell) in
            try Self.bundle(cell) {
                $0["from"] = "2030-01-01"
                return ()
            }
        }
        for cell in cells {
            let flaws = try StatuteBook(late(cell).read().get()).flaws()
            // A day that a law sets is no page's to move, whichever way the answer goes.
            #expect(!flaws.isEmpty, "\(cell.testDescription)")
            // And of each row whose loss frees something it is said that it is missing, and how long.
            let row = "a row for \(cell.category) by \(cell.channel) in \(cell.region) is missing from"
            #expect(
                flaws.contains { $0.message.contains("is 2030-01-01, so that \(row)") }
                    == (Self.onlyStricter[cell.testDescription] == nil),
                "\(cell.testDescription): \(flaws.map(\.description))")
        }
    }

    @Test func `every row that asks for less is refused, whatever it asks for`() throws {
        let variants = try Self.cells().flatMap { cell in
            PermissionRule.allCases.filter { $0 < cell.rule }.map {
                rule -> (name: String, bundle: @Sendable () throws -> TestBundle) in
                (
                    "\(cell.testDescription) \(rule.rawValue)",
                    {
                        try Self.bundle(cell) {
                            $0["rule"] = .string(rule.rawValue)
                            $0["from"] = $0["from"] ?? "2004-01-01"
                            return ()
                        }
                    }
                )
            }
        }
        #expect(variants.count > 200)
        #expect(Self.passing(Soak.part(of: variants, 40, "softer rows")) == [])
    }

    /// Whatever the pages are said to lack: a decision breaks a statute.
    @Test(arguments: ["AU", "CA", "CH", "IL", "JP", "KR", "NZ", "TR", "ZA"])
    func `without its row a country's statute is broken, by an account where a sale is enough`(
        country: String
    ) throws {
        let cell = try #require(
            Self.cells().first { $0.region == country && $0.channel == "email" && $0.category == "marketing" }
        )
        let policy = try Self.bundle(cell) { _ in nil }.compile()
        let report = BundleProof(of: policy, grain: .effects).run(
            of: [TypeID("promo.offer")], on: Threads.all)
        let broken = report.refutations.filter { $0.statute.name == "marketing_needs_opt_in" }
        #expect(!broken.isEmpty, "\(report.refutations.map(\.statute.name))")
        #expect(broken.allSatisfy { $0.unusual.contains("device_regions") }, "\(broken.map(\.example))")
    }

    @Test func `no line puts a country of the GDPR, or of a law like it, under no such law`() throws {
        let regions = try BundleMutantTests.repository.get().read().get().regions.regions
        let lines = regions.filter { $0.value.regime != .other && $0.key.country == $0.key }
        #expect(lines.count > 50)
        for code in Soak.part(of: lines.keys.sorted { "\($0)" < "\($1)" }, 16, "countries of a law") {
            var bundle = try BundleMutantTests.repository.get()
            bundle.set("regions.yaml", "regions", code.description, "regime", to: "other")
            let flaws = try StatuteBook(bundle.read().get()).flaws()
            #expect(flaws.contains { $0.message.contains("regions.\(code)") }, "\(code)")
        }
    }
}
