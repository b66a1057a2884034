import GateVocabulary
import SendgateClient
import Testing

/// The library is linked by teams that have none of the gateway's modules, so its list of outcomes is one of its own.
@Suite struct OutcomeTests {
    @Test func `every outcome of the gateway is one of the library's, and as much of a promise`() {
        for outcome in Outcome.allCases {
            #expect(
                SendAnswer.Outcome(rawValue: outcome.name)?.isPromise == outcome.isPromise, "\(outcome.name)")
        }
    }
}
