import CanonicalJSON
import GateVocabulary
import Testing

@testable import sendgate

/// What an audit's report tells its reader to do.
@Suite struct DriftReportTests {
    @Test func `what a provider has to change is an order, and what waits for a choice is suppressed`() {
        let repaired = DriftKind.unsubscribedWhileOn.words(after: .repaired)
        let suppressed = DriftKind.unsubscribedWhileOn.words(after: .suppressed)
        #expect(repaired.contains("--orders") && !repaired.contains("suppressed"))
        #expect(suppressed.contains("suppressed") && !suppressed.contains("--orders"))
        #expect(DriftKind.subscribedWhileOff.words(after: .repaired).contains("--orders"))
    }

    @Test func `an audit that goes on does not say that all sides agree`() {
        #expect(DriftReport(["examined": 0]).nothingFound == "nothing found so far")
        #expect(DriftReport(["finished_at": "2026-11-26T12:00:00Z"]).nothingFound == "all sides agree")
    }

    @Test func `a dry run is not taken for an audit`() {
        let run: JSONObject = ["started_at": "2026-11-26T12:00:00Z", "started_by": "product"]
        #expect(DriftReport(run).heading == "started 2026-11-26T12:00:00Z by product, under way")
        var dryRun = run
        dryRun["dry_run"] = true
        #expect(DriftReport(dryRun).heading.hasPrefix("dry run, which changes nothing: started "))
    }

    @Test(arguments: DriftKind.allCases)
    func `each finding is told in one line`(kind: DriftKind) {
        let words = kind.words(after: .marked)
        #expect(!words.isEmpty && !words.contains("\n") && words.count < 90)
    }
}
