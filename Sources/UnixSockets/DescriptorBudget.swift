import Glibc

/// How many descriptors the process may open.
package enum DescriptorBudget {
    /// The store, the trail, logs, event loops and hops.
    private static let keptForOthers = 128

    /// Raises the soft limit to what `connectionCount` needs; the hard limit is the administrator's.
    package static func raise(forConnections connectionCount: Int) throws(EndpointError) {
        let needed = connectionCount + keptForOthers
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system(call: "getrlimit", path: "RLIMIT_NOFILE", errorNumber: errno)
        }
        if limit.rlim_cur >= rlim_t(needed) { return }
        guard limit.rlim_max >= rlim_t(needed) else {
            throw .tooFewDescriptors(allowed: Int(clamping: limit.rlim_max), needed: needed)
        }
        limit.rlim_cur = rlim_t(needed)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .system(call: "setrlimit", path: "RLIMIT_NOFILE", errorNumber: errno)
        }
    }
}
