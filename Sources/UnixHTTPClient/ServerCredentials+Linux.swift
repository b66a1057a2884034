import Glibc

/// The kernel's `struct ucred` (unix(7)); Glibc shows it only under `_GNU_SOURCE`, which Swift's importer
/// does not set.
private struct KernelCredentials {
    var processID: Int32 = 0
    var userID: UInt32 = UInt32.max
    var groupID: UInt32 = UInt32.max
}

/// The user id of the process that called `listen` on the other end of `descriptor`.
func serverUserID(ofConnection descriptor: Int32) -> UInt32? {
    var credentials = KernelCredentials()
    var length = socklen_t(MemoryLayout<KernelCredentials>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0,
        Int(length) == MemoryLayout<KernelCredentials>.size
    else { return nil }
    return credentials.userID
}
