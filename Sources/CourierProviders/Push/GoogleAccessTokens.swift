import CanonicalJSON
import CourierModel
import GateVocabulary

/// Why there is no access token: an outcome for every message that needs it.
struct AccessTokenFault: Error {
    var outcome: DeliveryOutcome

    /// The same fault for a message that comes before the next renewal, which is so far away.
    func again(inMilliseconds left: Int64) -> AccessTokenFault {
        guard case .later(let reason, _, let scope) = outcome else { return self }
        return AccessTokenFault(
            outcome: .later(reason: reason, seconds: Int((left + 999) / 1_000), scope: scope))
    }
}

/// The access token of one service account (RFC 7523, as Google's "Using OAuth 2.0 for server to server applications" has it).
///
/// One renewal is under way at a time, and all requests share its result. It begins five minutes before the end, while the old
/// token is still used.
actor GoogleAccessTokens {
    struct Token: Sendable {
        var text: String
        /// Uptime in milliseconds.
        var goodUntil: Int64
        /// Tells a token from the next one.
        var number: Int
    }

    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let renewalMilliseconds: Int64 = 300_000
    /// A token is no longer used so shortly before its end: the request has a way to go.
    private static let marginMilliseconds: Int64 = 10_000
    /// How often a renewal is tried while the old token still serves.
    private static let earlyPauseMilliseconds: Int64 = 10_000
    /// Google's longest, in seconds.
    private static let lifeSeconds: Int64 = 3_600
    /// After a renewal that failed the next one waits, in milliseconds: twice as long each time, up to the longest. A pause
    /// that the token server names counts when it is longer, up to ``Circuit/retryAfterMillisecondsMax``.
    private static let (firstPauseMilliseconds, pauseMillisecondsMax): (Int64, Int64) = (1_000, 30_000)
    /// No token is replaced for so long after Google has refused a new one as well, in milliseconds.
    private static let replacementPauseMilliseconds: Int64 = 60_000
    /// Bound on the descriptors of its connections; see ``ProviderConnections/descriptorCountMax``.
    static let descriptorCountMax = 2 * ConnectionLimits.http1.connectionsMax

    private var account: ServiceAccount
    private var connections: ProviderConnections
    private let trust: TLSTrust
    private let clock: ProviderClock
    private var token: Token?
    private var count = 0
    /// Uptime in milliseconds.
    private var renewNotBefore: Int64 = 0
    /// The fault of the last renewal, and the uptime in milliseconds up to which it answers the next ones.
    private var refusal: (fault: AccessTokenFault, until: Int64)?
    /// Renewals that failed in a row.
    private var failureCount = 0
    /// Uptime in milliseconds.
    private var replaceNotBefore: Int64 = 0
    private var renewal: Task<Result<Token, AccessTokenFault>, Never>?

    init(_ account: ServiceAccount, trust: TLSTrust, clock: ProviderClock) {
        self.account = account
        self.trust = trust
        self.clock = clock
        connections = ProviderConnections(account.tokenEndpoint, .http1, trust: trust)
    }

    func current() async throws(AccessTokenFault) -> Token {
        let now = clock.uptimeMilliseconds()
        if let token, now < token.goodUntil - Self.marginMilliseconds {
            if now >= max(token.goodUntil - Self.renewalMilliseconds, renewNotBefore) {
                renewNotBefore = now + Self.earlyPauseMilliseconds
                startRenewal()
            }
            return token
        }
        return try await renewed()
    }

    /// - Returns: The token to try in place of the refused one, whoever had it made; `nil` where Google refuses new ones too.
    func replacement(of refused: Token) async throws(AccessTokenFault) -> Token? {
        if let token, token.number > refused.number { return token }
        guard renewal != nil || clock.uptimeMilliseconds() >= replaceNotBefore else { return nil }
        return try await renewed()
    }

    /// Google has refused a new token as it did the one before: a third would be refused like them.
    func refusedAgain() {
        replaceNotBefore = clock.uptimeMilliseconds() + Self.replacementPauseMilliseconds
    }

    private func renewed() async throws(AccessTokenFault) -> Token {
        if renewal == nil, let refusal {
            let left = refusal.until - clock.uptimeMilliseconds()
            if left > 0 { throw refusal.fault.again(inMilliseconds: left) }
        }
        return try await startRenewal().value.get()
    }

    func replace(_ account: ServiceAccount) {
        connections.close()
        self.account = account
        connections = ProviderConnections(account.tokenEndpoint, .http1, trust: trust)
        token = nil
        renewal = nil
        refusal = nil
        (failureCount, replaceNotBefore) = (0, 0)
    }

    func close() { connections.close() }

    @discardableResult
    private func startRenewal() -> Task<Result<Token, AccessTokenFault>, Never> {
        if let renewal { return renewal }
        let account = account
        let task = Task { () -> Result<Token, AccessTokenFault> in
            let result = await exchange(account)
            // Another account may have come meanwhile; its requests want its own token.
            if self.account.clientEmail == account.clientEmail, self.account.keyID == account.keyID {
                renewal = nil
                conclude(result)
            }
            return result
        }
        renewal = task
        return task
    }

    private func conclude(_ result: Result<Token, AccessTokenFault>) {
        switch result {
        case .success(let token):
            self.token = token
            (refusal, failureCount) = (nil, 0)
        case .failure(let fault):
            let pause = min(
                Self.firstPauseMilliseconds << Int64(min(failureCount, 16)), Self.pauseMillisecondsMax)
            failureCount += 1
            var stated: Int64 = 0
            if case .later(_, let seconds?, _) = fault.outcome {
                stated = min(Int64(seconds) * 1_000, Circuit.retryAfterMillisecondsMax)
            }
            refusal = (fault, clock.uptimeMilliseconds() + max(pause, stated))
        }
    }

    private func exchange(_ account: ServiceAccount) async -> Result<Token, AccessTokenFault> {
        let now = clock.now()
        var header: JSONObject = ["alg": "RS256", "typ": "JWT"]
        if let keyID = account.keyID { header["kid"] = .string(keyID) }
        let claims: JSONObject = [
            "aud": .string(account.tokenURI), "exp": .integer(now.seconds + Self.lifeSeconds),
            "iat": .integer(now.seconds), "iss": .string(account.clientEmail), "scope": .string(Self.scope),
        ]
        guard
            case .success(let assertion) = Result(catching: {
                try SignedToken.rs256(header: header, claims: claims, key: account.key)
            })
        else { return .failure(AccessTokenFault(outcome: .misconfigured(reason: "oauth_key_cannot_sign"))) }
        let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
        do {
            let answer = try await connections.exchange(
                ProviderRequest(
                    path: account.tokenPath,
                    headers: [("content-type", "application/x-www-form-urlencoded")],
                    body: Array(form.utf8), timeoutMilliseconds: PushLimits.credentialMilliseconds))
            return read(answer)
        } catch {
            let reason = "oauth_unreachable: \(error.why)"
            if case .unusable = error {
                return .failure(AccessTokenFault(outcome: .misconfigured(reason: reason)))
            }
            return .failure(
                AccessTokenFault(outcome: .later(reason: reason, seconds: nil, scope: .app)))
        }
    }

    /// `{"access_token":…,"expires_in":3599,"token_type":"Bearer"}`, or `{"error":"invalid_grant","error_description":…}`
    /// (RFC 6749, section 5).
    private func read(_ answer: ProviderAnswer) -> Result<Token, AccessTokenFault> {
        if answer.status == 200, let json = answer.json, let text = json["access_token"]?.stringValue,
            !text.isEmpty, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
        {
            let seconds = json["expires_in"]?.integerValue ?? Self.lifeSeconds
            count += 1
            return .success(
                Token(
                    text: text, goodUntil: clock.uptimeMilliseconds() + min(seconds, 86_400) * 1_000,
                    number: count))
        }
        let word = answer.json?["error"]?.stringValue.map(ProviderReason.bounded)
        let reason = "oauth_\(word ?? "status_\(answer.status)")"
        let outcome: DeliveryOutcome =
            switch answer.status {
            case 429, 500...:
                .later(
                    reason: reason,
                    seconds: RetryAfter.seconds(answer.header("retry-after"), at: clock.now()), scope: .app)
            case 200..<300: .later(reason: "oauth_unreadable_answer", seconds: nil, scope: .app)
            default:
                .misconfigured(
                    reason: word == "invalid_grant"
                        ? "\(reason): check the account's key; \(answer.clockHint(clock.now()))" : reason)
            }
        return .failure(AccessTokenFault(outcome: outcome))
    }
}
