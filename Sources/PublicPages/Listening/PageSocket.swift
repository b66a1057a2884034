import Glibc
import NIOCore
import Synchronization
package import UnixSockets

/// An address to listen on.
package enum PageAddress: Hashable, Sendable, CustomStringConvertible {
    /// Port 0 takes one that is free.
    case loopback(port: UInt16)
    case unix(path: String)
    /// `FileDescriptorName=` of a socket unit.
    case systemd(name: String)

    package var description: String {
        switch self {
        case .loopback(let port): "127.0.0.1:\(port)"
        case .unix(let path): path
        case .systemd(let name): "\(InheritedSockets.configurationPrefix)\(name)"
        }
    }

    package static let pathByteCountMax = SocketFile.pathByteCountMax
}

/// A bound socket that does not accept connections yet: its port is known before anything is served.
package final class PageSocket: Sendable {
    /// With the port that the kernel chose.
    package let address: PageAddress
    private let descriptor: CInt
    /// `nil` on the loopback.
    private let file: ListeningSocket?
    private let isTaken = Atomic<Bool>(false)

    /// - Parameter inherited: The socket that was handed over under the name of a ``PageAddress/systemd(name:)``.
    /// - Throws: ``EndpointError`` where the address cannot be had.
    package init(_ wanted: PageAddress, inherited: CInt? = nil) throws(EndpointError) {
        switch wanted {
        case .systemd(let name):
            guard let inherited else {
                throw .inheritedSocketsMalformed("no socket is named `\(name)`")
            }
            file = try ListeningSocket.adoptPublic(inherited)
            descriptor = inherited
            address = wanted
        case .loopback(let port):
            file = nil
            (descriptor, address) = try Self.listen(onPort: port)
        case .unix(let path):
            let file = try ListeningSocket.openPublic(path: path)
            self.file = file
            descriptor = file.descriptor
            address = wanted
        }
    }

    deinit { abandon() }

    /// Hands the descriptor over to the caller, which closes it, then calls ``release()``.
    func take() -> CInt? {
        isTaken.exchange(true, ordering: .acquiringAndReleasing) ? nil : descriptor
    }

    /// Closes the descriptor unless it was taken, and removes the file.
    package func abandon() {
        guard let descriptor = take() else { return }
        if let file { file.abandon() } else { close(descriptor) }
    }

    func unlinkFile() { file?.unlinkFile() }

    /// Lets another gateway have the file's path.
    func release() { file?.release() }

    /// Listens at once: until then another process may bind the same port.
    private static func listen(onPort port: UInt16) throws(EndpointError) -> (CInt, PageAddress) {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let refusal = { EndpointError.portRefused(address: "127.0.0.1:\(port)", errorNumber: errno) }
        let descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw refusal() }
        var reuse: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 128) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isListening else {
            defer { close(descriptor) }
            throw refusal()
        }
        return (descriptor, .loopback(port: UInt16(bigEndian: address.sin_port)))
    }
}
