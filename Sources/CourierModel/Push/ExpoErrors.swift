package import CanonicalJSON

/// What Expo's push tickets, receipts and errors mean (Expo, "Sending notifications with Expo's Push Service", "Errors").
package enum ExpoErrors {
    /// By `details.error` of a ticket or receipt with the status `error`.
    package static let details: [String: PushVerdict] = [
        "DeviceNotRegistered": .tokenGone(at: nil),
        "MessageTooBig": .failed,
        "DeveloperError": .failed,
        "MessageRateExceeded": .later(seconds: 30, scope: .message),
        "InvalidCredentials": .configuration,
        "MismatchSenderId": .suspect,
        "ProviderError": .later(seconds: 30, scope: .message),
        "ExpoError": .later(seconds: 30, scope: .message),
    ]

    /// One ticket of an answer, or one receipt: `{"status":"ok","id":…}` or `{"status":"error","message":…,"details":…}`.
    /// `message` is not passed on, because it names the token.
    package static func read(_ ticket: JSONObject) -> PushFinding {
        switch ticket["status"]?.stringValue {
        case "ok": return PushFinding(.accepted, "")
        case "error":
            guard let word = ticket["details"]?.objectValue?["error"]?.stringValue.map(ProviderReason.bounded)
            else {
                return PushFinding(.suspect, "error_without_name")
            }
            return PushFinding(details[word] ?? .suspect, word)
        default: return PushFinding(.unclear, "unreadable_ticket")
        }
    }

    /// A request that failed whole, so that none of its messages was taken: `{"errors":[{"code":…}]}`.
    /// - Parameter mayRepeat: Whether second copies replace the first ones: an error of the server's own does not say what it did
    ///   before.
    package static func read(
        status: Int, body: JSONObject?, retryAfter: Int?, mayRepeat: Bool
    ) -> PushFinding {
        let word = body?["errors"]?.arrayValue?.first?.objectValue?["code"]?.stringValue.map(
            ProviderReason.bounded)
        let reason = word ?? "status_\(status)"
        switch status {
        case 200..<300: return PushFinding(.unclear, reason)
        case 400: return PushFinding(.suspect, reason)
        case 413: return PushFinding(.failed, reason)
        case 429: return PushFinding(.later(seconds: max(1, retryAfter ?? 1), scope: .app), reason)
        case 500...:
            return PushFinding(
                mayRepeat ? .later(seconds: max(10, retryAfter ?? 0), scope: .app) : .unclear, reason)
        default: return PushFinding(.configuration, reason)
        }
    }
}
