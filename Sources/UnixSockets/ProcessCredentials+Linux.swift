import Glibc

/// The process at the other end of a Unix socket, as it was at `connect` or, for a server, at `listen` (`SO_PEERCRED`, unix(7)).
///
/// The kernel's `struct ucred`. Glibc shows it only under `_GNU_SOURCE`, which Swift's importer does not set; the layout is
/// part of Linux's interface and the same on every architecture.
package struct ProcessCredentials: Hashable, Sendable {
    package private(set) var processID: Int32 = 0
    package private(set) var userID: UInt32 = UInt32.max
    package private(set) var groupID: UInt32 = UInt32.max

    /// - Returns: `nil` when the descriptor is no connected Unix socket.
    package init?(ofConnection descriptor: Int32) {
        var length = socklen_t(MemoryLayout<ProcessCredentials>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &self, &length) == 0,
            Int(length) == MemoryLayout<ProcessCredentials>.size
        else { return nil }
    }
}
