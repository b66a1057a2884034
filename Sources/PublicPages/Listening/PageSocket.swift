import Glibc
import NIOCore
import WireProtocol
import Synchronization

/// An address to listen on.
package enum PageAddress: Hashable, Sendable, CustomStringConvertible {
    /// Port 0 takes one that is free.
    case loopback(port: UInt16)
    case unix(path: String)

    package var description: String {
        switch self {
        case .loopback(let port): "127.0.0.1:\(port)"
        case .unix(let path): path
        }
    }

    package static let pathByteCountMax = WireLimits.socketPathByteCountMax
}

/// A bound socket that does not accept connections yet: its port is known before anything is served.
package final class PageSocket: Sendable {
    /// With the port that the kernel chose.
    package let address: PageAddress
    /// The descriptor, until ``take()``.
    private let descriptor: Mutex<CInt?>

    /// - Throws: ``PageSocketError`` where the address cannot be had.
    package init(_ wanted: PageAddress) throws(PageSocketError) {
        let family = if case .unix = wanted { AF_UNIX } else { AF_INET }
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw PageSocketError("socket", wanted, errno) }
        do throws(PageSocketError) {
            switch wanted {
            case .loopback(let port): address = .loopback(port: try Self.bind(descriptor, toPort: port))
            case .unix(let path):
                try Self.bind(descriptor, toPath: path)
                address = wanted
            }
            guard listen(descriptor, 128) == 0 else { throw PageSocketError("listen", wanted, errno) }
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = Mutex(descriptor)
    }

    deinit { abandon() }

    /// Hands the descriptor over to the caller, which closes it.
    func take() -> CInt? {
        descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
    }

    /// Closes the descriptor unless it was taken, and removes the file.
    package func abandon() {
        if let descriptor = take() {
            close(descriptor)
            unlinkFile()
        }
    }

    func unlinkFile() {
        if case .unix(let path) = address { unlink(path) }
    }

    private static func bind(_ descriptor: CInt, toPort port: UInt16) throws(PageSocketError) -> UInt16 {
        var reuse: CInt = 1
        setsockopt(
            descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
        guard result == 0 else { throw PageSocketError("bind", .loopback(port: port), errno) }
        let named = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard named == 0 else { throw PageSocketError("getsockname", .loopback(port: port), errno) }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Every user who may search the directory may connect: the pages are public, and the directory's mode and group
    /// say which proxy is in front of it.
    private static func bind(_ descriptor: CInt, toPath path: String) throws(PageSocketError) {
        let wanted = PageAddress.unix(path: path)
        guard (1...PageAddress.pathByteCountMax).contains(path.utf8.count) else {
            throw PageSocketError("bind", wanted, ENAMETOOLONG)
        }
        var status = stat()
        if lstat(path, &status) == 0 {
            // What an earlier process left is in the way; anything else is not ours to remove, nor is one in use.
            guard status.st_mode & S_IFMT == S_IFSOCK, !isAnswered(path) else {
                throw PageSocketError("bind", wanted, EADDRINUSE)
            }
            guard unlink(path) == 0 else { throw PageSocketError("unlink", wanted, errno) }
        }
        let result = withAddress(of: path) { Glibc.bind(descriptor, $0, $1) }
        guard result == 0 else { throw PageSocketError("bind", wanted, errno) }
        guard chmod(path, 0o666) == 0 else { throw PageSocketError("chmod", wanted, errno) }
    }

    private static func isAnswered(_ path: String) -> Bool {
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        return withAddress(of: path) { connect(descriptor, $0, $1) } == 0
    }

    private static func withAddress<Result>(
        of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// Why the address cannot be listened on.
package struct PageSocketError: Error, CustomStringConvertible {
    package let call: String
    package let address: PageAddress
    package let errorNumber: CInt

    init(_ call: String, _ address: PageAddress, _ errorNumber: CInt) {
        self.call = call
        self.address = address
        self.errorNumber = errorNumber
    }

    package var description: String {
        "cannot listen on `\(address)` for unsubscribe pages: \(call): \(String(cString: strerror(errorNumber)))"
    }
}
