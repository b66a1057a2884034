import CanonicalJSON
import CourierModel
import GateVocabulary

/// Why there is no access token: an outcome for every message that needs it.
struct AccessTokenFault: Error {
    var outcome: DeliveryOutcome
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

    private var account: ServiceAccount
    private var connections: ProviderConnections
    private let trust: TLSTrust
    private let clock: ProviderClock
    private var token: Token?
    private var count = 0
    /// Uptime in milliseconds.
    private var renewNotBefore: Int64 = 0
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
        return try await startRenewal().value.get()
    }

    /// - Returns: The token to try in place of the refused one, whoever had it made.
    func replacement(of refused: Token) async throws(AccessTokenFault) -> Token {
        if let token, token.number > refused.number { return token }
        return try await startRenewal().value.get()
    }

    func replace(_ account: ServiceAccount) {
        connections.close()
        self.account = account
        connections = ProviderConnections(account.tokenEndpoint, .http1, trust: trust)
        token = nil
        renewal = nil
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
                if case .success(let token) = result { self.token = token }
            }
            return result
        }
        renewal = task
        return task
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
            return .failure(
                AccessTokenFault(
                    outcome: .later(reason: "oauth_unreachable: \(error.why)", seconds: nil, scope: .app)))
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
