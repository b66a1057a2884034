import GatewayPipeline
import Glibc

/// The kernel's `struct ucred` (unix(7)). Glibc shows it only under `_GNU_SOURCE`, which Swift's importer
/// does not set; the layout is part of Linux's interface and the same on every architecture.
private struct KernelCredentials {
    var processID: Int32 = 0
    var userID: UInt32 = UInt32.max
    var groupID: UInt32 = UInt32.max
}

/// `SO_PEERGROUPS` of `asm-generic/socket.h` (Linux 4.13), which Glibc's module does not export either.
/// The architectures with another number (alpha, parisc, sparc) have no Swift.
private let peerGroupsOption: Int32 = 59

/// `NGROUPS_MAX` of `linux/limits.h`: no process has more supplementary groups.
private let groupCountMax = 65_536

extension PeerCredentials {
    /// Asks the kernel who connected, as it was at `connect`.
    ///
    /// - Returns: `nil` when the descriptor is no connected Unix socket. A peer without credentials is not served.
    init?(ofConnection descriptor: Int32) {
        var credentials = KernelCredentials()
        var length = socklen_t(MemoryLayout<KernelCredentials>.size)
        guard
            getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0,
            Int(length) == MemoryLayout<KernelCredentials>.size
        else { return nil }
        guard let groups = Self.supplementaryGroups(ofConnection: descriptor) else { return nil }
        self.init(
            userID: credentials.userID, groupID: credentials.groupID, processID: credentials.processID,
            supplementaryGroups: groups)
    }

    private static func supplementaryGroups(ofConnection descriptor: Int32) -> [UInt32]? {
        // Most services are in a handful of groups; for the others the kernel says how many bytes they need.
        var capacity = 32
        while capacity <= groupCountMax {
            var groups = [UInt32](repeating: 0, count: capacity)
            var length = socklen_t(capacity * MemoryLayout<UInt32>.size)
            if getsockopt(descriptor, SOL_SOCKET, peerGroupsOption, &groups, &length) == 0 {
                return groups.prefix(Int(length) / MemoryLayout<UInt32>.size).sorted()
            }
            guard errno == ERANGE else { return nil }
            capacity = max(capacity * 2, Int(length) / MemoryLayout<UInt32>.size)
        }
        return nil
    }
}
