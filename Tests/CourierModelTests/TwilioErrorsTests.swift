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
            (400, 21606, "misconfigured twilio_21606_from_not_capable"), (400, 99999, "failed twilio_99999"),
            (404, nil, "misconfigured twilio_http_404"), (302, nil, "misconfigured twilio_http_302"),
            (503, nil, "later app twilio_http_503 7"), (500, nil, "ambiguous twilio_http_500 false"),
            (504, 20500, "ambiguous twilio_20500 false"),
        ] as [(Int, Int?, String)])
    func `an error of Twilio means what its page says`(status: Int, code: Int?, expected: String) {
        let found =
            switch TwilioErrors.outcome(status: status, code: code, retryAfter: status >= 429 ? 7 : nil) {
            case .failed(let reason): "failed \(reason)"
            case .later(let reason, let seconds, let scope):
                "later \(scope.rawValue) \(reason)" + (seconds.map { " \($0)" } ?? "")
            case .misconfigured(let reason): "misconfigured \(reason)"
            case .ambiguous(let reason, let mayRepeat): "ambiguous \(reason) \(mayRepeat)"
            case let other: "\(other)"
            }
        #expect(found == expected)
    }
}
