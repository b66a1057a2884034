import GatewayPipeline
import Glibc
import UnixSockets

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
        guard let credentials = ProcessCredentials(ofConnection: descriptor) else { return nil }
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
