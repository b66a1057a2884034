/// One way out: Apple, Google, Expo, a mail relay, an SMS service.
///
/// - Concurrency: `deliver` may be called many times at once; each call waits for the provider's answer.
/// - Retry: none inside but one for an expired provider token: the gateway's outbox is the only queue.
/// - Errors: Every fault of the network, the provider or the credentials is an outcome. A configuration that is wrong is
///   ``DeliveryOutcome/misconfigured(reason:)``, never the end of a message or a token.
package protocol DeliveryProvider: Sendable {
    func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome
    /// Bound on the descriptors that its connections take at once.
    var descriptorCountMax: Int { get }
    /// Reaches the provider without sending anything.
    func check() async -> [ProviderFinding]
    /// Holds connections and renews credentials until it is cancelled.
    func run() async throws
    /// Reads credential files again. Requests under way go on with the old ones.
    /// - Throws: When a file cannot be used; the old credentials stay.
    func reloadCredentials() async throws
    /// Why it does not believe its provider's word now, that addresses are dead; `nil` where it does.
    var doubt: String? { get }
    /// An operator says that the addresses are dead which the provider calls so.
    func confirmDeadAddresses()
}

extension DeliveryProvider {
    package var doubt: String? { nil }
    package func confirmDeadAddresses() {}
}

/// One thing that ``DeliveryProvider/check()`` looked at.
package struct ProviderFinding: Sendable, Hashable {
    /// What was looked at, such as "TLS to api.push.apple.com:443".
    package var subject: String
    /// Why it cannot be used, and what to do; `nil` when it can.
    package var fault: String?

    package init(_ subject: String, fault: String? = nil) {
        self.subject = subject
        self.fault = fault
    }
}
