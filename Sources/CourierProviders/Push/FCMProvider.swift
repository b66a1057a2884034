import CanonicalJSON
package import CourierModel
import GateVocabulary
import Synchronization

/// One app's way to Google: FCM HTTP v1.
package final class FCMProvider: DeliveryProvider {
    /// FCM's registration tokens have some 160 characters; nothing bounds them in writing.
    private static let tokenBytesMax = 1_024
    /// 600,000 a minute for a project (FCM, "Throttling and scaling"); a second's worth at once.
    private static let perSecond = 10_000

    private let configuration: FCMConfiguration
    private let clock: ProviderClock
    private let account: Mutex<ServiceAccount>
    private let tokens: GoogleAccessTokens
    private let connections: ProviderConnections
    private let suspects = Mutex(SuspectAnswers())
    private let bucket: Mutex<TokenBucket>

    /// - Throws: What keeps the service account, the trust file or the endpoint from being used.
    package init(
        _ configuration: FCMConfiguration, clock: ProviderClock = .system, limits: ConnectionLimits = .http2
    ) throws {
        self.configuration = configuration
        self.clock = clock
        let account = try ServiceAccount(configuration.serviceAccount)
        self.account = Mutex(account)
        let trust = try TLSTrust(file: configuration.trust)
        tokens = GoogleAccessTokens(account, trust: trust, clock: clock)
        connections = ProviderConnections(
            try configuration.endpoint.map { try ProviderEndpoint(url: "https://\($0)") }
                ?? ProviderEndpoint(host: "fcm.googleapis.com"),
            .http2, trust: trust, limits: limits)
        bucket = Mutex(TokenBucket(perSecond: Self.perSecond, burst: Self.perSecond))
    }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        guard clock.allows(order) else { return .tooLate }
        guard (1...Self.tokenBytesMax).contains(order.token.utf8.count),
            order.token.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 34 && $0 != 92 })
        else { return .failed(reason: "token_malformed") }
        guard case .object(var whole) = order.body, case .object(var message)? = whole["message"] else {
            return .failed(reason: "body_without_message")
        }
        // The bound is on what Google counts, without the token (FCM, "Message payload").
        guard CanonicalJSON.write(order.body).count <= PushLimits.bodyBytesMax else {
            return .failed(reason: "payload_too_large")
        }
        let replaces = Self.replaces(message)
        message["token"] = .string(order.token)
        whole["message"] = .object(message)
        let now = clock.uptimeMilliseconds()
        if let wait = bucket.withLock({ $0.take(1, at: now) }) {
            let seconds = Int((wait + 999) / 1_000)
            return .later(reason: "rate_of_the_project", seconds: seconds, scope: .message)
        }
        do {
            let body = CanonicalJSON.write(whole)
            let token = try await tokens.current()
            var (answer, finding) = try await send(order, body, token, replaces)
            if finding.verdict == .staleCredential {
                let left = clock.left(order, atMost: PushLimits.timeoutMilliseconds)
                // Google has refused the first one, so nothing was taken.
                guard left > PushLimits.credentialMilliseconds else { return .tooLate }
                if let newer = try await tokens.replacement(of: token) {
                    (answer, finding) = try await send(order, body, newer, replaces)
                    if finding.verdict == .staleCredential { await tokens.refusedAgain() }
                }
            }
            return suspects.withLock { suspects in
                finding.outcome(
                    of: order.message.uuidText, providerID: answer.json?["name"]?.stringValue,
                    mayRepeat: replaces, weighing: &suspects,
                    at: clock.uptimeMilliseconds())
            }
        } catch let fault as ExchangeFault {
            return .fault(fault, of: order, mayRepeat: replaces, clock)
        } catch let fault as AccessTokenFault {
            return fault.outcome
        } catch {
            return .misconfigured(reason: "no_access_token")
        }
    }

    private func send(
        _ order: DeliveryOrder, _ body: [UInt8], _ token: GoogleAccessTokens.Token, _ replaces: Bool
    ) async throws(ExchangeFault) -> (ProviderAnswer, PushFinding) {
        let clock = clock
        let answer = try await connections.exchange(
            ProviderRequest(
                path: "/v1/projects/\(account.withLock { $0.projectID })/messages:send",
                headers: [
                    ("authorization", "Bearer \(token.text)"), ("content-type", "application/json"),
                ],
                body: body, timeoutMilliseconds: clock.left(order, atMost: PushLimits.timeoutMilliseconds))
        ) { clock.allows(order) }
        let finding = FCMErrors.read(
            status: answer.status, body: answer.json,
            retryAfter: RetryAfter.seconds(answer.header("retry-after"), at: clock.now()), replaces: replaces)
        return (answer, finding)
    }

    /// Whether a second copy replaces the first one: by the key that FCM keeps messages under, by the notification's tag, or by
    /// the tag that the app goes by.
    private static func replaces(_ message: JSONObject) -> Bool {
        let android = message["android"]
        return android?["collapseKey"] != nil || android?["notification"]?["tag"] != nil
            || message["data"]?["collapse"] != nil
    }

    package var descriptorCountMax: Int {
        connections.descriptorCountMax + GoogleAccessTokens.descriptorCountMax
    }

    package func check() async -> [ProviderFinding] {
        var findings = [
            CredentialFinding.of(configuration.serviceAccount) { file throws(CredentialError) in
                _ = try ServiceAccount(file)
            }
        ]
        let authority = account.withLock { $0.tokenEndpoint }
        do {
            _ = try await tokens.current()
            findings.append(ProviderFinding("access token from \(authority)"))
        } catch {
            findings.append(
                ProviderFinding(
                    "access token from \(authority)", fault: error.outcome.reason ?? error.outcome.name))
        }
        findings.append(
            ProviderFinding("TLS and HTTP/2 to \(connections.endpoint)", fault: await connections.reach()))
        return findings
    }

    package func run() async throws {
        await untilCancelled()
        connections.close()
        await tokens.close()
    }

    package func reloadCredentials() async throws {
        let read = try ServiceAccount(configuration.serviceAccount)
        account.withLock { $0 = read }
        await tokens.replace(read)
        suspects.withLock { $0.reset() }
    }

    package var doubt: String? { suspects.withLock { $0.doubt } }

    package func confirmDeadAddresses() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
    }
}
