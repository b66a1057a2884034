package import Glibc

/// The few calls that listening needs and SwiftNIO does not make.
package enum SystemCall {
    package static func message(_ errorNumber: Int32) -> String { String(cString: strerror(errorNumber)) }

    /// Repeats a call that a signal interrupted.
    package static func retrying(_ call: () -> Int32) -> Int32 {
        while true {
            let result = call()
            if result != -1 || errno != EINTR { return result }
        }
    }

    /// - Precondition: `path` has passed ``SocketFile/checkPath()``, so it fits.
    package static func withAddress<Result>(
        of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        precondition(bytes.count <= SocketFile.pathByteCountMax, "the socket path was not checked")
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// An integer socket option, or `nil` when the descriptor is no socket.
    package static func integerOption(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 else { return nil }
        return value
    }
}
