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

/// A row counts from its day, so a difference is looked for on every day on which there may be one.
@Suite struct DatedDifferenceTests {
    private let repository: TestBundle
    private let before: CompiledPolicy

    init() throws {
        repository = try BundleMutantTests.repository.get()
        before = try Repository.policy()
    }

    private func row(_ region: String, _ channel: String) throws -> String {
        let rows = try #require(repository.documents["regions.yaml"]?["permission_rows"]?.arrayValue)
        return try String(
            #require(
                rows.firstIndex {
                    $0["region"] == .string(region) && $0["channel"] == .string(channel)
                        && $0["categories"] == ["marketing"]
                }))
    }

    private func after(_ row: String, from day: String) throws -> CompiledPolicy {
        var bundle = repository
        bundle.replace("regions.yaml", ["permission_rows", row, "from"], with: .string(day))
        return try bundle.compile()
    }

    @Test func `a row put off is told with the days between, at home and for whoever travels`() throws {
        let germany = PolicyDifference(from: before, to: try after(row("DE", "email"), from: "2030-01-01"))
        let sale = germany.changes.first { $0.places.contains("DE between 2018-05-25 and 2030-01-01") }
        #expect(sale?.before.outcome == .forward && sale?.after.outcome == .reject, "\(germany.changes)")
        #expect(sale?.sentence.contains("existing_customer") == true, "\(sale?.sentence ?? "")")

        // Its rule is the table's, so at home it is not felt.
        let canada = PolicyDifference(from: before, to: try after(row("CA", "email"), from: "2030-01-01"))
        let traveller = canada.changes.first { change in
            change.places.contains {
                $0.contains("a telephone in CA between") && $0.hasSuffix(" and 2030-01-01")
            }
        }
        #expect(
            traveller?.before.outcome == .reject && traveller?.after.outcome == .forward, "\(canada.changes)")
    }

    @Test func `a row brought forward is told with the days before it began`() throws {
        let found = PolicyDifference(from: before, to: try after(row("AT", "email"), from: "2020-03-01"))
        let places = Set(found.changes.flatMap(\.places))
        #expect(places.contains("AT between 2020-03-01 and 2021-11-01"), "\(places)")
    }

    @Test func `a row for codes put off, or ended, is told with the days between`() throws {
        var later = repository
        later.replace("regions.yaml", ["code_texts", "0", "from"], with: "2030-01-01")
        let putOff = PolicyDifference(from: before, to: try later.compile())
        let code = putOff.changes.first {
            $0.places.contains("DE between 2019-09-14 and 2030-01-01")
                && $0.types.contains(TypeID("2fa_code"))
        }
        #expect(code?.channels == [.sms], "\(putOff.changes)")
        #expect(code?.before.outcome == .forward && code?.after.reason == .channelNotAllowed)

        var shorter = repository
        shorter.replace("regions.yaml", ["code_texts", "0", "until"], with: "2028-01-01")
        let ended = PolicyDifference(from: before, to: try shorter.compile())
        let last = ended.changes.first {
            $0.places.contains("DE") && $0.types.contains(TypeID("2fa_code"))
        }
        #expect(last?.before.outcome == .forward && last?.after.reason == .channelNotAllowed)
        let places = Set(ended.changes.flatMap(\.places))
        #expect(!places.contains { $0.contains("between") }, "\(places)")
    }

    @Test func `the same days again are no difference`() throws {
        #expect(PolicyDifference(from: before, to: before).changes == [])
    }

    /// Whatever facts two bundles decide otherwise, of whatever day: a difference that says nothing changed is wrong.
    @Test func `no edit of a day goes untold where the facts of some day are decided otherwise`() throws {
        let rows = try #require(repository.documents["regions.yaml"]?["permission_rows"]?.arrayValue)
        let silent = Mutex<[String]>([])
        let felt = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 16) { round in
            var numbers = SeededNumbers(seed: 0xDA7E + UInt64(round))
            let index = Int(numbers.next() % UInt64(rows.count))
            let day = "20\(["02", "11", "18", "21", "25", "27", "31"][Int(numbers.next() % 7)])-03-01"
            guard rows[index]["from"] != .string(day), let after = try? after(String(index), from: day) else {
                return
            }
            guard let example = Self.otherwise(before, after, rows[index], &numbers) else { return }
            felt.withLock { $0 += 1 }
            guard PolicyDifference(from: before, to: after).changes.isEmpty else { return }
            silent.withLock { $0.append("row \(index) from \(day): \(example)") }
        }
        #expect(silent.withLock { $0 } == [])
        #expect(felt.withLock { $0 } > 5)
    }

    /// Facts of a day between 2000 and 2035 that the two decide otherwise; `nil` when twenty thousand show none.
    private static func otherwise(
        _ old: CompiledPolicy, _ new: CompiledPolicy, _ row: JSONValue, _ numbers: inout SeededNumbers
    ) -> String? {
        guard let region = row["region"]?.stringValue.flatMap({ RegionCode($0) }),
            let channel = row["channel"]?.stringValue.flatMap({ Channel(rawValue: $0) })
        else { return nil }
        let isMarketing = row["categories"] == ["marketing"]
        let request = AttestedRequest(
            caller: CallerName(isMarketing ? "marketing" : "security"),
            type: TypeID(isMarketing ? "promo.offer" : "security.new_login"), channel: channel,
            critical: false)
        let others = Array(old.bundle.regions.regions.keys).sorted { $0.packed < $1.packed }
        for _ in 0..<20_000 {
            let moment = Instant(seconds: 946_684_800 + Int64(numbers.next() % (35 * 366)) * 86_400)
            func seen(_ code: RegionCode) -> RegionObservation {
                RegionObservation(code: code, source: .kyc, observedAt: moment)
            }
            var facts = Facts.ready
            facts.now = moment
            facts.due = moment
            facts.expiry = moment.advanced(bySeconds: 86_400)
            let home = numbers.next() % 2 == 0 ? region : others[Int(numbers.next() % UInt64(others.count))]
            facts.accountRegion = seen(home)
            facts.deviceRegions = [seen(region)]
            let methods = ConsentMethod.allCases
            facts.consent =
                numbers.next() % 4 == 0
                ? ConsentFact(state: .neverAsked)
                : ConsentFact(state: .given, method: methods[Int(numbers.next() % UInt64(methods.count))])
            let before = decide(request, given: facts, under: old)
            let after = decide(request, given: facts, under: new)
            if before.outcome != after.outcome || before.reason != after.reason { return "\(facts.json)" }
        }
        return nil
    }
}
