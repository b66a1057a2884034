import CanonicalJSON
package import CourierModel
import GateVocabulary
import SealedFormat
import Synchronization

/// Text messages through a provider's HTTPS interface.
///
/// No provider that is known here recognises a second request for the same text, so a text that may have been taken never goes
/// again: see ``SingleCopy``.
package final class TextProvider: DeliveryProvider {
    /// Longest time from the call to the whole answer, and less where the order came earlier.
    package static let timeoutMilliseconds = DeliveryOrder.answerMilliseconds

    private let configuration: SMSConfiguration
    private let connections: ProviderConnections
    private let clock: ProviderClock
    private let single: SingleCopy
    private let secret: Mutex<String>
    private let suspects = Mutex(SuspectAnswers())

    /// - Parameter single: Over the courier's journal.
    /// - Throws: ``CredentialError``, ``UnusableTrustFile``, ``UnusableEndpoint``.
    package init(_ configuration: SMSConfiguration, clock: ProviderClock, single: SingleCopy) throws {
        self.configuration = configuration
        self.clock = clock
        self.single = single
        secret = Mutex(try Self.readSecret(configuration))
        let url =
            switch configuration.service {
            case .twilio: configuration.endpoint ?? TwilioAccount.url
            case .json(let url, _, _): url
            }
        connections = ProviderConnections(
            try ProviderEndpoint(url: url), .http1, trust: try TLSTrust(file: configuration.trust))
    }

    private static func readSecret(_ configuration: SMSConfiguration) throws(CredentialError) -> String {
        let file: CredentialFile? =
            switch configuration.service {
            case .twilio(let account): account.credential
            case .json(_, let secret, _): secret
            }
        guard let file else { return "" }
        return String(decoding: try file.readLine(), as: UTF8.self)
    }

    package var descriptorCountMax: Int { connections.descriptorCountMax }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        await single.deliver(order) { begin in await self.send(order, begin) }
    }

    private func send(
        _ order: DeliveryOrder, _ begin: @escaping @Sendable () async -> DeliveryOutcome?
    ) async -> DeliveryOutcome {
        guard case .object(let body) = order.body, case .string(let text)? = body["text"], !text.isEmpty
        else {
            return .failed(reason: "body_without_text")
        }
        if let refusal = clock.refusal(of: order) { return refusal }
        let refusal = Mutex<DeliveryOutcome?>(nil)
        do throws(ExchangeFault) {
            let clock = clock
            // A text that no connection carries is not begun, so a courier that is killed before it knows that nothing went.
            return outcome(
                try await connections.exchange(
                    request(order, text), mayWrite: { clock.allows(order) },
                    begin: {
                        let outcome = await begin()
                        refusal.withLock { $0 = outcome }
                        return outcome == nil
                    }), of: order)
        } catch {
            if let outcome = refusal.withLock({ $0 }) { return outcome }
            switch error {
            case .notWritten(let why):
                return clock.refusal(of: order)
                    ?? .later(reason: "provider_unreachable: \(why)", seconds: nil, scope: .app)
            case .unusable(let why):
                return clock.refusal(of: order) ?? .misconfigured(reason: "provider_unreachable: \(why)")
            case .unanswered: return .ambiguous(reason: "provider_unanswered", mayRepeat: false)
            }
        }
    }

    private func request(_ order: DeliveryOrder, _ text: String) -> ProviderRequest {
        let secret = secret.withLock { $0 }
        switch configuration.service {
        case .twilio(let account):
            let left = order.expiresAt.seconds - clock.now().seconds
            return ProviderRequest(
                path: "/2010-04-01/Accounts/\(account.accountSID)/Messages.json",
                headers: [
                    ("content-type", "application/x-www-form-urlencoded"), authorization(account, secret),
                    ("accept", "application/json"),
                ], body: Array(FormFields.write(account.form(order, text: text, validSeconds: left)).utf8),
                timeoutMilliseconds: clock.left(order, atMost: Self.timeoutMilliseconds))
        case .json(_, _, let template):
            let (path, headers, body) = template.request(for: order, text: text, secret: secret)
            return ProviderRequest(
                method: template.method, path: path,
                headers: [("content-type", "application/json")] + headers,
                body: CanonicalJSON.write(body),
                timeoutMilliseconds: clock.left(order, atMost: Self.timeoutMilliseconds))
        }
    }

    private func authorization(_ account: TwilioAccount, _ secret: String) -> (name: String, value: String) {
        (
            "authorization",
            "Basic \(Base64.encode(Array("\(account.keySID ?? account.accountSID):\(secret)".utf8)))"
        )
    }

    private func outcome(_ answer: ProviderAnswer, of order: DeliveryOrder) -> DeliveryOutcome {
        let retryAfter = RetryAfter.seconds(answer.header("retry-after"), at: clock.now())
        let now = clock.uptimeMilliseconds()
        return suspects.withLock { suspects in
            let outcome = meaning(of: answer, retryAfter, &suspects, now)
            switch outcome {
            case .accepted: suspects.accepted(at: now)
            // A text that the provider took and lost is sent a second time by each try, so it ends whatever the others say.
            case .failed where isDeadNumber(answer):
                return suspects.dead(outcome, of: order.message.uuidText, at: now)
            case .failed, .seenBefore, .tokenGone, .later, .misconfigured, .ambiguous: break
            }
            return outcome
        }
    }

    /// Whether the provider refuses a text because its number leads nowhere. A template does not say so.
    private func isDeadNumber(_ answer: ProviderAnswer) -> Bool {
        guard case .twilio = configuration.service, !(200..<300).contains(answer.status),
            let code = answer.lenientJSON?["code"]?.integerValue
        else { return false }
        return TwilioErrors.deadNumbers.contains(Int(code))
    }

    private func meaning(
        of answer: ProviderAnswer, _ retryAfter: Int?, _ suspects: inout SuspectAnswers, _ now: Int64
    ) -> DeliveryOutcome {
        let json = answer.lenientJSON
        switch configuration.service {
        case .twilio:
            guard !(200..<300).contains(answer.status) else {
                // Every message that Twilio took has a name. A 2xx without one is a proxy's, or an error's.
                guard case .string(let id)? = json?["sid"], !id.isEmpty else {
                    return .ambiguous(reason: "provider_answer_unreadable", mayRepeat: false)
                }
                // It may have failed before the answer was written.
                guard let state = json?["status"]?.stringValue, ["failed", "undelivered"].contains(state)
                else { return .taken(as: id) }
                let code = json?["error_code"]?.integerValue
                return .failed(reason: code.map { "twilio_\($0)" } ?? "twilio_\(state)")
            }
            var code: Int?
            if case .integer(let number)? = json?["code"] { code = Int(number) }
            return TwilioErrors.outcome(
                status: answer.status, code: code, retryAfter: retryAfter, weighing: &suspects, at: now)
        case .json(_, _, let template):
            return template.outcome(
                status: answer.status, answer: answer.body.isEmpty ? .null : json, retryAfter: retryAfter,
                weighing: &suspects, at: now)
        }
    }

    package func check() async -> [ProviderFinding] {
        switch configuration.service {
        case .twilio(let account):
            // Reads the account, which tells whether it is active and the credentials are right.
            let request = ProviderRequest(
                method: "GET", path: "/2010-04-01/Accounts/\(account.accountSID).json",
                headers: [authorization(account, secret.withLock { $0 })], body: [],
                timeoutMilliseconds: Self.timeoutMilliseconds)
            let subject = "Twilio's account \(account.accountSID)"
            do throws(ExchangeFault) {
                let answer = try await connections.exchange(request)
                guard answer.status == 200 else {
                    return [
                        ProviderFinding(
                            subject, fault: "Twilio answered \(answer.status); look at SID and credential")
                    ]
                }
                guard case .string("active")? = answer.json?["status"] else {
                    return [ProviderFinding(subject, fault: "the account is not active")]
                }
                return [ProviderFinding(subject)]
            } catch {
                return [ProviderFinding(subject, fault: error.why)]
            }
        case .json(_, _, let template):
            if let fault = template.fault { return [ProviderFinding("the template of texts", fault: fault)] }
            return [ProviderFinding("TLS to \(connections.endpoint)", fault: await connections.reach())]
        }
    }

    /// Connections are opened by the texts, so there is nothing to hold but their end.
    package func run() async throws {
        await untilCancelled()
        connections.close()
    }

    package func reloadCredentials() async throws {
        let read = try Self.readSecret(configuration)
        secret.withLock { $0 = read }
        suspects.withLock { $0.reset() }
    }

    package var doubt: String? { suspects.withLock { $0.doubt } }

    package func confirmDeadAddresses() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
    }
}
