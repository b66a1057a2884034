import CanonicalJSON
import CourierModel
import GateVocabulary
import Foundation
import Testing

/// What Apple, Google and Expo answer, row by row.
@Suite struct PushErrorTests {
    // MARK: Apple

    /// Apple's table of reasons with the status that each comes with.
    static let apple: [(status: Int, reason: String, verdict: PushVerdict)] = [
        (400, "BadCollapseId", .failed), (400, "BadDeviceToken", .suspect),
        (400, "BadExpirationDate", .failed),
        (400, "BadMessageId", .failed), (400, "BadPriority", .failed), (400, "BadTopic", .configuration),
        (400, "DeviceTokenNotForTopic", .suspect), (400, "DuplicateHeaders", .failed),
        (400, "IdleTimeout", .later(seconds: nil, scope: .message)), (400, "InvalidPushType", .failed),
        (400, "MissingDeviceToken", .failed), (400, "MissingTopic", .configuration),
        (400, "PayloadEmpty", .failed), (400, "TopicDisallowed", .configuration),
        (400, "TopicMismatch", .configuration), (403, "BadCertificate", .configuration),
        (403, "BadCertificateEnvironment", .configuration),
        (403, "BadEnvironmentKeyIdInToken", .configuration),
        (403, "ExpiredProviderToken", .staleCredential), (403, "Forbidden", .configuration),
        (403, "InvalidProviderToken", .configuration), (403, "MissingProviderToken", .configuration),
        (403, "UnrelatedKeyIdInToken", .configuration), (404, "BadPath", .configuration),
        (405, "MethodNotAllowed", .configuration), (410, "ExpiredToken", .tokenGone(at: nil)),
        (410, "Unregistered", .tokenGone(at: nil)), (413, "PayloadTooLarge", .failed),
        (429, "TooManyProviderTokenUpdates", .later(seconds: 60, scope: .app)),
        (429, "TooManyRequests", .later(seconds: 30, scope: .message)),
        (500, "InternalServerError", .later(seconds: nil, scope: .message)),
        (503, "ServiceUnavailable", .later(seconds: nil, scope: .app)),
        (503, "Shutdown", .later(seconds: nil, scope: .message)),
        // Words that Apple may add.
        (400, "NewWord", .suspect), (403, "NewWord", .configuration), (404, "NewWord", .configuration),
        (405, "NewWord", .configuration), (410, "NewWord", .later(seconds: 60, scope: .message)),
        (413, "NewWord", .failed), (418, "NewWord", .configuration), (302, "NewWord", .configuration),
        (429, "NewWord", .later(seconds: 30, scope: .message)), (202, "NewWord", .unclear),
        (500, "NewWord", .later(seconds: nil, scope: .app)),
        (599, "NewWord", .later(seconds: nil, scope: .app)),
    ]

    @Test(arguments: apple)
    func `each answer of Apple's has its meaning`(_ status: Int, _ reason: String, _ verdict: PushVerdict) {
        let found = APNsErrors.read(
            status: status, body: ["reason": .string(reason)], isEmpty: false, retryAfter: nil)
        #expect(found == PushFinding(verdict, reason))
    }

    @Test func `every reason of Apple's table is tried`() {
        #expect(Set(APNsErrors.reasons.keys) == Set(Self.apple.map(\.reason)).subtracting(["NewWord"]))
    }

    @Test(arguments: ["Unregistered", "ExpiredToken", "NewWord"])
    func `the time of a token's end is Apple's, in milliseconds`(_ reason: String) {
        let found = APNsErrors.read(
            status: 410, body: ["reason": .string(reason), "timestamp": 1_700_000_000_123], isEmpty: false,
            retryAfter: nil)
        #expect(found == PushFinding(.tokenGone(at: Instant(milliseconds: 1_700_000_000_123)), reason))
    }

    @Test func `an answer without Apple's word clears no token, whatever its status`() {
        for status in 100...599 {
            let found = APNsErrors.read(status: status, body: nil, isEmpty: false, retryAfter: nil)
            if case .tokenGone = found.verdict { Issue.record("status \(status)") }
            #expect(found.verdict != .accepted || status == 200)
        }
    }

    // MARK: Google

    private static func google(
        _ status: Int, _ state: String, _ code: String? = nil, field: String? = nil, more: [JSONValue] = []
    ) -> JSONObject {
        var details = more
        if let code {
            details.append([
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code),
            ])
        }
        if let field {
            details.append([
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [["field": .string(field), "description": "Invalid value"]],
            ])
        }
        return [
            "error": [
                "code": .integer(Int64(status)), "details": .array(details), "message": "no",
                "status": .string(state),
            ]
        ]
    }

    static let google: [(status: Int, body: JSONObject, verdict: PushVerdict)] = [
        (404, google(404, "NOT_FOUND", "UNREGISTERED"), .tokenGone(at: nil)),
        (404, google(404, "NOT_FOUND"), .configuration),
        (400, google(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"), .suspect),
        (400, google(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field: "message.token"), .suspect),
        (400, google(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", field: "message.android.ttl"), .failed),
        (400, google(400, "INVALID_ARGUMENT", field: "message.android.ttl"), .failed),
        (400, google(400, "INVALID_ARGUMENT"), .suspect),
        (403, google(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"), .suspect),
        (403, google(403, "PERMISSION_DENIED"), .configuration),
        (401, google(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"), .configuration),
        (401, google(401, "UNAUTHENTICATED", "APNS_AUTH_ERROR"), .configuration),
        (401, google(401, "UNAUTHENTICATED"), .staleCredential),
        (429, google(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), .later(seconds: 60, scope: .app)),
        (429, google(429, "RESOURCE_EXHAUSTED"), .later(seconds: 60, scope: .app)),
        (
            429,
            google(
                429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED",
                more: [
                    [
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [["subject": "device", "description": "Device message rate exceeded"]],
                    ]
                ]), .later(seconds: 60, scope: .message)
        ),
        (
            503,
            google(
                503, "UNAVAILABLE", "UNAVAILABLE",
                more: [["@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "42s"]]),
            .later(seconds: 42, scope: .app)
        ),
        (503, google(503, "UNAVAILABLE", "UNAVAILABLE"), .later(seconds: 10, scope: .app)),
        (500, google(500, "INTERNAL", "INTERNAL"), .later(seconds: 10, scope: .message)),
        (500, google(500, "INTERNAL"), .later(seconds: 10, scope: .app)),
        (400, google(400, "INVALID_ARGUMENT", "NEW_WORD"), .suspect),
        (200, google(200, "OK"), .unclear), (200, [:], .unclear),
        (200, ["name": "projects/p/messages/1"], .accepted),
        (302, [:], .configuration), (404, [:], .configuration),
    ]

    @Test(arguments: google)
    func `each answer of Google's has its meaning`(_ status: Int, _ body: JSONObject, _ verdict: PushVerdict)
    {
        #expect(
            FCMErrors.read(status: status, body: body, retryAfter: nil, replaces: true).verdict == verdict)
    }

    @Test func `every code of FCM's is tried`() {
        let tried = Self.google.compactMap { row in
            row.body["error"]?["details"]?.arrayValue?.compactMap { $0["errorCode"]?.stringValue }.first
        }
        #expect(Set(tried) == Set(FCMErrors.codes.keys).union(["NEW_WORD"]))
    }

    @Test func `Retry-After is honoured above the floors and never below`() {
        func pause(_ status: Int, _ code: String, _ retryAfter: Int) -> PushVerdict {
            FCMErrors.read(
                status: status, body: Self.google(status, "X", code), retryAfter: retryAfter, replaces: true
            ).verdict
        }
        #expect(pause(429, "QUOTA_EXCEEDED", 5) == .later(seconds: 60, scope: .app))
        #expect(pause(429, "QUOTA_EXCEEDED", 500) == .later(seconds: 500, scope: .app))
        #expect(pause(503, "UNAVAILABLE", 5) == .later(seconds: 10, scope: .app))
        #expect(pause(503, "UNAVAILABLE", 50) == .later(seconds: 50, scope: .app))
    }

    @Test(arguments: [500, 502, 503])
    func `an error of Google's own is unclear for a message that nothing replaces`(_ status: Int) {
        for body in [Self.google(status, "UNAVAILABLE", "UNAVAILABLE"), [:]] {
            let found = FCMErrors.read(status: status, body: body, retryAfter: nil, replaces: false)
            #expect(found.verdict == .unclear)
        }
    }

    // MARK: Expo

    @Test(
        arguments: [
            ("DeviceNotRegistered", .tokenGone(at: nil)), ("MessageTooBig", .failed),
            ("DeveloperError", .failed),
            ("MessageRateExceeded", .later(seconds: 30, scope: .message)),
            ("InvalidCredentials", .configuration),
            ("MismatchSenderId", .suspect), ("ProviderError", .later(seconds: 30, scope: .message)),
            ("ExpoError", .later(seconds: 30, scope: .message)), ("NewWord", .suspect),
        ] as [(String, PushVerdict)])
    func `each ticket of Expo's has its meaning`(_ word: String, _ verdict: PushVerdict) {
        let ticket: JSONObject = [
            "status": "error", "message": "ExponentPushToken[a] says no", "details": ["error": .string(word)],
        ]
        #expect(ExpoErrors.read(ticket) == PushFinding(verdict, word))
    }

    @Test func `a ticket without a status or without a name is not taken for an end`() {
        #expect(ExpoErrors.read(["status": "ok", "id": "1"]).verdict == .accepted)
        #expect(ExpoErrors.read([:]).verdict == .unclear)
        #expect(ExpoErrors.read(["status": "error", "message": "x"]).verdict == .suspect)
    }

    @Test(
        arguments: [
            (401, "UNAUTHORIZED", .configuration), (403, "FORBIDDEN", .configuration),
            (404, "X", .configuration),
            (400, "VALIDATION_ERROR", .suspect), (413, "X", .failed),
            (429, "TOO_MANY_REQUESTS", .later(seconds: 1, scope: .app)),
            (500, "INTERNAL_SERVER_ERROR", .later(seconds: 10, scope: .app)), (200, "X", .unclear),
        ] as [(Int, String, PushVerdict)])
    func `each request of Expo's that failed whole has its meaning`(
        _ status: Int, _ code: String, _ verdict: PushVerdict
    ) {
        let body: JSONObject = ["errors": [["code": .string(code), "message": "no"]]]
        #expect(
            ExpoErrors.read(status: status, body: body, retryAfter: nil, mayRepeat: true)
                == PushFinding(verdict, code))
    }

    // MARK: Words

    @Test(arguments: [
        ("BadDeviceToken", "BadDeviceToken"), ("a\"b\r\nc", "abc"), ("токен", ""),
        ("ExponentPushToken[x]", "ExponentPushTokenx"),
        (String(repeating: "a", count: 100), String(repeating: "a", count: 64)), ("a\u{301}", "a"),
        ("no auth for +4790000001", "noauthfor"), ("to (47) 900-00.001!", "to"),
        ("code 21408, 30007", "code2140830007"),
        ("Bad token \(String(repeating: "0a", count: 32))", "Badtoken"),
        ("unknown ola.n@example.org here", "unknownhere"),
    ])
    func `a provider's word is bounded, and of letters, digits and dots`(_ text: String, _ bounded: String) {
        #expect(ProviderReason.bounded(text) == bounded)
    }

    @Test(
        arguments: [
            ("7", 7), ("0", 0), ("-1", 0), ("Sun, 29 Nov 2026 12:00:30 GMT", 30),
            ("Sun, 29 Nov 2026 11:00:00 GMT", 0),
            ("soon", nil), ("", nil), ("Sun, 29 Nov 2026 12:00:30 CET", nil),
            ("Sun, 99 Foo 2026 12:00:30 GMT", nil),
        ] as [(String, Int?)])
    func `Retry-After is a number of seconds or a date`(_ text: String, _ seconds: Int?) {
        #expect(RetryAfter.seconds(text, at: Instant(rfc3339: "2026-11-29T12:00:00Z")!) == seconds)
    }
}

@Suite struct SuspectAnswersTests {
    private static let minute: Int64 = 60_000

    @Test func `where nothing was taken yet, a wrong token cannot be told from a wrong setting, and waits`() {
        var suspects = SuspectAnswers()
        for _ in 1...4 {
            #expect(
                suspects.suspected("BadDeviceToken", at: Self.minute)
                    == .later(reason: "BadDeviceToken", seconds: 60, scope: .message))
        }
        #expect(
            suspects.suspected("BadDeviceToken", at: Self.minute) == .misconfigured(reason: "BadDeviceToken"))
    }

    @Test func `where others were taken, one wrong token ends its own message`() {
        var suspects = SuspectAnswers()
        for _ in 1...20 { suspects.accepted(at: 0) }
        for _ in 1...20 {
            #expect(suspects.suspected("BadDeviceToken", at: 1) == .failed(reason: "BadDeviceToken"))
        }
    }

    @Test func `most answers of a minute or two are a spike, which counts over the border of two windows`() {
        var suspects = SuspectAnswers()
        suspects.accepted(at: 10 * Self.minute)
        for _ in 1...3 { _ = suspects.suspected("X", at: 10 * Self.minute + 59_000) }
        #expect(suspects.suspected("X", at: 11 * Self.minute) == .failed(reason: "X"))
        #expect(suspects.suspected("X", at: 11 * Self.minute) == .misconfigured(reason: "X"))
        // Two windows on, the spike is over.
        #expect(suspects.suspected("X", at: 13 * Self.minute) == .failed(reason: "X"))
    }

    @Test func `an accepted message proves the configuration for an hour`() {
        var suspects = SuspectAnswers()
        suspects.accepted(at: 0)
        #expect(suspects.suspected("X", at: 3_599_999) == .failed(reason: "X"))
        #expect(suspects.suspected("X", at: 3_600_000) == .later(reason: "X", seconds: 60, scope: .message))
        suspects.accepted(at: 3_600_001)
        suspects.reset()
        #expect(suspects.suspected("X", at: 3_600_002) == .later(reason: "X", seconds: 60, scope: .message))
    }
}

@Suite struct DeadAddressTests {
    private static let minute: Int64 = 60_000
    private static let gone = DeliveryOutcome.tokenGone(reason: "Unregistered", at: Instant(milliseconds: 1))

    /// - Parameter id: `nil` for a message that was not tried before.
    private func isBelieved(
        _ suspects: inout SuspectAnswers, of id: String? = nil, at now: Int64 = 0
    ) -> Bool {
        let outcome = suspects.dead(Self.gone, of: id ?? UUID().uuidString, at: now)
        guard case .misconfigured(let reason) = outcome else { return outcome == Self.gone }
        #expect(reason.hasPrefix("dead_addresses_doubted: Unregistered of "))
        #expect(suspects.doubt == reason)
        return false
    }

    private func proven() -> SuspectAnswers {
        var suspects = SuspectAnswers()
        suspects.accepted(at: 0)
        return suspects
    }

    @Test
    func
        `before anything was taken, the fifth dead address in a row is not believed, however long they take`()
    {
        var suspects = SuspectAnswers()
        let believed = (1...6).map { isBelieved(&suspects, at: Int64($0) * 24 * 60 * Self.minute) }
        #expect(believed == [true, true, true, true, false, false])
    }

    @Test func `after something was taken, the twentieth in a row is not believed`() {
        var suspects = proven()
        let believed = (1...300).map { isBelieved(&suspects, at: Int64($0) * Self.minute) }
        #expect(believed == (1...300).map { $0 < 20 })
    }

    /// Two dead to one alive, for as long as it lasts; and a little more.
    @Test func `two dead addresses to each living one are believed, and more are not`() {
        var suspects = proven()
        for _ in 1...300 {
            #expect(isBelieved(&suspects) && isBelieved(&suspects))
            suspects.accepted(at: 0)
        }
        suspects = proven()
        var believed: [Bool] = []
        for _ in 1...300 {
            believed += (1...3).map { _ in isBelieved(&suspects) }
            suspects.accepted(at: 0)
        }
        #expect(believed.firstIndex(of: false) == 19)
        #expect(!believed.dropFirst(19).contains(true))
    }

    @Test func `old answers do not count for the share`() {
        var suspects = proven()
        for _ in 1...19 { #expect(isBelieved(&suspects)) }
        suspects.accepted(at: 1)
        #expect(isBelieved(&suspects, at: 2 * Self.minute))
        #expect(suspects.doubt == nil)
    }

    @Test func `a doubt lasts until twenty more addresses are alive than dead, whatever the time`() {
        var suspects = proven()
        for _ in 1...20 { _ = isBelieved(&suspects) }
        let later = 600 * Self.minute
        for _ in 1...10 { suspects.accepted(at: later) }
        #expect(!isBelieved(&suspects, at: later))
        for _ in 1...10 { suspects.accepted(at: later) }
        #expect(suspects.doubt != nil)
        suspects.accepted(at: later)
        #expect(suspects.doubt == nil)
        #expect(isBelieved(&suspects, at: later))
    }

    @Test func `a message that is tried again counts once`() {
        var suspects = proven()
        #expect((1...100).allSatisfy { _ in isBelieved(&suspects, of: "m") })
        for _ in 1...18 { #expect(isBelieved(&suspects)) }
        #expect(!isBelieved(&suspects))
        // It does not hold up the end of the doubt either.
        for _ in 1...20 {
            #expect(!isBelieved(&suspects, of: "m"))
            suspects.accepted(at: 1)
        }
        #expect(isBelieved(&suspects, of: "m"))
        // As many are known as the bound says.
        for number in 1...SuspectAnswers.countedMax {
            suspects.accepted(at: 1)
            #expect(isBelieved(&suspects, of: "\(number)", at: 1))
        }
    }

    @Test func `an operator's word counts for an hour, and a change of the configuration forgets the doubt`()
    {
        var suspects = SuspectAnswers()
        for _ in 1...5 { _ = isBelieved(&suspects) }
        suspects.confirmDead(at: 0)
        #expect(suspects.doubt == nil)
        for _ in 1...300 { #expect(isBelieved(&suspects, at: 3_599_999)) }
        let after = (1...5).map { _ in isBelieved(&suspects, at: 3_600_000) }
        #expect(after == [true, true, true, true, false])
        suspects.reset()
        #expect(suspects.doubt == nil)
        // The word outlives a change of credentials.
        suspects.confirmDead(at: 3_600_000)
        suspects.reset()
        for _ in 1...300 { #expect(isBelieved(&suspects, at: 3_600_000)) }
    }
}

@Suite struct TokenBucketTests {
    @Test func `a full bucket gives its burst at once, and then its rate`() {
        var bucket = TokenBucket(perSecond: 600, burst: 100)
        #expect(bucket.take(100, at: 5_000) == nil)
        #expect(bucket.take(60, at: 5_000) == 100)
        #expect(bucket.take(60, at: 5_099) == 1)
        #expect(bucket.take(60, at: 5_100) == nil)
    }

    @Test func `a bucket never holds more than its burst, and a clock that stands gives nothing`() {
        var bucket = TokenBucket(perSecond: 10, burst: 10)
        #expect(bucket.take(10, at: 0) == nil)
        #expect(bucket.take(10, at: .max / 2) == nil)
        #expect(bucket.take(1, at: .max / 2) == 100)
    }
}

@Suite struct ProviderTokenScheduleTests {
    @Test func `a provider token is due after 50 minutes and replaced after 20 at the earliest`() {
        let schedule = ProviderTokenSchedule(issuedAt: 1_000)
        #expect(!schedule.isDue(at: 1_000 + 50 * 60_000 - 1))
        #expect(schedule.isDue(at: 1_000 + 50 * 60_000))
        #expect(!schedule.mayRenew(at: 1_000 + 20 * 60_000 - 1))
        #expect(schedule.mayRenew(at: 1_000 + 20 * 60_000))
    }
}
