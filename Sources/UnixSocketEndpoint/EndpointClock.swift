package import NIOCore

/// The time that deadlines of connections are compared with.
///
/// An event loop's timer looks at the deadlines (``EndpointLimits/sweepMilliseconds``); this says what time it is then.
/// A test that moves the time itself does not depend on how fast the machine is.
package struct EndpointClock: Sendable {
    /// Never goes back. Called on any event loop.
    package var now: @Sendable () -> NIODeadline

    package init(now: @escaping @Sendable () -> NIODeadline) { self.now = now }

    /// The kernel's monotonic clock.
    package static let system = EndpointClock { .now() }
}
