import DeliveryRelay
import GateSteps
import GateVocabulary
import Testing

@Suite struct AppCircuitTests {
    private let now: Int64 = 1_000_000

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
            circuits.refusal(of: one, at: now + 2_000)
                == .busy(status: 503, retryAfterMilliseconds: 5_000, scope: .app))
        // A shorter answer that came later shortens nothing.
        circuits.take(.busy(status: 503, retryAfterMilliseconds: 10, scope: .app), of: one, at: now)
        #expect(circuits.refusal(of: one, at: now + 6_999) != nil)
        var android = one
        android.platform = .android
        #expect(circuits.refusal(of: android, at: now) == nil)
        // Expo is one service for both platforms, and none of theirs.
        var byExpo = one
        byExpo.provider = .expo
        #expect(circuits.refusal(of: byExpo, at: now) == nil)
        circuits.take(.busy(status: 503, retryAfterMilliseconds: 7_000, scope: .app), of: byExpo, at: now)
        byExpo.platform = .android
        #expect(circuits.refusal(of: byExpo, at: now) != nil)
        #expect(circuits.refusal(of: android, at: now) == nil)
        for other in [delivery(app: "two"), delivery(app: nil, on: .sms), delivery(app: "one", on: .email)] {
            #expect(circuits.refusal(of: other, at: now) == nil)
        }
        #expect(circuits.refusal(of: one, at: now + 7_000) == nil)
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
