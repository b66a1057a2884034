import CanonicalJSON
package import CourierModel
import GateVocabulary
import Synchronization

/// One app's way to Apple.
package final class APNsProvider: DeliveryProvider {
    /// The gateway's headers that go to Apple. `apns-id` is the message's own on every try.
    private static let passedHeaders = [
        "apns-topic", "apns-push-type", "apns-priority", "apns-collapse-id", "apns-expiration",
    ]
    /// Apple says that the length of a token may change; today's have 64 digits.
    private static let tokenDigitsMax = 200

    private let configuration: APNsConfiguration
    private let clock: ProviderClock
    private let tokens: APNsProviderTokens
    private let connections: ProviderConnections
    private let suspects = Mutex(SuspectAnswers())

    /// - Throws: What keeps the key, the trust file or the endpoint from being used.
    package init(
        _ configuration: APNsConfiguration, clock: ProviderClock = .system, limits: ConnectionLimits = .http2
    ) throws {
        self.configuration = configuration
        self.clock = clock
        tokens = try APNsProviderTokens(configuration, clock)
        let host =
            switch configuration.environment {
            case .production: "api.push.apple.com"
            case .sandbox: "api.sandbox.push.apple.com"
            }
        connections = ProviderConnections(
            try configuration.endpoint.map { try ProviderEndpoint(url: "https://\($0)") }
                ?? ProviderEndpoint(host: host),
            .http2, trust: try TLSTrust(file: configuration.trust), limits: limits)
    }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        guard clock.allows(order) else { return .tooLate }
        guard Self.isDeviceToken(order.token) else { return .failed(reason: "token_malformed") }
        guard let topic = order.headers["apns-topic"], configuration.topics.contains(topic) else {
            return .misconfigured(reason: "topic_not_configured")
        }
        guard Self.passedHeaders.allSatisfy({ Self.isHeader(order.headers[$0] ?? "") }) else {
            return .failed(reason: "header_malformed")
        }
        let body = CanonicalJSON.write(order.body)
        guard body.count <= PushLimits.bodyBytesMax else { return .failed(reason: "PayloadTooLarge") }
        let mayRepeat = order.headers["apns-collapse-id"] != nil
        do {
            let token = try tokens.current()
            var (answer, finding) = try await send(order, body, token)
            if finding.verdict == .staleCredential, let newer = try tokens.replacement(of: token) {
                (answer, finding) = try await send(order, body, newer)
            }
            finding.reason = hinted(finding.reason, answer)
            return suspects.withLock { suspects in
                finding.outcome(
                    of: order.message.uuidText,
                    providerID: answer.header("apns-id") ?? order.message.uuidText, mayRepeat: mayRepeat,
                    weighing: &suspects, at: clock.uptimeMilliseconds())
            }
        } catch let fault as ExchangeFault {
            return .fault(fault, of: order, mayRepeat: mayRepeat, clock)
        } catch {
            return .misconfigured(reason: "provider_token_cannot_be_signed")
        }
    }

    private func send(
        _ order: DeliveryOrder, _ body: [UInt8], _ token: APNsProviderTokens.Token
    ) async throws(ExchangeFault) -> (ProviderAnswer, PushFinding) {
        var headers = [(name: "authorization", value: "bearer \(token.text)")]
        headers += Self.passedHeaders.compactMap { name in order.headers[name].map { (name, $0) } }
        headers.append(("apns-id", order.message.uuidText))
        let clock = clock
        let answer = try await connections.exchange(
            ProviderRequest(
                path: "/3/device/\(order.token)", headers: headers, body: body,
                timeoutMilliseconds: clock.left(order, atMost: PushLimits.timeoutMilliseconds))
        ) { clock.allows(order) }
        return (answer, read(answer))
    }

    private func read(_ answer: ProviderAnswer) -> PushFinding {
        APNsErrors.read(
            status: answer.status, body: answer.json, isEmpty: answer.body.isEmpty,
            retryAfter: RetryAfter.seconds(answer.header("retry-after"), at: clock.now()))
    }

    /// A refusal of the provider token with what to look at.
    private func hinted(_ reason: String, _ answer: ProviderAnswer) -> String {
        switch reason {
        case "ExpiredProviderToken": "\(reason), \(answer.clockHint(clock.now()))"
        case "InvalidProviderToken":
            "\(reason): check key_id, team_id and the key; \(answer.clockHint(clock.now()))"
        default: reason
        }
    }

    private static func isHeader(_ value: String) -> Bool { value.utf8.allSatisfy { 32..<127 ~= $0 } }

    /// Hexadecimal digits alone, so that nothing of it can leave its place in the path.
    private static func isDeviceToken(_ token: String) -> Bool {
        (2...tokenDigitsMax).contains(token.utf8.count)
            && token.utf8.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    package var descriptorCountMax: Int { connections.descriptorCountMax }

    package func check() async -> [ProviderFinding] {
        [
            CredentialFinding.of(configuration.key) { file throws(CredentialError) in
                _ = try APNsKey(file)
            },
            await providerTokenFinding(),
        ]
    }

    /// Asks Apple with a request that is no push: it has no payload, and no device has a token of two digits. Apple looks at
    /// the provider token first, so any refusal of another part shows that the key, the team, the topic and the clock are good.
    private func providerTokenFinding() async -> ProviderFinding {
        let subject = "provider token for \(connections.endpoint)"
        do {
            let token = try tokens.current()
            let answer = try await connections.exchange(
                ProviderRequest(
                    path: "/3/device/00",
                    headers: [
                        ("authorization", "bearer \(token.text)"), ("apns-push-type", "alert"),
                        ("apns-topic", configuration.topics.first ?? ""),
                    ], body: [], timeoutMilliseconds: PushLimits.timeoutMilliseconds))
            let finding = read(answer)
            switch finding.verdict {
            // `BadDeviceToken` or `PayloadEmpty`.
            case .suspect where answer.json != nil, .failed where answer.json != nil:
                return ProviderFinding(subject)
            default: return ProviderFinding(subject, fault: hinted(finding.reason, answer))
            }
        } catch let fault as ExchangeFault {
            return ProviderFinding(subject, fault: fault.why)
        } catch {
            return ProviderFinding(subject, fault: "the key cannot sign: \(error)")
        }
    }

    package func run() async throws {
        await untilCancelled()
        connections.close()
    }

    package func reloadCredentials() async throws {
        tokens.replace(try APNsKey(configuration.key))
        suspects.withLock { $0.reset() }
    }

    package var doubt: String? { suspects.withLock { $0.doubt } }

    package func confirmDeadAddresses() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
    }
}

/// What `check` says of a credential file.
enum CredentialFinding {
    static func of(
        _ file: CredentialFile, _ read: (CredentialFile) throws(CredentialError) -> Void
    ) -> ProviderFinding {
        do throws(CredentialError) {
            try read(file)
            return ProviderFinding("credential \(file.path)")
        } catch {
            return ProviderFinding("credential \(file.path)", fault: "\(error.why); \(error.hint)")
        }
    }
}
