package import CanonicalJSON
import GateVocabulary

/// What Apple's answers mean ("Handling notification responses from APNs", tables 4 and 5 of Apple's documentation).
package enum APNsErrors {
    /// By Apple's word. `BadDeviceToken` and `DeviceTokenNotForTopic` are suspect: a token of the other environment or of
    /// another app gets them, and so does every token under a wrong setting.
    package static let reasons: [String: PushVerdict] = [
        // The token. Its time comes with the answer.
        "Unregistered": .tokenGone(at: nil),
        "ExpiredToken": .tokenGone(at: nil),
        "BadDeviceToken": .suspect,
        "DeviceTokenNotForTopic": .suspect,
        // The provider token and the account.
        "ExpiredProviderToken": .staleCredential,
        "InvalidProviderToken": .configuration,
        "MissingProviderToken": .configuration,
        "UnrelatedKeyIdInToken": .configuration,
        "BadEnvironmentKeyIdInToken": .configuration,
        "BadCertificate": .configuration,
        "BadCertificateEnvironment": .configuration,
        "Forbidden": .configuration,
        // Something in between: the path and the method are the same for every push.
        "BadPath": .configuration,
        "MethodNotAllowed": .configuration,
        // The app's topic.
        "BadTopic": .configuration,
        "MissingTopic": .configuration,
        "TopicDisallowed": .configuration,
        "TopicMismatch": .configuration,
        // What the gateway composed.
        "BadCollapseId": .failed,
        "BadExpirationDate": .failed,
        "BadMessageId": .failed,
        "BadPriority": .failed,
        "DuplicateHeaders": .failed,
        "InvalidPushType": .failed,
        "MissingDeviceToken": .failed,
        "PayloadEmpty": .failed,
        "PayloadTooLarge": .failed,
        // Too much at once, for one device and for the provider token: a token is kept for 20 minutes at least.
        "TooManyRequests": .later(seconds: 30, scope: .message),
        "TooManyProviderTokenUpdates": .later(seconds: 60, scope: .app),
        // Apple's own state.
        "IdleTimeout": .later(seconds: nil, scope: .message),
        "InternalServerError": .later(seconds: nil, scope: .message),
        "ServiceUnavailable": .later(seconds: nil, scope: .app),
        "Shutdown": .later(seconds: nil, scope: .message),
    ]

    /// - Parameters:
    ///   - body: `{"reason":…,"timestamp":…}`; empty with 200.
    ///   - retryAfter: In seconds, where the answer has it.
    package static func read(
        status: Int, body: JSONObject?, isEmpty: Bool, retryAfter: Int?
    ) -> PushFinding {
        let word = body.flatMap { $0["reason"] }.flatMap(\.stringValue).map(ProviderReason.bounded)
        if status == 200 {
            return isEmpty ? PushFinding(.accepted, "") : PushFinding(.unclear, word ?? "body_with_200")
        }
        guard let word, !word.isEmpty else { return PushFinding(unnamed(status), "status_\(status)") }
        switch reasons[word] {
        case .tokenGone:
            let at = body?["timestamp"]?.integerValue.map { Instant(milliseconds: $0) }
            return PushFinding(.tokenGone(at: at), word)
        case .later(let seconds, let scope):
            let longest = [seconds, retryAfter].compactMap(\.self).max()
            return PushFinding(.later(seconds: longest, scope: scope), word)
        case let verdict?: return PushFinding(verdict, word)
        // Apple adds words. A new one of 410 still speaks of the token, and says since when.
        case nil:
            guard status == 410, let at = body?["timestamp"]?.integerValue else {
                return PushFinding(unnamed(status), word)
            }
            return PushFinding(.tokenGone(at: Instant(milliseconds: at)), word)
        }
    }

    /// By the status alone. Nothing of it clears a token: an answer without Apple's word may be another server's.
    private static func unnamed(_ status: Int) -> PushVerdict {
        switch status {
        case 400: .suspect
        case 413: .failed
        case 429: .later(seconds: 30, scope: .message)
        case 410: .later(seconds: 60, scope: .message)
        case 201..<300: .unclear
        case 500...: .later(seconds: nil, scope: .app)
        default: .configuration
        }
    }
}
