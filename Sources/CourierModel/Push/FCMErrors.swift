package import CanonicalJSON

/// What the answers of FCM HTTP v1 mean ("Error codes for the FCM v1 API" and `google.rpc.Status` with its details).
package enum FCMErrors {
    /// Shortest pause after an exceeded quota, in seconds (FCM, "Scale FCM").
    package static let quotaSecondsMin = 60
    /// Shortest pause after an error of Google's own, in seconds (the same page).
    package static let serverSecondsMin = 10

    /// By `errorCode` of the detail `google.firebase.fcm.v1.FcmError`.
    package static let codes: [String: PushVerdict] = [
        "UNREGISTERED": .tokenGone(at: nil),
        "INVALID_ARGUMENT": .suspect,
        "SENDER_ID_MISMATCH": .suspect,
        "THIRD_PARTY_AUTH_ERROR": .configuration,
        "APNS_AUTH_ERROR": .configuration,
        "QUOTA_EXCEEDED": .later(seconds: quotaSecondsMin, scope: .app),
        "UNAVAILABLE": .later(seconds: serverSecondsMin, scope: .app),
        "INTERNAL": .later(seconds: serverSecondsMin, scope: .message),
    ]

    /// - Parameters:
    ///   - retryAfter: In seconds, where the answer has it.
    ///   - replaces: Whether a second copy replaces the first. Google has delivered messages that it answered 503, so without
    ///     that such an answer is unclear.
    package static func read(
        status: Int, body: JSONObject?, retryAfter: Int?, replaces: Bool
    ) -> PushFinding {
        guard let error = body?["error"]?.objectValue else {
            if status == 200, body?["name"]?.stringValue != nil { return PushFinding(.accepted, "") }
            return PushFinding(unnamed(status, retryAfter, replaces), "status_\(status)")
        }
        if status == 200 { return PushFinding(.unclear, "error_with_200") }
        let details = error["details"]?.arrayValue?.compactMap(\.objectValue) ?? []
        func detail(_ type: String) -> JSONObject? {
            details.first { $0["@type"]?.stringValue?.hasSuffix("." + type) == true }
        }
        let delay = detail("RetryInfo")?["retryDelay"]?.stringValue.flatMap { Int($0.prefix { $0.isNumber }) }
            .map(RetryAfter.bounded)
        let pause = [retryAfter, delay].compactMap(\.self).max()
        let state = ProviderReason.bounded(error["status"]?.stringValue ?? "status_\(status)")
        guard let code = detail("FcmError")?["errorCode"]?.stringValue.map(ProviderReason.bounded),
            let verdict = codes[code]
        else {
            if status == 400, let violations = detail("BadRequest") {
                return PushFinding(faultOfBody(violations) ? .failed : .suspect, state)
            }
            return PushFinding(unnamed(status, pause, replaces), state)
        }
        switch verdict {
        case .later(let seconds, let scope):
            if status >= 500, !replaces { return PushFinding(.unclear, code) }
            let longest = max(seconds ?? 0, pause ?? 0)
            // One device may have too many messages while the project has room.
            let isDevice = detail("QuotaFailure").map { "\($0)".lowercased().contains("device") } ?? false
            return PushFinding(.later(seconds: longest, scope: isDevice ? .message : scope), code)
        case .suspect:
            let isBody = detail("BadRequest").map(faultOfBody) ?? false
            return PushFinding(isBody ? .failed : .suspect, code)
        default: return PushFinding(verdict, code)
        }
    }

    /// Whether a field that the gateway composed is at fault, and not the token, which the courier put in.
    private static func faultOfBody(_ badRequest: JSONObject) -> Bool {
        let fields =
            badRequest["fieldViolations"]?.arrayValue?.compactMap { $0.objectValue?["field"]?.stringValue }
            ?? []
        return !fields.isEmpty && !fields.contains { $0 == "message.token" || $0 == "message" }
    }

    private static func unnamed(_ status: Int, _ pause: Int?, _ replaces: Bool) -> PushVerdict {
        switch status {
        case 200..<300: .unclear
        case 400: .suspect
        case 401: .staleCredential
        case 413: .failed
        case 429: .later(seconds: max(quotaSecondsMin, pause ?? 0), scope: .app)
        case 500...:
            replaces ? .later(seconds: max(serverSecondsMin, pause ?? 0), scope: .app) : .unclear
        // 404 without FCM's word is a project that does not exist; 403 is an account without the right.
        default: .configuration
        }
    }
}
