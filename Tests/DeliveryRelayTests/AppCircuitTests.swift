import DeliveryRelay
import GateSteps
import GateVocabulary
import Testing

@Suite struct AppCircuitTests {
    private let now = Instant(milliseconds: 1_795_000_000_000)

    private func delivery(app: String?, on channel: Channel = .push) -> Delivery {
        var delivery = Delivery.sample()
        (delivery.app, delivery.channel) = (app, channel)
        return delivery
    }

    @Test func `later for an app keeps its messages back so long, and no other's`() {
        let circuits = AppCircuits()
        let one = delivery(app: "one")
        circuits.take(.busy(status: 503, retryAfterMilliseconds: 7_000, scope: .app), of: one, at: now)
        #expect(
            circuits.refusal(of: one, at: now.advanced(bySeconds: 2))
                == .busy(status: 503, retryAfterMilliseconds: 5_000, scope: .message))
        for other in [delivery(app: "two"), delivery(app: nil, on: .sms), delivery(app: "one", on: .email)] {
            #expect(circuits.refusal(of: other, at: now) == nil)
        }
        #expect(circuits.refusal(of: one, at: now.advanced(bySeconds: 7)) == nil)
    }

    @Test func `later for one message opens nothing`() {
        let circuits = AppCircuits()
        let sms = delivery(app: nil, on: .sms)
        circuits.take(.busy(status: 503, retryAfterMilliseconds: 7_000, scope: .message), of: sms, at: now)
        circuits.take(.misconfigured(status: 404, "x"), of: sms, at: now)
        #expect(circuits.refusal(of: sms, at: now) == nil)
        circuits.take(.busy(status: 503, retryAfterMilliseconds: nil, scope: .app), of: sms, at: now)
        #expect(circuits.refusal(of: sms, at: now) != nil)
    }
}
