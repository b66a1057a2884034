import GateRecords
import GateVocabulary
import KeyLifecycle
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// Values of different modules that are made of each other by their names.
@Suite struct SharedNameTests {
    @Test func `an event of a key is recorded under its own name`() {
        for event in KeyEvent.allCases {
            for cause in KeyCause.allCases {
                let transition = PersonChange.KeyTransition(event, because: cause)
                #expect(transition.event.rawValue == event.rawValue)
                let isOfRequest = cause == .request || cause == .found
                #expect(transition.cause?.rawValue == (isOfRequest ? nil : cause.rawValue))
            }
        }
    }

    @Test func `what a caller asks is kept under its own name`() {
        for state in ConsentBody.State.allCases { #expect(state.ledgerState.rawValue == state.rawValue) }
        for cause in KeyRevokeBody.Cause.allCases { #expect(KeyCause(cause).rawValue == cause.rawValue) }
    }

    @Test func `what becomes of a send, and who is reached by it, has one name`() {
        for event in ReceiptBody.Event.allCases { #expect(event.eventKind.rawValue == event.rawValue) }
        for channel in Channel.allCases { #expect(DischargeMeans(channel).channel == channel) }
    }
}
