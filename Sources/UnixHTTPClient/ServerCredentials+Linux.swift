import Glibc

/// The kernel's `struct ucred` (unix(7)); Glibc shows it only under `_GNU_SOURCE`, which Swift's importer
/// does not set.
private struct KernelCredentials {
    var processID: Int32 = 0
    var userID: UInt32 = UInt32.max
    var groupID: UInt32 = UInt32.max
}

/// The uid that the kernel reports for every user without a mapping in our user namespace, so that it names none:
/// `/proc/sys/kernel/overflowuid`, or its default where that cannot be read.
let overflowUserID: UInt32 = {
    let standard: UInt32 = 65534
    guard let file = fopen("/proc/sys/kernel/overflowuid", "re") else { return standard }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 32)
    guard fgets(&line, CInt(line.count), file) != nil else { return standard }
    let digits = String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init), as: UTF8.self)
    return UInt32(digits) ?? standard
}()

/// The user id of the process that called `listen` on the other end of `descriptor`.
func serverUserID(ofConnection descriptor: Int32) -> UInt32? {
    var credentials = KernelCredentials()
    var length = socklen_t(MemoryLayout<KernelCredentials>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0,
        Int(length) == MemoryLayout<KernelCredentials>.size
    else { return nil }
    return credentials.userID
}
