import CourierModel
import Testing

@Suite struct TwilioErrorsTests {
    @Test(
        arguments: [
            (400, 21211, "failed twilio_21211_to_invalid"),
            (400, 21610, "failed twilio_21610_unsubscribed_at_carrier"),
            (400, 21614, "failed twilio_21614_to_not_mobile"),
            (401, 20003, "misconfigured twilio_20003_authentication_failed"),
            (429, 20429, "later app twilio_20429_too_many_requests 7"),
            (429, 14107, "later message twilio_14107_rate_between_numbers 30"),
            (403, 21408, "later message twilio_21408_region_not_permitted 60"),
            (400, 21606, "misconfigured twilio_21606_from_not_capable"),
            (400, 99999, "later message twilio_99999 60"),
            (404, nil, "misconfigured twilio_http_404"), (302, nil, "misconfigured twilio_http_302"),
            (503, nil, "later app twilio_http_503 7"), (500, nil, "ambiguous twilio_http_500 false"),
            (504, 20500, "ambiguous twilio_20500 false"),
        ] as [(Int, Int?, String)])
    func `an error of Twilio means what its page says`(status: Int, code: Int?, expected: String) {
        var suspects = SuspectAnswers()
        let outcome = TwilioErrors.outcome(
            status: status, code: code, retryAfter: status >= 429 ? 7 : nil, weighing: &suspects, at: 0)
        let found =
            switch outcome {
            case .failed(let reason): "failed \(reason)"
            case .later(let reason, let seconds, let scope):
                "later \(scope.rawValue) \(reason)" + (seconds.map { " \($0)" } ?? "")
            case .misconfigured(let reason): "misconfigured \(reason)"
            case .ambiguous(let reason, let mayRepeat): "ambiguous \(reason) \(mayRepeat)"
            case let other: "\(other)"
            }
        #expect(found == expected)
    }

    @Test(arguments: [400, 413, 422])
    func `a refusal without a known code ends a text only where others are taken`(status: Int) {
        var suspects = SuspectAnswers()
        func next(at now: Int64) -> DeliveryOutcome {
            TwilioErrors.outcome(
                status: status, code: nil, retryAfter: nil, weighing: &suspects, at: now)
        }
        let reason = "twilio_http_\(status)"
        for _ in 0..<4 { #expect(next(at: 0) == .later(reason: reason, seconds: 60, scope: .message)) }
        #expect(next(at: 0) == .misconfigured(reason: reason))
        let later = 3 * SuspectAnswers.windowMilliseconds
        suspects.accepted(at: later)
        #expect(next(at: later) == .failed(reason: reason))
    }
}
