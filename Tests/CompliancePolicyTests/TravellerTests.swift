import CanonicalJSON
import GateTestKit
import GateVocabulary
import PolicyFiles
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// People in more places than one: what an absent row does to them is seen by the proof and by the difference.
@Suite struct TravellerTests {
    /// The repository's bundle without the rows of a region for a category.
    static func repositoryWithout(region: String, category: String) throws -> CompiledPolicy {
        var bundle = try BundleMutantTests.repository.get()
        guard case .array(let rows) = bundle.documents["regions.yaml"]?["permission_rows"] else {
            throw BundleMutantTests.Unfit(what: "regions.yaml has no rows")
        }
        let rest = rows.filter { row in
            guard case .array(let categories) = row["categories"] else { return true }
            return row["region"] != .string(region) || !categories.contains(.string(category))
        }
        guard rest.count < rows.count else {
            throw BundleMutantTests.Unfit(what: "\(region) has no row for \(category)")
        }
        bundle.replace("regions.yaml", ["permission_rows"], with: .array(rest))
        return try bundle.compile()
    }

    /// Where the table asks for as much as the row did, only a person who is elsewhere by account is free without it.
    @Test(arguments: ["US", "AS", "PR"])
    func `without a row for texts to the United States a statute is broken, if only for travellers`(
        region: String
    ) throws {
        let rowless = try Self.repositoryWithout(region: region, category: "security")
        var bundle = try BundleMutantTests.repository.get()
        bundle.documents["regions.yaml"] = rowless.bundle.documents["regions.yaml"]?.json
        for category in ["security", "transactional"] {
            bundle.set("categories.yaml", category, "permission", "sms", "other", to: "express_consent")
        }
        let report = BundleProof(of: try bundle.compile(), grain: .effects).run(on: Threads.all)
        let broken = report.refutations.filter { $0.statute.name == "us_text_needs_consent" }
        #expect(!broken.isEmpty, "\(report.refutations.map(\.statute.name))")
        #expect(broken.allSatisfy { $0.unusual.contains("device_regions") }, "\(broken.map(\.example))")
    }

    @Test func `a text to a Greek's telephone in the United States is told by the difference`() throws {
        let whole = try BundleMutantTests.repository.get().compile()
        let rowless = try Self.repositoryWithout(region: "US", category: "security")
        let changes = PolicyDifference(from: whole, to: rowless).changes
        let texts = changes.filter {
            $0.channels == [.sms] && $0.types.contains(TypeID("security.new_login"))
        }
        #expect(
            texts.contains { change in
                change.before.reason == .noSMSConsent && change.after.reason == .allowed
                    && change.places.contains { $0.hasSuffix("with a telephone in US") }
            }, "\(changes.map(\.sentence))")
    }

    @Test func `an order of regimes that no law has is refused`() throws {
        var bundle = try BundleMutantTests.repository.get()
        bundle.set("regions.yaml", "strictest_first", to: ["other", "gdpr_like", "uk_gdpr", "gdpr"])
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(flaws.contains { $0.message.contains("strictest_first") }, "\(flaws)")
        bundle.set("regions.yaml", "strictest_first", to: ["gdpr", "gdpr", "gdpr_like", "other"])
        guard case .failure(let diagnostics) = bundle.read() else {
            Issue.record("a regime is missing, and nobody minds")
            return
        }
        #expect("\(diagnostics)".contains("every regime once"), "\(diagnostics)")
    }

    @Test func `a table that asks for more where the law is laxer is refused`() throws {
        var bundle = try BundleMutantTests.repository.get()
        bundle.set("categories.yaml", "transactional", "permission", "sms", "other", to: "opt_in")
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(
            flaws.contains { $0.file == "categories.yaml" && $0.message.contains("asks for more") },
            "\(flaws)")
    }

    @Test func `each of the thirty states has a dated row on whom it lets us write to by e-mail`() throws {
        let bundle = try BundleMutantTests.repository.get()
        let regions = try bundle.read().get().regions
        for state in LawOfTheLand.europeanUnion.union(LawOfTheLand.eftaInEEA) {
            let rows = regions.permissionRows.filter {
                $0.region == state && $0.channel == .email && $0.categories == [.marketing]
            }
            #expect(
                rows.count == 1 && rows.allSatisfy { $0.from != nil && !$0.rationale.law.isEmpty }, "\(state)"
            )
            let isSoft = rows.first?.rule == .optInOrExistingCustomer
            #expect(isSoft == LawOfTheLand.hasSoftOptIn(state), "\(state)")
        }
    }

    /// By the flaw, and where a row only lacks the words, by the statute.
    @Test(arguments: ["PL", "HU", "LI", "CH"])
    func `no row lets an existing customer be written to where the law wants consent`(state: String) throws {
        var bundle = try BundleMutantTests.repository.get()
        guard case .array(let rows) = bundle.documents["regions.yaml"]?["permission_rows"],
            let index = rows.firstIndex(where: { $0["region"] == .string(state) && $0["channel"] == "email" })
        else { throw BundleMutantTests.Unfit(what: "\(state) has no row") }
        bundle.replace(
            "regions.yaml", ["permission_rows", String(index), "rule"], with: "opt_in_or_existing_customer")
        let report = BundleProof(of: try bundle.compile(), grain: .effects).run(
            of: [TypeID("promo.offer")], on: Threads.all)
        #expect(report.flaws.contains { $0.message.contains("permission_rows.\(index)") }, "\(report.flaws)")
        #expect(report.refutations.map(\.statute.name).contains("marketing_needs_opt_in"))
    }

    @Test func `a table that takes all member states for one is refused`() throws {
        var bundle = try BundleMutantTests.repository.get()
        bundle.set(
            "categories.yaml", "marketing", "permission", "email", "gdpr", to: "opt_in_or_existing_customer")
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(flaws.contains { $0.message.contains("existing customers everywhere") }, "\(flaws)")
    }

    @Test func `numbers of the United States belong to it, and a bundle that forgets it is refused`() throws {
        var bundle = try BundleMutantTests.repository.get()
        let policy = try bundle.compile()
        #expect(policy.region(ofNumber: "+12025550123") == RegionCode("US"))
        #expect(policy.region(ofNumber: "+4791234567") == nil)
        bundle.set("regions.yaml", "calling_codes", to: ["+47": "NO"])
        let flaws = StatuteBook(try bundle.read().get()).flaws()
        #expect(flaws.contains { $0.message.contains("`+1`") }, "\(flaws)")
    }
}
