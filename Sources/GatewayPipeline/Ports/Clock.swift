package import GateSteps
package import GateVocabulary

/// The one clock of the gateway. Layers below never ask for the time.
package protocol Clock: Sendable {
    /// Wall-clock time. May step; ``ClockGuard`` says which steps are followed.
    func now() -> Instant
    /// The wall clock beside one that does not step.
    func reading() -> ClockReading
}

/// The source of new ids for every thread.
package protocol IdentifierSource: Sendable {
    /// Sixteen bytes of a cryptographic random source. Throws when the source fails.
    func randomBytes16() throws -> (high: UInt64, low: UInt64)
    /// What so many draws of one give, in their order.
    func randomBytes16(count: Int) throws -> [(high: UInt64, low: UInt64)]
}

extension IdentifierSource {
    package func randomBytes16(count: Int) throws -> [(high: UInt64, low: UInt64)] {
        try (0..<count).map { _ in try randomBytes16() }
    }
}
