import Synchronization

/// Whether a task was cancelled, for code that runs outside of it: an event loop, or a batch of several tasks' messages.
final class CancellationMark: Sendable {
    private let mark = Atomic(false)

    var isSet: Bool { mark.load(ordering: .acquiring) }

    func set() { mark.store(true, ordering: .releasing) }
}
