package import CanonicalJSON
package import CourierModel
import GateVocabulary
package import Logging
import Synchronization

/// One app's way to Expo's push service.
///
/// Expo answers with a ticket, which says that Expo has the message. Whether Apple or Google took it stands in a receipt
/// fifteen minutes later. Tickets are in the journal before their messages are answered, so a receipt is asked for after a restart
/// as well.
package final class ExpoProvider: DeliveryProvider {
    private struct Credential: Sendable {
        var authorization: String?

        init(_ file: CredentialFile?) throws(CredentialError) {
            guard let file else { return }
            let line = String(decoding: try file.readLine(), as: UTF8.self)
            guard !line.utf8.contains(32) else {
                throw CredentialError(
                    path: file.path, why: "has a space, and no access token has",
                    hint: "create one in the account's settings at expo.dev")
            }
            authorization = "Bearer \(line)"
        }
    }

    private let configuration: ExpoConfiguration
    private let clock: ProviderClock
    private let connections: ProviderConnections
    private let receipts: ExpoReceipts
    private let credential: Mutex<Credential>
    private let suspects = Mutex(SuspectAnswers())
    private let batcher = Mutex<ExpoBatcher?>(nil)

    /// - Parameters:
    ///   - name: The app's, which tells its tickets from another's in the journal.
    ///   - pass: Tells the gateway a receipt; `nil` when it did not answer.
    /// - Throws: What keeps the access token, the trust file or the endpoint from being used.
    package init(
        _ configuration: ExpoConfiguration, name: String, journal: CourierJournal,
        clock: ProviderClock = .system, logger: Logger = Logger(label: "courier.expo"),
        pass: @escaping @Sendable (_ path: String, _ body: JSONValue) async -> GatewayAnswer?
    ) throws {
        self.configuration = configuration
        self.clock = clock
        credential = Mutex(try Credential(configuration.accessToken))
        connections = ProviderConnections(
            try configuration.endpoint.map { try ProviderEndpoint(url: "https://\($0)") }
                ?? ProviderEndpoint(host: "exp.host"),
            .http1, trust: try TLSTrust(file: configuration.trust))
        receipts = ExpoReceipts(name: name, journal: journal, clock: clock, logger: logger, pass: pass)
    }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        guard clock.allows(order) else { return .tooLate }
        guard ExpoPushToken.accepts(order.token) else { return .failed(reason: "token_malformed") }
        guard case .object(var message) = order.body else { return .failed(reason: "body_without_message") }
        guard CanonicalJSON.write(order.body).count <= PushLimits.bodyBytesMax else {
            return .failed(reason: "MessageTooBig")
        }
        // A push whose receipt could not be kept would go without anybody to learn that it failed.
        guard receipts.hasRoom else { return .later(reason: "journal_full", seconds: 60, scope: .app) }
        // Pushes that Expo takes would be lost like the last ones.
        if let doubt = receipts.refusal(at: clock.uptimeMilliseconds()) {
            return .misconfigured(reason: doubt)
        }
        let mayRepeat = Self.replaces(message)
        message["to"] = .string(order.token)
        let batcher = batcher.withLock { batcher in
            if let batcher { return batcher }
            // The batcher works for `deliver` alone, whose call holds the provider.
            let made = ExpoBatcher(clock) { [unowned self] pushes in await send(pushes) }
            batcher = made
            return made
        }
        return await batcher.deliver(ExpoBatcher.Push(order: order, message: message, mayRepeat: mayRepeat))
    }

    /// Whether a second copy takes the place of the first: by Apple's or Google's hand, or by the app's, which shows a data
    /// message under the tag that its data have.
    private static func replaces(_ message: JSONObject) -> Bool {
        message["collapseId"] != nil || message["tag"] != nil
            || message["data"]?.objectValue?["collapse"] != nil
    }

    /// One request for all of them.
    private func send(_ pushes: [ExpoBatcher.Push]) async -> [DeliveryOutcome] {
        let clock = clock
        let body = CanonicalJSON.write(.array(pushes.map { .object($0.message) }))
        do throws(ExchangeFault) {
            let left = pushes.map { clock.left($0.order, atMost: PushLimits.timeoutMilliseconds) }.min()
            let answer = try await connections.exchange(request("send", body, left)) {
                pushes.allSatisfy { $0.mayGo(clock) }
            }
            return await outcomes(of: pushes, answer)
        } catch .notWritten(let why) {
            // One whose time had passed, or whose task was cancelled, held the others back.
            let remaining = pushes.filter { $0.mayGo(clock) }
            if remaining.count == pushes.count || remaining.isEmpty {
                return pushes.map { $0.outcome(of: .notWritten(why), clock) }
            }
            var rest = await send(remaining)[...]
            let sent = Set(remaining.map(\.order.message))
            return pushes.map { push in
                let outcome = sent.contains(push.order.message) ? rest.popFirst() : nil
                return outcome ?? (push.cancellation.isSet ? .stopping : .tooLate)
            }
        } catch .unusable(let why) {
            return pushes.map { $0.outcome(of: .unusable(why), clock) }
        } catch {
            return pushes.map { .fault(error, of: $0.order, mayRepeat: $0.mayRepeat, clock) }
        }
    }

    private func outcomes(
        of pushes: [ExpoBatcher.Push], _ answer: ProviderAnswer
    ) async -> [DeliveryOutcome] {
        let json = answer.json
        if answer.status == 200, let tickets = json?["data"]?.arrayValue, tickets.count == pushes.count {
            return await outcomes(of: pushes, tickets)
        }
        // Expo takes no message of a request that it refuses, and one message spoils all: a token of another project, a field
        // that it does not know.
        if [400, 413].contains(answer.status), pushes.count > 1 {
            var outcomes: [DeliveryOutcome] = []
            for push in pushes { outcomes += await send([push]) }
            return outcomes
        }
        let retryAfter = RetryAfter.seconds(answer.header("retry-after"), at: clock.now())
        return pushes.map { push in
            conclude(
                ExpoErrors.read(
                    status: answer.status, body: json, retryAfter: retryAfter, mayRepeat: push.mayRepeat),
                push, ticket: nil)
        }
    }

    private func outcomes(of pushes: [ExpoBatcher.Push], _ tickets: [JSONValue]) async -> [DeliveryOutcome] {
        let ids = tickets.map { $0["id"]?.stringValue.flatMap(ExpoReceipts.ticket) }
        let outcomes = zip(pushes, tickets).enumerated().map { index, pair in
            conclude(ExpoErrors.read(pair.1.objectValue ?? [:]), pair.0, ticket: ids[index])
        }
        let taken = zip(pushes, zip(outcomes, ids)).compactMap { push, result in
            if case .accepted = result.0, let id = result.1 { (id, push.order) } else { nil }
        }
        await receipts.expect(taken)
        return outcomes
    }

    private func conclude(
        _ finding: PushFinding, _ push: ExpoBatcher.Push, ticket: String?
    ) -> DeliveryOutcome {
        suspects.withLock { suspects in
            finding.outcome(
                of: push.order.message.uuidText, providerID: ticket, mayRepeat: push.mayRepeat,
                weighing: &suspects,
                at: clock.uptimeMilliseconds())
        }
    }

    private func request(
        _ route: String, _ body: [UInt8], _ milliseconds: Int64? = nil
    ) -> ProviderRequest {
        var headers = [(name: "accept", value: "application/json"), ("content-type", "application/json")]
        if let authorization = credential.withLock({ $0.authorization }) {
            headers.append(("authorization", authorization))
        }
        return ProviderRequest(
            path: "/--/api/v2/push/\(route)", headers: headers, body: body,
            timeoutMilliseconds: milliseconds ?? PushLimits.timeoutMilliseconds)
    }

    package var descriptorCountMax: Int { connections.descriptorCountMax }

    /// Asks for the receipts that are due, and tells the gateway of those that are errors.
    package func fetchReceipts() async {
        await receipts.fetch { [self] body throws(ExchangeFault) in
            try await connections.exchange(request("getReceipts", body))
        }
    }

    package func check() async -> [ProviderFinding] {
        var findings: [ProviderFinding] = []
        if let file = configuration.accessToken {
            findings.append(
                CredentialFinding.of(file) { file throws(CredentialError) in
                    _ = try Credential(file)
                })
        }
        return findings + [
            ProviderFinding("TLS to \(connections.endpoint)", fault: await connections.reach())
        ]
    }

    /// How often due receipts are looked for.
    private static let receiptRound = Duration.seconds(30)

    package func run() async throws {
        do {
            while true {
                await fetchReceipts()
                try await Task.sleep(for: Self.receiptRound)
            }
        } catch {
            connections.close()
        }
    }

    package func reloadCredentials() async throws {
        let read = try Credential(configuration.accessToken)
        credential.withLock { $0 = read }
        suspects.withLock { $0.reset() }
        receipts.resetSuspects()
    }

    package var doubt: String? { receipts.doubt ?? suspects.withLock { $0.doubt } }

    package func confirmDeadAddresses() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
        receipts.confirmDead()
    }
}
